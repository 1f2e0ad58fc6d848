// A curve with axes, and a slider that runs exactly below it.

import { el, number, refill, svg } from "./text.js";

const SPACE = { high: 210, top: 14, bottom: 44, right: 18, narrowest: 240, widest: 760 };
const DIGIT = 7; // width of a digit on an axis, about
const THUMB = 18; // width of the slider's thumb, as in the style

/** About this many round numbers from low to high. */
export function ticks(low, high, about = 5) {
  if (!(high > low)) return [low];
  const raw = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5].find((m) => m * power >= raw) ?? 10);
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: count }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** Round numbers from low to high on a logarithmic scale: 1, 2, 5 of each power, or the powers. */
export function logTicks(low, high, most = 6) {
  const round = (steps) => {
    const found = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high) + 1; e++) {
      for (const m of steps) found.push(Number((m * 10 ** e).toPrecision(3)));
    }
    return found.filter((t) => t >= low && t <= high);
  };
  const ways = [[1, 2, 5], [1, 3], [1]].map(round);
  return ways.find((found) => found.length <= most) ?? ways.at(-1).filter((_, i) => i % 2 === 0);
}

/** `onmove(i)` is called with the place of the slider. */
export class Curve {
  constructor(place, { label, onmove }) {
    this.place = place;
    this.plot = el("div", { class: "plot" });
    this.slider = el("input", { type: "range", class: "along", min: 0, step: "any", "aria-label": label,
      oninput: () => this.move(this.#nearest(Number(this.slider.value))) });
    this.onmove = onmove;
    refill(place, this.plot, this.slider);
    new ResizeObserver(() => this.draw()).observe(place);
  }

  /** Points, evenly spaced or not; `now` is the place of the current number; `log`: the axis. */
  show(points) {
    this.points = points;
    this.at = points.at ?? points.now;
    this.slider.max = points.x.length - 1;
    this.move(this.at);
  }

  move(i) {
    this.at = i;
    this.slider.value = this.#spot(i);
    this.draw();
    this.onmove(i);
  }

  /** Where a number lies along the axis, from 0 to 1. */
  #share(v) {
    const { x, log } = this.points;
    const scaled = log ? Math.log : (u) => u;
    const [from, to] = [scaled(x[0]), scaled(x.at(-1))];
    return (scaled(v) - from) / (to - from || 1);
  }

  /** Where the thumb stands for a point, from 0 to the number of the last point. */
  #spot(i) {
    const { x } = this.points;
    return (x.length - 1) * this.#share(x[i]);
  }

  /** The point nearest to the thumb; a step too small to reach another point goes to the next one. */
  #nearest(spot) {
    const apart = this.points.x.map((_, i) => Math.abs(this.#spot(i) - spot));
    const found = apart.indexOf(Math.min(...apart));
    if (found !== this.at) return found;
    const next = found + Math.sign(spot - this.#spot(found));
    return Math.max(0, Math.min(this.points.x.length - 1, next));
  }

  draw() {
    if (!this.points) return;
    const wide = Math.max(SPACE.narrowest, Math.min(SPACE.widest, this.place.clientWidth || SPACE.narrowest));
    const { x, value, log } = this.points;
    const [low, high] = [Math.min(...value), Math.max(...value)];
    const room = (high - low) * 0.06 || Math.abs(high) * 0.05 || 1;
    const up = ticks(low - room, high + room, 4);
    const along = (log ? logTicks : ticks)(x[0], x.at(-1), wide < 420 ? 3 : 6);
    const left = 16 + DIGIT * Math.max(...up.map((t) => number(t).length));
    const right = Math.max(SPACE.right, (DIGIT * number(along.at(-1)).length) / 2 + 2);
    const at = {
      x: (v) => left + (wide - left - right) * this.#share(v),
      y: (v) => SPACE.high - SPACE.bottom - ((SPACE.high - SPACE.bottom - SPACE.top) * (v - low + room)) / (high - low + 2 * room),
    };
    refill(this.plot, this.#picture(at, { wide, left, right, up, along }));
    this.slider.style.marginLeft = `${left - THUMB / 2}px`;
    this.slider.style.width = `${wide - left - right + THUMB}px`;
  }

  #picture(at, { wide, left, right, up, along }) {
    const { x, value, now, title, yTitle } = this.points;
    const line = (attributes) => svg("line", attributes);
    const text = (px, py, anchor, words, more = {}) =>
      svg("text", { x: px, y: py, "text-anchor": anchor, ...more }, words);
    const floor = SPACE.high - SPACE.bottom;
    const path = x.map((v, i) => `${i ? "L" : "M"}${at.x(v).toFixed(1)} ${at.y(value[i]).toFixed(1)}`);
    const said = `${yTitle} against ${title}: ${number(value[0])} at ${number(x[0])}, `
      + `${number(value[now])} now, ${number(value.at(-1))} at ${number(x.at(-1))}`;
    return svg("svg", { width: wide, height: SPACE.high, viewBox: `0 0 ${wide} ${SPACE.high}`, role: "img",
      class: "graph", "aria-label": said },
      up.map((t) => line({ class: "grid", x1: left, x2: wide - right, y1: at.y(t), y2: at.y(t) })),
      line({ class: "axis", x1: left, x2: wide - right, y1: floor, y2: floor }),
      along.map((t) => line({ class: "axis", x1: at.x(t), x2: at.x(t), y1: floor, y2: floor + 4 })),
      line({ class: "now", x1: at.x(x[now]), x2: at.x(x[now]), y1: SPACE.top + 2, y2: floor }),
      svg("path", { class: "line", d: path.join(""), fill: "none" }),
      svg("circle", { class: "was", cx: at.x(x[now]), cy: at.y(value[now]), r: 4 }),
      line({ class: "drop", x1: at.x(x[this.at]), x2: at.x(x[this.at]), y1: at.y(value[this.at]),
        y2: SPACE.high }),
      up.map((t) => text(left - 7, at.y(t) + 4, "end", number(t))),
      along.map((t) => text(at.x(t), floor + 16, "middle", number(t))),
      text(left, 10, "start", yTitle, { class: "axis-title" }),
      text(left, SPACE.high - 8, "start", title, { class: "axis-title" }),
      svg("circle", { class: "here", cx: at.x(x[this.at]), cy: at.y(value[this.at]), r: 6 }));
  }
}
