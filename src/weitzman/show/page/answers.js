// Which numbers matter, what knowing is worth, budgets, and how careful searchers decide. All
// numbers come from Python (report/findings.py); both pages show them alike.

import { Curve } from "./chart.js";
import { about, amount, el, inUnit, margin, name, percent, refill, svg } from "./text.js";

const HINTS = {
  swings: "Each number is changed by $share, one at a time, and the problem is solved again. A reward "
    + "stands for all rewards of its box, and a chance for the chance of the best state.",
  knowing: "The most that it is worth paying to know what a box would show before anything is opened.",
  budget: "The best result if the average spend is limited. The dot marks the policy of this page.",
  careful: "The value and the first decision for searchers who avoid risk: the smaller the risk "
    + "tolerance, the more careful the searcher. The value is a certainty equivalent: the sure payoff "
    + "that is worth as much as the search.",
};

const SHOWN = {
  swings: showSwings, knowing: showKnowing, budget: showBudget, careful: showCareful,
};

/** Show one part of the answers in an element. */
export function showAnswer(place, key, data, problem) {
  const found = data[key];
  if (!found) {
    refill(place, el("p", {}, `Left out: ${data.leftOut[key]}`));
    return;
  }
  const hint = HINTS[key].replace("$share", percent(found.share ?? 0));
  const stated = found.stated ? " A number with a range of its own moves from its low to its high end." : "";
  refill(place, el("p", { class: "hint" }, hint + stated));
  SHOWN[key](place, found, problem);
}

// -- tables -----------------------------------------------------------------------------------------

/** Let a table fold on a narrow screen: a row becomes a card, each number with the title of its column. */
export function foldable(table) {
  const titles = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  table.classList.add("folds");
  table.setAttribute("role", "table");
  for (const row of table.rows) {
    row.setAttribute("role", "row");
    [...row.cells].forEach((cell, i) => {
      const head = cell.tagName === "TH";
      cell.setAttribute("role", head ? (cell.scope === "col" ? "columnheader" : "rowheader") : "cell");
      if (row.parentElement !== table.tHead) cell.dataset.title = titles[i];
    });
  }
  return table;
}

function answerTable(caption, heads, rows) {
  const head = heads.map((t) => (t === "" ? el("td") : el("th", { scope: "col",
    class: t.endsWith("|") ? "number" : null }, t.replace("|", ""))));
  return el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": caption },
    foldable(el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, head)),
      el("tbody", {}, rows))));
}

function numberCell(...shown) {
  return el("td", { class: "number" }, ...shown);
}

function showSwings(place, { value, rows }) {
  if (!rows.length) {
    refill(place, el("p", {}, "No number matters: nothing is opened, and small changes do not alter that."));
    return;
  }
  const ends = rows.flatMap((r) => [r.low, r.high, value]);
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const title = (r) => (r.title ? name(r.title)
    : r.box === "" ? "outside option" : [`${r.number} of `, name(r.box)]);
  place.append(answerTable("The value when one number is lowered or raised",
    ["Number", "Lowered|", "Raised|", "", "First decision"],
    rows.map((r) => el("tr", {}, el("th", { scope: "row" }, title(r)), numberCell(amount(r.low)),
      numberCell(amount(r.high)), el("td", { class: "gauge" }, swingBars(r, value, low, high)),
      el("td", {}, el("span", {}, turnsText(r)))))));
  place.append(el("p", { class: "hint swing-key" }, el("span", { class: "lowered" }), " lowered ",
    el("span", { class: "raised" }), ` raised; the line marks ${amount(value)}, the current value.`));
}

/** Two bars from the current value: to the value with the number lowered, and with it raised. */
function swingBars({ low, high }, value, least, most) {
  const at = (x) => 1 + (98 * (x - least)) / (most - least || 1);
  const bar = (x, mark, y) => svg("rect", { class: mark, x: Math.min(at(x), at(value)), y,
    width: Math.max(Math.abs(at(x) - at(value)), 0.4), height: 4 });
  return svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true",
    class: "swing" }, bar(low, "lowered", 0.5), bar(high, "raised", 5.5),
  svg("rect", { class: "middle", x: at(value) - 0.35, y: 0, width: 0.7, height: 10 }));
}

