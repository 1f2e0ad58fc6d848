// Fields to type into. What is not a number is handed on as text, so that the check can name it.

import { el, typedNumber } from "../page/text.js";

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
