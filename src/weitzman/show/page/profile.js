// The risk profile: how likely each way to search is to end with x or less, as steps.

import { ticks } from "./chart.js";
import { el, inUnit, number, percent, refill, svg } from "./text.js";

const FRAME = { top: 32, bottom: 44, left: 46, right: 16, narrowest: 260 };
const NOTHING_WIDTH = 110; // width of the words "doing nothing", about
const FIGURE_WIDTH = 7; // width of a digit on an axis, about

/** Draw `{name, x, p}` laws (p: the chance of x or less) in a place; `nothing` is what opening nothing gives. */
export function showProfile(place, laws, { nothing, minimize, high = 330 }) {
  const draw = () => refill(place, profilePicture(laws, nothing, minimize, Math.max(FRAME.narrowest, place.clientWidth), high), lawLegend(laws));
  new ResizeObserver(draw).observe(place);
  draw();
}

function profilePicture(laws, nothing, minimize, wide, high) {
  const ends = (values) => [Math.min(...values), Math.max(...values)];
  const [first, last] = ends(laws[0].x.concat(nothing === null ? [] : [nothing]));
  const all = ends(laws.flatMap((law) => law.x).concat(first, last));
  const span = last - first; // a hopeless strategy must not squeeze the others
  const [low, top] = span ? [Math.max(all[0], first - span), Math.min(all[1], last + span)] : all;
  const room = (top - low) * 0.04 || Math.abs(top) * 0.1 || 1;
  const floor = high - FRAME.bottom;
  const inside = (v) => Math.min(Math.max(v, low - room), top + room);
  const x = (v) => FRAME.left + ((wide - FRAME.left - FRAME.right) * (inside(v) - low + room)) / (top - low + 2 * room);
  const y = (p) => floor - (floor - FRAME.top) * p;
  let along = ticks(low, top, 6);
  // labels must not touch: fewer ticks until there is room
  for (let n = 5; n > 1 && along.length * (FIGURE_WIDTH * Math.max(...along.map((t) => shortNumber(t).length)) + 14) > wide - 60; n--) {
    along = ticks(low, top, n);
  }
  const line = (attributes) => svg("line", attributes);
  const text = (px, py, anchor, words, more = {}) => svg("text", { x: px, y: py, "text-anchor": anchor, ...more }, words);
  const title = inUnit(minimize ? "loss plus all costs" : "payoff: reward less all costs");
  return svg("svg", { width: wide, height: high, viewBox: `0 0 ${wide} ${high}`, role: "img", class: "graph profile",
    "aria-label": `Risk profile: chance that the ${title} is at most x` },
    [0, 0.25, 0.5, 0.75, 1].map((p) => [line({ class: "grid", x1: FRAME.left, x2: wide - FRAME.right, y1: y(p), y2: y(p) }),
      text(FRAME.left - 7, y(p) + 4, "end", percent(p))]),
    line({ class: "axis", x1: FRAME.left, x2: wide - FRAME.right, y1: floor, y2: floor }),
    along.map((t) => [line({ class: "axis", x1: x(t), x2: x(t), y1: floor, y2: floor + 4 }),
      text(x(t), floor + 16, "middle", shortNumber(t))]),
    nothing === null ? null : [line({ class: "nothing", x1: x(nothing), x2: x(nothing), y1: FRAME.top - 10, y2: floor }),
      text(...besideNothing(x(nothing), wide), "doing nothing", { class: "axis-title" })],
    [...laws.entries()].reverse().map(([i, law]) => svg("path", { class: `law law-${i}`, fill: "none", d: stairs(law, x, y, wide) },
      svg("title", {}, law.name))),
    text(FRAME.left, 11, "start", "chance of x or less", { class: "axis-title" }),
    text(FRAME.left, high - 8, "start", title, { class: "axis-title" }));
}

/** The words stand above the curves, before the line at the right edge. */
function besideNothing(at, wide) {
  const last = at > wide - NOTHING_WIDTH;
  return [last ? at - 5 : at + 5, FRAME.top - 8, last ? "end" : "start"];
}

/** An amount on an axis: thousands and millions by letters, without the unit. */
function shortNumber(v) {
  for (const [size, letter] of [[1e9, "bn"], [1e6, "M"]]) {
    if (Math.abs(v) >= size) return `${number(v / size, { digits: 3 })}${letter}`;
  }
  return number(v);
}

function stairs({ x: values, p }, x, y, wide) {
  let path = `M${FRAME.left} ${y(0).toFixed(1)}`;
  values.forEach((v, i) => {
    path += `H${x(v).toFixed(1)}V${y(p[i]).toFixed(1)}`;
  });
  return `${path}H${wide - FRAME.right}`;
}

function lawLegend(laws) {
  return el("ul", { class: "legend" }, laws.map((law, i) => el("li", { class: `law-${i}` },
    `${law.name}: ${law.mean} on average`)));
}
