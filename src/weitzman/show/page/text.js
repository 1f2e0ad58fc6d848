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
