// Numbers and text as people read them, and elements that hold text and nothing else.

/** A number with so many significant digits, as Python's format "g" writes it. */
export function number(x, digits = 6) {
  if (x === null || x === undefined || Number.isNaN(x)) return "none";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  if (x === 0) return "0";
  const [mantissa, power] = x.toExponential(digits - 1).split("e");
  const e = Number(power);
  const bare = (s) => (s.includes(".") ? s.replace(/\.?0+$/, "") : s);
  const text =
    e < -4 || e >= digits
      ? `${bare(mantissa)}e${e < 0 ? "-" : "+"}${String(Math.abs(e)).padStart(2, "0")}`
      : bare(x.toFixed(digits - 1 - e));
  return text.replaceAll("-", "−");
}

/** A chance as a percentage. */
export function percent(p) {
  return p > 0 && p < 1e-5 ? "<0.001%" : `${number(100 * p, 3)}%`;
}

/** "1 box", "2 boxes". */
export function plural(n, one, many = `${one}s`) {
  return `${number(n, 10)} ${n === 1 ? one : many}`;
}

/** A name in running text: shown whatever it contains, and not mixed up with its neighbors. */
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

/** The same for SVG. */
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
      node.append(child);
    }
  }
  return node;
}

/** Put other children in the place of all. */
export function refill(node, ...children) {
  node.replaceChildren();
  return put(node, children);
}

/** At most so many characters, cut between letters and not within one. */
export function short(text, most) {
  const letters = Array.from(text);
  return letters.length <= most ? text : `${letters.slice(0, most - 1).join("")}…`;
}