/** What the first decision becomes, or how far the number may move before the decision changes. */
function turnsText({ turns, firstLow, firstHigh, lookedAt, turnsAt }) {
  const first = (x) => (x === null ? "nothing" : name(x));
  if (turns) {
    return firstLow === firstHigh ? ["begin with ", first(firstLow)]
      : [first(firstLow), " if lowered, ", first(firstHigh), " if raised"];
  }
  if (!lookedAt) return "the same";
  if (turnsAt === null) return "never changes";
  const way = turnsAt > 0 ? "raised" : "lowered";
  return `changes if ${way} by ${percent(Math.abs(turnsAt))}`;
}

function showKnowing(place, rows) {
  const most = Math.max(...rows.map((r) => r.worth)) || 1;
  const bar = (x) => svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none",
    "aria-hidden": "true" }, svg("rect", { x: 0, y: 1, height: 8, width: (100 * x) / most }));
  const worth = (r) => `${amount(r.worth, 1.96 * r.error)}${r.error ? ` ± ${margin(1.96 * r.error)}` : ""}`;
  place.append(answerTable("Value of knowing a box in advance", ["Box", "Worth|", ""],
    rows.map((r) => el("tr", {}, el("th", { scope: "row" }, name(r.box)), numberCell(worth(r)),
      el("td", { class: "gauge" }, bar(r.worth))))));
}

// -- curves -----------------------------------------------------------------------------------------

/** A curve with a line of text that follows its slider. */
function readCurve(place, label, points, say) {
  const text = el("p", { role: "status", class: "reading" });
  const chart = el("div", { class: "curve" });
  place.append(chart, text);
  const shown = new Curve(chart, { label, onmove: (i) => {
    refill(text, ...say(i));
    shown?.slider.setAttribute("aria-valuetext", text.textContent);
  } });
  shown.show(points);
  shown.slider.setAttribute("aria-valuetext", text.textContent);
}

function showBudget(place, found, problem) {
  const { x, value, price, now, gap } = found;
  const what = problem.minimize ? "loss" : "reward";
  const later = problem.timed ? ", discounted" : "";
  readCurve(place, "Budget", { x, value, now, title: inUnit(`spend on average${later}`),
    yTitle: inUnit(`${what} on average${later}`) }, (i) => [
    `With ${amount(x[i])} to spend on average, the ${what} is `, el("b", {}, amount(value[i])),
    ` on average${i === now ? ", as with the policy of this page" : ""}. `,
    price[i] > 0 ? `Each extra ${amount(1)} ${problem.minimize ? "saves" : "returns"} ${amount(price[i])}.`
      : "More budget adds nothing.",
    gap > 0 ? ` The true curve lies above by at most ${margin(gap)}.` : "",
  ]);
}

function showCareful(place, { x, value, first, now, ranges, bold }, problem) {
  const begin = (box) => (box === null ? ["opens nothing"] : ["begins with ", name(box)]);
  const reach = ({ high, low }) => (high === null ? (low ? `above ${amount(low)}` : "any")
    : low ? `${amount(low)} to ${amount(high)}` : `below ${amount(high)}`);
  place.append(answerTable("The first decision by the risk tolerance", ["Risk tolerance", "First decision"],
    ranges.map((r) => el("tr", {}, el("th", { scope: "row" }, reach(r)),
      el("td", {}, el("span", {}, r.first === null ? "open nothing" : ["open ", name(r.first)]))))));
  readCurve(place, "Risk tolerance", { x, value, now, log: true, title: inUnit("risk tolerance"),
    yTitle: inUnit("certainty equivalent") }, (i) => [
    `With a risk tolerance of ${amount(x[i])} the search ${problem.minimize ? "costs" : "is worth"} `
      + "as much as a sure ",
    el("b", {}, amount(value[i])), " and ", ...begin(first[i]),
    `. For a searcher who ignores risk the value is ${amount(bold)}.`,
  ]);
}
