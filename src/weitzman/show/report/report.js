// The report: stepper and drawing, a table to sort and search, the value against a cost.

import { reveal } from "../page/draw.js";
import { Stepper, walkDrawing } from "../page/stepper.js";
import { unpack } from "../page/problem.js";
import { Walk } from "../page/walk.js";
import { about, amount, el, name, plural, refill, svg } from "../page/text.js";

const PAPER = 1500; // width of a drawing that can still be read when it is shrunk to a sheet
const ROWS = 25; // of the table, before all are asked for

const data = JSON.parse(document.getElementById("data").textContent);
const problem = unpack(data.problem);

function drawWalk(walk) {
  const { picture, left } = walkDrawing(walk, { opened: data.opened, most: 80 });
  const more = left ? el("p", { class: "hint" }, `… and ${plural(left, "box", "boxes")} more`) : null;
  const place = document.getElementById("drawing");
  refill(place, picture, more);
  place.closest("section").classList.toggle("on-screen", picture.getAttribute("width") > PAPER);
  reveal(place, ".next");
}

const stepper = new Stepper(document.getElementById("stepper"), problem, {
  given: data.told, value: data.value, onchange: drawWalk,
});

// -- the table ----------------------------------------------------------------------------------

const table = document.getElementById("table");
const rows = [...table.tBodies[0].rows];
const find = document.getElementById("find");
const more = document.getElementById("more");
let all = false;

function showRows() {
  const wanted = find.value.trim().toLocaleLowerCase();
  const hits = rows.filter((row) => row.cells[0].textContent.toLocaleLowerCase().includes(wanted));
  const shown = new Set(all ? hits : hits.slice(0, ROWS));
  for (const row of rows) row.hidden = !shown.has(row);
  more.hidden = shown.size === hits.length;
  more.textContent = `Show all ${hits.length}`;
  const found = document.getElementById("found");
  found.textContent = wanted ? `${plural(hits.length, "box", "boxes")} found` : "";
}

function sortBy(column, kind, down) {
  const key = (row) => row.cells[column].dataset.key;
  const order = kind === "text"
    ? (a, b) => key(a).localeCompare(key(b), undefined, { numeric: true })
    : (a, b) => Number(key(a)) - Number(key(b));
  rows.sort(down ? (a, b) => order(b, a) : order);
  table.tBodies[0].append(...rows);
  showRows();
}

for (const head of table.tHead.rows[0].cells) {
  const button = head.querySelector("button");
  button.addEventListener("click", () => {
    const { kind } = button.dataset;
    const now = head.getAttribute("aria-sort");
    const down = now === "none" ? kind === "number" : now === "ascending";
    for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    sortBy(head.cellIndex, kind, down);
  });
}
find.addEventListener("input", showRows);
more.addEventListener("click", () => {
  all = true;
  showRows();
});
showRows();

// -- what if a cost were different ----------------------------------------------------------------

function curve(place) {
  const which = el("select", { id: "which", onchange: () => show() },
    data.whatIf.map((w, i) => el("option", { value: i }, w.name)));
  const slider = el("input", { type: "range", min: 0, step: 1,
    "aria-label": "Cost, times what it is now", oninput: () => say() });
  const text = el("p", { role: "status", class: "reading" });
  const chart = el("div", {});
  refill(place, el("div", { class: "controls" }, el("label", {}, "If the cost of ", which, " were"),
    slider), text, chart);

  function show() {
    const w = data.whatIf[which.value];
    slider.max = w.factor.length - 1;
    slider.value = w.factor.findIndex((f) => f >= 1);
    say();
  }

  function say() {
    const w = data.whatIf[which.value];
    const i = Number(slider.value);
    const mean = w.box === null ? null : problem.meanCost(w.box, w.row);
    const cost = mean === null ? "" : ` (${amount(w.factor[i] * mean)})`;
    const verb = problem.minimize ? "cost in all " : "be worth ";
    const times = ` at ${about(w.factor[i])} times its cost${cost}, the search would ${verb}`;
    refill(text, "With ", name(w.name), times,
      el("b", {}, amount(w.value[i])), w.first[i] === null ? " and nothing would be opened."
        : [" and begin with ", name(w.first[i]), "."]);
    slider.setAttribute("aria-valuetext", text.textContent);
    refill(chart, graph(w, i));
  }
  show();
}

function graph({ factor, value }, at) {
  const [wide, high, pad] = [560, 150, 26];
  const last = factor.at(-1);
  const [low, top] = [Math.min(...value), Math.max(...value)];
  const x = (f) => pad + ((wide - 2 * pad) * f) / last;
  const y = (v) => high - pad - ((high - 2 * pad) * (v - low)) / (top - low || 1);
  const ends = [`free: ${amount(value[0])}`, `×${about(last)}: ${amount(value.at(-1))}`];
  const path = factor.map((f, i) => `${i ? "L" : "M"}${x(f).toFixed(1)} ${y(value[i]).toFixed(1)}`);
  const text = (atX, atY, anchor, words) =>
    svg("text", { x: atX, y: atY, "text-anchor": anchor }, words);
  return svg("svg", { viewBox: `0 0 ${wide} ${high}`, role: "img", class: "graph",
    "aria-label": `Value of the search against the cost: ${ends[0]}, ${ends[1]}` },
    svg("line", { class: "axis", x1: pad, x2: wide - pad, y1: high - pad, y2: high - pad }),
    svg("line", { class: "now", x1: x(1), x2: x(1), y1: pad / 2, y2: high - pad }),
    svg("path", { class: "line", d: path.join(""), fill: "none" }),
    svg("circle", { class: "here", cx: x(factor[at]), cy: y(value[at]), r: 5 }),
    text(x(1), 9, "middle", "as now"),
    text(pad, high - 8, "start", ends[0]), text(wide - pad, high - 8, "end", ends[1]));
}

if (data.whatIf.length) curve(document.getElementById("curve"));

window.__state = { stepper, problem, data, Walk, unpack };
