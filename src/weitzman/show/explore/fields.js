// Fields to type into. What is not a number is handed on as text, so that the check can name it.

import { el } from "../page/text.js";

const FIGURE = 9; // letters of a field for a number
const RANGE = 18; // of one that holds a range, at most
const DIGITS = [7, 6, 5, 4, 3]; // of a long number, unless its field has the focus

/** A long number as it fits into a field; all digits show once the field is used. */
function brief(text) {
  const x = readNumber(text);
  if (text.length <= FIGURE || typeof x !== "number") return text;
  const rounded = DIGITS.map((digits) => String(Number(x.toPrecision(digits))));
  return rounded.find((short) => short.length <= FIGURE) ?? rounded.at(-1);
}

/** A number as typed: 0.25, 1/4, 25%, $1,500, 2M; null for nothing; else the text. */
export function readNumber(text) {
  if (text.trim() === "") return null;
  const x = typedNumber(text);
  return Number.isNaN(x) ? text.trim() : x;
}

const SCALES = { k: 3, m: 6, mn: 6, mio: 6, bn: 9, b: 9 };

/**
 * A number as people write it, by the rules of `typed_number` in `_common/numbers.py` (a test compares
 * both): 40%, 1/2, $500, 150,000, 1.5k, (500). NaN if the text is no such number.
 */
