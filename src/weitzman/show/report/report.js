// The report: stepper and drawing, a table to sort and search, the value against a cost.

import { foldable, showAnswer } from "../page/answers.js";
import { Curve } from "../page/chart.js";
import { showProfile } from "../page/profile.js";
import { reveal } from "../page/draw.js";
import { Stepper, walkDrawing } from "../page/stepper.js";
import { unpack } from "../page/problem.js";
import { Walk } from "../page/walk.js";
import { about, amount, el, inUnit, name, plural, refill, useWords } from "../page/text.js";

const PAPER = 1500; // width of a drawing that can still be read when it is shrunk to a sheet
const ROWS = 25; // of the table, until the user asks for all

const data = JSON.parse(document.getElementById("data").textContent);
const problem = unpack(data.problem);
useWords(data.words, [...data.problem.names, ...data.problem.states.flatMap((s) => s ?? [])]);

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

// -- the first screen ---------------------------------------------------------------------------

showProfile(document.getElementById("profile"), data.profiles, { nothing: data.nothing, minimize: problem.minimize });

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

// -- which numbers matter, budgets, risk ------------------------------------------------------------

for (const key of ["swings", "knowing", "budget", "careful"]) {
  const place = document.getElementById(`answer-${key}`);
  if (place) showAnswer(place, key, data.answers, problem);
}

for (const each of document.querySelectorAll(".wide > table")) foldable(each);

// -- what if a cost were different ----------------------------------------------------------------

const worthTitle = problem.risk !== null ? "certainty equivalent"
  : problem.minimize ? "loss and costs" : "expected value";

function whatIf(place) {
  const which = el("select", { id: "which", onchange: () => show() },
    data.whatIf.map((w, i) => el("option", { value: i }, w.name)));
  const text = el("p", { role: "status", class: "reading" });
  const chart = el("div", {});
  refill(place, el("label", { class: "controls" }, "If the cost of ", which, " were different"),
    chart, text);
  const curve = new Curve(chart, { label: "Cost of the box", onmove: say });

  function show() {
    const { factor, value, cost } = data.whatIf[which.value];
    curve.show({
      x: factor.map((f) => f * cost), value, now: factor.indexOf(1), title: inUnit("cost of opening"),
      yTitle: inUnit(worthTitle),
    });
  }

  function say(i) {
    const w = data.whatIf[which.value];
    const verb = problem.minimize ? "cost a total of " : "be worth ";
    const times = w.factor[i] === 1 ? "the current cost" : `${about(w.factor[i])} times the current cost`;
    refill(text, "If ", name(w.name), ` cost ${amount(w.factor[i] * w.cost)} (${times}), `,
      `the search would ${verb}`, el("b", {}, amount(w.value[i])),
      w.first[i] === null ? " and nothing would be opened." : [" and begin with ", name(w.first[i]), "."]);
    curve.slider.setAttribute("aria-valuetext", text.textContent);
  }
  show();
}

if (data.whatIf.length) whatIf(document.getElementById("curve"));

const print = document.getElementById("print");
print?.addEventListener("click", () => {
  document.body.classList.add("one-page");
  window.print();
  document.body.classList.remove("one-page");
});

window.__state = { stepper, problem, data, Walk, unpack };
