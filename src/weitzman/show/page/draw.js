// The forest as a drawing: roots on the left, the boxes behind them to the right.

import { about, amount, number, percent, plural, short, svg } from "./text.js";

const NARROW = 190; // width of a box, and of one with a long name
const WIDE = 250;
const LETTER = 7.6; // approximate width of a letter of the name, and of a letter below the name
const SMALL = 6.1;
const HIGH = 44;
const ACROSS = 46; // between a box and the boxes behind it
const DOWN = 12;
const MARGIN = 6;

/**
 * An SVG element. `look` tells for a box: {index, cost, title: text, opened: chance or null, mark:
 * one of "next", "open", "free", "closed"}. `choose(v)` is called for a box that is clicked; without it the
 * drawing is a picture. At most `most` boxes are drawn, whole trees first, in the order of `order`.
 */
export function drawing(problem, { look, choose = null, chosen = -1, most = 150, order = null }) {
  const shown = pick(problem, order ?? problem.roots, most);
  const looks = new Map([...shown].map((v) => [v, look(v)]));
  const widest = (letters) => Math.max(...[...shown].map(letters));
  const size = widest((v) => problem.boxes[v].name.length);
  const notes = widest((v) => notesOf(looks.get(v)).join(" ").length);
  const width = Math.max(NARROW, Math.min(WIDE, 20 + LETTER * size), 20 + SMALL * notes);
  const { place, wide, high } = layout(problem, shown, width);
  const left = problem.boxes.length - place.size + (problem.folded?.boxes ?? 0);
  const of = left ? ` of ${place.size + left}` : "";
  const picture = svg("svg", {
    class: "forest",
    viewBox: `0 0 ${wide} ${high}`,
    width: wide,
    height: high,
    role: choose ? "group" : "img",
    "aria-label": `Drawing of ${plural(place.size, "box", "boxes")}${of}`,
  });
  for (const [v, at] of place) {
    const up = place.get(problem.boxes[v].parent);
    if (up) picture.append(edge(up, at, width));
  }
  for (const [v, at] of place) {
    picture.append(node(problem, v, { ...at, width }, looks.get(v), choose, v === chosen));
  }
  return { picture, left };
}

/** Boxes to draw: whole trees if there is room for them, else their upper part. */
function pick(problem, order, most) {
  const shown = new Set();
  const queue = [];
  for (const root of order) {
    if (shown.size >= most) break;
    queue.push(root);
    while (queue.length && shown.size < most) {
      const v = queue.shift();
      shown.add(v);
      queue.push(...problem.children[v]);
    }
    queue.length = 0;
  }
  return shown;
}

/** Places of the boxes: leaves one below the other, a parent at the height of its first child. */
function layout(problem, shown, width) {
  const place = new Map();
  let y = MARGIN;
  let deepest = 0;
  const roots = [...shown].filter((v) => problem.boxes[v].parent < 0);
  const stack = roots.reverse().map((v) => [v, 0, false]);
  while (stack.length) {
    const [v, depth, first] = stack.pop();
    if (!first && place.size) y += HIGH + DOWN;
    deepest = Math.max(deepest, depth);
    place.set(v, { x: MARGIN + depth * (width + ACROSS), y });
    const below = problem.children[v].filter((u) => shown.has(u));
    for (let i = below.length - 1; i >= 0; i--) stack.push([below[i], depth + 1, i === 0]);
  }
  const wide = 2 * MARGIN + deepest * (width + ACROSS) + width;
  return { place, wide, high: y + HIGH + MARGIN };
}

function edge(up, at, width) {
  const [x1, y1, x2, y2] = [up.x + width, up.y + HIGH / 2, at.x, at.y + HIGH / 2];
  const bend = x1 + ACROSS / 2;
  const d = `M${x1} ${y1} C${bend} ${y1} ${bend} ${y2} ${x2} ${y2}`;
  return svg("path", { class: "edge", d, fill: "none" });
}

