// Numbers and text as people read them, and elements that hold text and nothing else.

/** How the amounts of the problem on this page are written: the unit, and the range of all amounts. */
export const amounts = { unit: "", spread: 0, digits: 6 };

/** An amount of the problem with its unit; with an error, no digits beyond the second digit of the error. */
export function amount(x, error = 0) {
  const cents = amounts.spread >= 10 && isCurrency(amounts.unit);
  return withUnit(number(x, { ...amounts, error, cents }), amounts.unit);
}

/** The title of an axis, with the unit of the amounts along it. */
export function inUnit(title) {
  return amounts.unit ? `${title} (${amounts.unit})` : title;
}

/** An error of an amount: two digits, and the unit. */
export function margin(error) {
  return withUnit(rough(error), amounts.unit);
}

/**
 * A number as people read it, by the rules of `_common/numbers.py` (a test compares both): six
 * significant digits (counted from the spread, if there is one), commas, no zeros at the end.
 */
export function number(x, { spread = 0, error = 0, digits = 6, cents = false } = {}) {
  if (x === null || x === undefined || Number.isNaN(x)) return "none";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  if (x === 0 || Math.abs(x) < 1e-12 * spread) return "0";
  let decimals = decimalsOf(x, spread, digits);
  if (error > 0 && Number.isFinite(error) && 1 - power(error, 2) <= decimals) decimals = 1 - power(error, 2);
  else if (cents) decimals = Math.min(decimals, Math.max(2, 1 - power(x, 2)));
  let text;
  if (Math.abs(x) >= 1e15 || Math.abs(x) < 1e-6) {
    const [mantissa, e] = x.toExponential(Math.abs(x) > 1 ? 5 : 2).split("e");
    text = `${bare(mantissa)}e${Number(e)}`;
  } else if (decimals < 0) {
    const unit = 10 ** -decimals;
    const sign = Math.sign(x);
    text = thousands((sign * Math.floor(Math.abs(x) / unit + 0.5) * unit).toFixed(0));
  } else {
    text = thousands(bare(x.toFixed(decimals)));
  }
  return text === "-0" ? "0" : text.replaceAll("-", "−");
}

function decimalsOf(x, spread, digits) {
  const own = -power(x, digits);
  if (!(spread > 0) || !Number.isFinite(spread)) return Math.max(0, digits - 1 + own);
  const some = Math.max(0, digits - 1 - power(spread, digits), 2 + own);
  return Math.min(Math.max(0, 15 + own), some);
}

/** A number with three significant digits, for means of counts and factors. */
export function about(x) {
  return number(x, { digits: 3 });
}

/** An error or a distance: two digits. */
export function rough(x) {
  return number(x, { error: Math.abs(x) });
}

function power(x, digits) {
  return x ? Number(x.toExponential(digits - 1).split("e")[1]) : 0;
}

function bare(text) {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

function thousands(text) {
  const [whole, rest] = text.split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return rest === undefined ? grouped : `${grouped}.${rest}`;
}

/** A written number with its unit: a currency sign before it, any other unit after it. */
export function withUnit(text, unit) {
  if (!unit || text === "none") return text;
  const [, before, scale] = unit.match(/^(.*?)(mn|bn|[kKmMB])?$/s);
  if (!isCurrency(before)) return `${text} ${unit}`;
  const money = `${/\.\d$/.test(text) && !scale ? `${text}0` : text}${text === "0" ? "" : scale ?? ""}`;
  return money.startsWith("−") ? `−${before}${money.slice(1)}` : `${before}${money}`;
}

function isCurrency(unit) {
  return /\p{Sc}$/u.test(unit) && !/^(k|m|mn|mio|bn|b|t|mm|tsd)[. ]*.$/iu.test(unit);
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

/** A chance; 0% and 100% are only for what is impossible and what is certain. */
export function percent(p) {
  if (p > 0 && p < 1e-5) return "<0.001%";
  if (p >= 0.9995 && p < 1 - 1e-12) return ">99.9%";
  const x = Number((100 * p).toPrecision(12));
  return x ? `${bare(x.toFixed(Math.max(0, 2 - power(x, 3))))}%` : "0%";
}

/** "1 box", "2 boxes". */
export function plural(n, one, many = `${one}s`) {
  return worded(`${number(n)} ${n === 1 ? one : many}`);
}

/** A name in running text: shown whatever it contains, without disturbing the text around it. */
export function name(text) {
  return { name: text };
}

/** Text and names in a row, as plain text. */
export function plain(parts) {
  return parts.map((part) => (typeof part === "string" ? part : part.name)).join("");
}

/** An element: attributes, listeners (on...), properties (.value), and children that are text. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element, in the same way. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key.startsWith(".")) node[key.slice(1)] = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  put(node, children);
  return node;
}

/** Append nodes, text and names; never markup. */
export function put(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    if (typeof child === "object" && !(child instanceof Node)) {
      const bdi = document.createElement("bdi");
      bdi.textContent = child.name;
      node.append(bdi);
    } else {
      node.append(typeof child === "string" && node.tagName !== "BDI" ? worded(child) : child);
    }
  }
  return node;
}

/** Replace all children. */
export function refill(node, ...children) {
  node.replaceChildren();
  return put(node, children);
}

/** What the user calls a box and opening it, if not that. Names are left as they are. */
let wording = null;

/** Write `forms[word]` for each word from here on; `names` of boxes and states stay. */
export function useWords(forms, names) {
  const keys = Object.keys(forms ?? {}).sort((a, b) => b.length - a.length);
  if (!keys.length) return;
  const word = new RegExp(`\\b(${keys.join("|")})\\b`);
  const own = names.filter((x) => word.test(x)).sort((a, b) => b.length - a.length);
  const kept = own.map((x) => `${x.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}|`).join("");
  wording = { forms, pattern: new RegExp(`${kept}${word.source}`, "g") };
}

/** A text in the words of the user. */
export function worded(text) {
  return wording ? text.replace(wording.pattern, (all, word) => (word ? wording.forms[word] : all)) : text;
}

/** At most this many characters, cut between letters and not within a letter. */
export function short(text, most) {
  const letters = Array.from(text);
  return letters.length <= most ? text : `${letters.slice(0, most - 1).join("")}…`;
}