export function typedNumber(text) {
  const plain = text.trim();
  if (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain)) return finite(Number(plain));
  let bare = text.replace(/[ \u00a0\u2007\u2009\u202f'\u2019]/g, "");
  const fraction = bare.match(/^(\d+)\/(\d+)$/);
  if (fraction) return finite(Number(fraction[1]) / Number(fraction[2]));
  bare = bare.replace(/[\u2212\u2013]/g, "-");
  let sign = 1;
  if (/^\(.*\)$/.test(bare)) [sign, bare] = [-1, bare.slice(1, -1)];
  let currency = "";
  [bare, currency] = withoutCurrency(bare);
  let scale = 0;
  const letters = bare.match(/[a-z]*$/i)[0];
  if (bare.endsWith("%")) [bare, scale] = [bare.slice(0, -1), -2];
  else if (letters.toLowerCase() in SCALES) {
    [bare, scale] = [bare.slice(0, -letters.length), SCALES[letters.toLowerCase()]];
  }
  const found = bare.match(/^([+-]?)([\d.,]+)(?:e([+-]?\d{1,4}))?$/i);
  if (!found || !/\d/.test(found[2])) return NaN;
  const comma = decimalComma(found[2], currency);
  if (comma === null && found[2].includes(".")) return NaN; // 30.000 €: thirty, or thirty thousand?
  const [part, mark] = comma ? [".", ","] : [",", "."];
  const [whole, ...rest] = found[2].split(mark);
  const groups = whole.split(part);
  if (rest.length > 1 || rest.join("").includes(part) || groups.slice(1).some((g) => g.length !== 3)) {
    return NaN;
  }
  const power = Number(found[3] ?? 0) + scale;
  return finite((found[1] === "-" ? -sign : sign) * Number(`${groups.join("")}.${rest[0] || 0}e${power}`));
}

/** Whether a comma stands for the point; null: the digits do not tell. */
function decimalComma(digits, currency) {
  const [comma, point] = [digits.lastIndexOf(","), digits.lastIndexOf(".")];
  if (comma < 0) {
    if (digits.split(".").length > 2) return true;
    return point < 0 || /^[1-9]\d{0,2}\.\d{3}$/.test(digits) ? null : false;
  }
  if (point >= 0) return point < comma;
  if (/^[1-9]\d{0,2}(,\d{3})*,000$/.test(digits) || digits.split(",").length > 2) return false;
  if (/^[1-9]\d{0,2}(,\d{3})+$/.test(digits)) return /[$£¥]$/.test(currency) ? false : null;
  return true;
}

function withoutCurrency(text) {
  const signs = text.match(/\p{Sc}/gu) ?? [];
  if (signs.length === 1) {
    const [before] = text.split(signs[0]);
    const prefix = before.replace(/^[+-]+|[+-]+$/g, "");
    const asked = [...Object.keys(SCALES), "t", "mm", "tsd"].includes(prefix.toLowerCase());
    if (/^[A-Z]{1,3}$/.test(prefix) && signs[0] !== "€" && !asked) {
      return [text.replace(prefix + signs[0], ""), prefix + signs[0]];
    }
    return [text.replace(signs[0], ""), signs[0]];
  }
  const code = text.match(/^[A-Z]{3}(?=[\d.+-])|(?<=[\d.])[A-Z]{3}$/);
  return code ? [text.replace(code[0], ""), code[0]] : [text, ""];
}

function finite(x) {
  return Number.isFinite(x) ? x : NaN;
}

const SIDE = 2.5066282746310002 * 1.2815515655446004; // deciles to the mean of half a normal law
const MEANS = {
  normal: (mean, _) => mean,
  lognormal: (mean, _) => mean,
  uniform: (low, high) => (low + high) / 2,
  triangular: (low, mode, high) => (low + mode + high) / 3,
  pert: (low, mode, high) => (low + 4 * mode + high) / 6,
  p10p50p90: (low, middle, high) => middle + (low + high - 2 * middle) / SIDE,
};

/**
 * The number that a range or a distribution stands for, by the rules of `typed_spread` in
 * `files/ranges.py` (a test compares both): 80/100/130, normal(100; 20). NaN if the text is neither.
 */
export function typedBase(text) {
  const law = text.trim().match(/^([a-z][a-z0-9/ _-]*)\(([^()]+)\)$/i);
  const mark = law ? (law[2].includes(";") ? ";" : ",") : "/";
  const numbers = (law ? law[2] : text).split(mark).map(typedNumber);
  if (numbers.some(Number.isNaN)) return NaN;
  if (!law) {
    const [low, base, high] = numbers;
    return numbers.length === 3 && low <= base && base <= high ? base : NaN;
  }
  const mean = MEANS[law[1].toLowerCase().replace(/[^a-z0-9]/g, "")];
  return mean?.length === numbers.length ? mean(...numbers) : NaN;
}

/** Fields that know what they show, so that they follow the document while nobody types there. */
export class Fields {
  constructor(change) {
    this.change = change; // change(document -> document, tag): tag joins what is typed in one field
    this.all = [];
  }

  clear() {
    this.all = [];
    this.doc = null;
  }

  /** A field for a number; `get(doc)` reads it, `set(doc, x)` writes it. */
  number(label, get, set, { empty = undefined, width = 5, placeholder = "" } = {}) {
    const show = (doc) => (get(doc) === null ? "" : String(get(doc)));
    const read = (text) => {
      const x = readNumber(text);
      return x === null && empty === undefined ? "" : x;
    };
    return this.#field(label, show, (doc, text) => set(doc, read(text)),
      { inputmode: "decimal", size: Math.max(width, FIGURE), placeholder, class: "figure" });
  }

  text(label, get, set, { width = 14, placeholder = "" } = {}) {
    return this.#field(label, get, set, { size: width, placeholder, dir: "auto" });
  }

  /** Show what the document says, wherever nobody is typing. */
  follow(doc) {
    this.doc = doc;
    for (const { input, show } of this.all) {
      const text = show(doc);
      if (input === document.activeElement) continue;
      const short = input.matches(".figure") ? brief(text) : text;
      if (input.value !== short) input.value = short;
      if (input.matches(".figure")) input.size = Math.max(input.minimum, Math.min(short.length, RANGE));
      const label = input.getAttribute("aria-label");
      input.title = short === text ? label : `${label}: ${text}`;
    }
  }

  #field(label, show, set, attributes) {
    const tag = {}; // consecutive typing in this field is one undo step
    const input = el("input", {
      ...attributes, "aria-label": label, title: label, autocomplete: "off", spellcheck: "false",
      oninput: () => this.change((doc) => set(doc, input.value), tag, `typing into “${label}”`),
      onfocus: () => {
        if (this.doc && input.value !== show(this.doc)) input.value = show(this.doc);
      },
      onblur: () => {
        this.change(null, null);
        if (this.doc) this.follow(this.doc);
      },
    });
    input.minimum = attributes.size;
    this.all.push({ input, show });
    return input;
  }
}