/** What stands below the name: the index on the left, the cost on the right. */
function notesOf({ index, cost }) {
  return [index, cost]; // a number is never cut
}

function node(problem, v, at, look, choose, chosen) {
  const box = problem.boxes[v];
  const { opened, mark, title } = look;
  const [index, cost] = notesOf(look);
  const copies = box.endless ? " …" : box.count > 1 ? ` ×${number(box.count)}` : "";
  const letters = Math.floor((at.width - 20) / LETTER) - copies.length;
  const shown = short(box.name, letters);
  const pick = choose
    ? {
        tabindex: 0,
        role: "button",
        "aria-pressed": String(chosen),
        onclick: () => choose(v),
        onkeydown: (event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          choose(v);
        },
      }
    : {};
  return svg(
    "g",
    {
      class: `box ${mark}${chosen ? " chosen" : ""}`,
      transform: `translate(${at.x} ${at.y})`,
      "data-box": v,
      "aria-label": `${shown}${copies} ${index} ${cost}${shown === box.name ? "" : `, ${box.name}`}, ${title}`,
      ...pick,
    },
    svg("title", {}, `${box.name}: ${title}`),
    svg("rect", { class: "card", width: at.width, height: HIGH, rx: 5 }),
    opened === null
      ? null
      : svg("rect", {
          class: "chance", x: 1, y: HIGH - 4, height: 3, rx: 1.5,
          width: Math.max(0, Math.min(1, opened)) * (at.width - 2),
        }),
    svg("text", { class: "name", x: 9, y: 17 }, shown, copies), " ",
    svg("text", { class: "index", x: 9, y: 33 }, index), " ",
    svg("text", { class: "index", x: at.width - 8, y: 33, "text-anchor": "end" }, cost),
  );
}

/** Scroll a drawing, and nothing else, so that a box of it is seen whole. */
export function reveal(place, selector) {
  const box = place.querySelector(selector)?.getBoundingClientRect();
  if (!box) return;
  const view = place.getBoundingClientRect();
  const over = (low, high, from, to) => (high > to ? high - to + 8 : low < from ? low - from - 8 : 0);
  place.scrollLeft += over(box.left, box.right, view.left, view.right);
  place.scrollTop += over(box.top, box.bottom, view.top, view.bottom);
}

/** What a drawing says about a box: its index (or a range) and how likely it is to be opened. */
export function lookOf(problem, v, { row = null, opened = null, mark = "closed" } = {}) {
  const { index } = problem.boxes[v];
  const cost = row === null ? costs(problem, v) : amount(problem.meanCost(v, row));
  const known = row === null ? range(index) : amount(index[row]);
  const told = opened !== null && opened !== undefined;
  const chance = told && problem.single[v] ? opened : null;
  const often = told ? `, ${openings(problem, v, opened)}` : "";
  return {
    index: `index ${known}`,
    cost: `cost ${cost}`,
    opened: chance,
    mark,
    title: `index ${known}, cost ${cost}${often}`,
  };
}

/** How often a box is opened: a chance, or how many of its copies. */
export function openings(problem, v, opened) {
  return problem.single[v] ? `opened with chance ${percent(opened)}`
    : `${about(opened)} of them opened on average`;
}

/** Numbers as "5", or as "5 to 9" if they differ. */
export function range(numbers) {
  const known = numbers.filter((x) => x !== null);
  if (known.length === 0) return "none";
  const [low, high] = [Math.min(...known), Math.max(...known)];
  return low === high ? amount(low) : `${amount(low)} to ${amount(high)}`;
}

function costs(problem, v) {
  const { index, law } = problem.boxes[v];
  const all = law.map((_, row) => problem.meanCost(v, row));
  const open = all.filter((_, row) => index[row] !== null); // after other states it cannot be opened
  const rows = open.length ? open : all;
  const [low, high] = [Math.min(...rows), Math.max(...rows)];
  return low === high ? amount(low) : `${amount(low)} to ${amount(high)}`;
}
