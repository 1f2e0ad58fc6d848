// The stepper: shows what to open next and why, takes what was seen, goes back, plays futures.

import { drawing, lookOf } from "./draw.js";
import { amount, el, margin, name, number, percent, plural, refill, svg } from "./text.js";
import { Walk, randomness } from "./walk.js";

const FUTURES = 2000;
const OTHERS = 100; // boxes offered instead of the best one
const STATES = 60; // states offered as buttons; more states become a list

/**
 * A stepper in an element. `expect(walk)` returns the value of continuing: a promise of {value, error};
 * without `expect`, futures are played. `onchange(walk)` is called after each step.
 */
export class Stepper {
  constructor(place, problem, { given = [], value = null, expect = null, onchange = null } = {}) {
    this.place = place;
    this.options = { value, expect, onchange };
    this.seed = 1;
    this.other = null; // a group that the user opens instead
    this.parts = {
      advice: el("p", { class: "advice", role: "status", "aria-live": "polite" }),
      answers: el("div", { class: "answers", role: "group" }),
      others: el("p", { class: "others" }),
      standing: el("dl", { class: "standing" }),
      moves: el("div", { class: "moves" }),
      played: el("div", { class: "played", role: "status", "aria-live": "polite" }),
      history: el("ol", { class: "history", "aria-label": "What was opened so far" }),
    };
    refill(place, ...Object.values(this.parts));
    this.#buttons();
    this.load(problem, given, value);
  }

  /** Show another problem, or changed numbers; steps that still make sense are kept. */
  load(problem, given = [], value = null) {
    const before = this.walk?.log.slice(this.walk.given.length) ?? [];
    const old = this.walk?.problem;
    this.walk = new Walk(problem, given);
    this.options.value = value;
    this.other = null;
    for (const step of before) if (!this.#retell(old, step)) break;
    this.show();
  }

  tell(y) {
    const group = this.other ?? this.walk.next();
    if (!group) return;
    this.walk.tell(group, y);
    this.other = null;
    this.show();
    this.#focus();
  }

  /** Take the prize that is to be taken now. */
  take() {
    const prize = this.walk.nextPrize();
    if (!prize) return;
    this.walk.take(prize);
    this.show();
    this.#focus();
  }

  undo() {
    this.walk.undo();
    this.other = null;
    this.show();
  }

  restart() {
    this.walk.restart();
    this.other = null;
    this.show();
  }

  /** Open a box that is not the best one; null for the best one after all. */
  prefer(group) {
    this.other = group;
    this.show();
  }

  /** Let chance answer until it is best to stop. */
  playOne() {
    const random = this.#random();
    this.other = null;
    while (!this.walk.over && !this.walk.hidden()) {
      const next = this.walk.next();
      if (next) this.walk.tell(next, this.walk.draw(next, random));
      else this.walk.take(this.walk.nextPrize());
    }
    this.show();
  }

  playMany() {
    const payoffs = this.walk.futures(FUTURES, this.#random()).sort((a, b) => a - b);
    const { mean, error } = this.walk.problem.mean(payoffs);
    const at = (q) => amount(payoffs[Math.floor(q * (payoffs.length - 1))]);
    const { minimize, risk } = this.walk.problem;
    const what = risk !== null ? "certainty equivalent" : minimize ? "mean total" : "mean payoff";
    refill(
      this.parts.played,
      el("p", {}, `${plural(FUTURES, "random future")} from here: ${what} `,
        el("b", {}, amount(mean, 1.96 * error)), ` ± ${margin(1.96 * error)}; one in twenty is below `,
        `${at(0.05)}, one in twenty above ${at(0.95)}.`),
      histogram(payoffs),
    );
  }

  show() {
    const { walk } = this;
    const group = this.other ?? walk.next();
    const hidden = this.other ? null : walk.hidden();
    refill(this.parts.advice, ...this.#advice(hidden));
    this.#showAnswers(hidden ? null : group);
    this.#showOthers(hidden);
    this.#showStanding();
    this.#showHistory();
    refill(this.parts.played);
    this.back.disabled = this.again.disabled = !walk.canUndo;
    this.one.disabled = walk.over || hidden !== null;
    this.many.disabled = this.one.disabled || walk.problem.folded !== null;
    this.options.onchange?.(walk);
  }

  #advice(hidden) {
    const { walk } = this;
    if (hidden) {
      const index = amount(walk.problem.sign * hidden[0]);
      return ["Open ", name(hidden[1]), ` (index ${index}). That box is folded away here: use `,
        "“weitzman search” or “weitzman explore” for the remaining steps."];
    }
    if (!this.other) return walk.why();
    return ["Instead of the best box you open ", name(walk.label(this.other)),
      `, with index ${amount(walk.problem.sign * this.other.rank)}. `,
      "Its result counts all the same, and the advice after that is optimal again."];
  }

  #showAnswers(group) {
    const { answers } = this.parts;
    if (!group) return this.#showPrize();
    const { problem } = this.walk;
    const states = problem.possible(group.v, group.row);
    const label = this.walk.label(group);
    answers.setAttribute("aria-label", `What did ${label} show?`);
    const question = el("p", { class: "question" }, "What did ", name(label), " show?");
    if (states.length > STATES) return refill(answers, question, this.#list(group, states));
    return refill(answers, question, states.map(([y, p]) =>
      el("button", { type: "button", class: "answer", "data-state": y, onclick: () => this.tell(y) },
        name(problem.stateText(group.v, y)), el("small", {}, ` ${percent(p)}`))));
  }

  /** The reward to take for good, or nothing. */
  #showPrize() {
    const { answers } = this.parts;
    const prize = this.walk.nextPrize();
    if (!prize) return refill(answers);
    answers.setAttribute("aria-label", "Take a prize");
    return refill(answers, el("button", { type: "button", class: "answer", onclick: () => this.take() },
      `Take ${amount(prize.reward)} from `, name(prize.box)));
  }

  #list(group, states) {
    const { problem } = this.walk;
    const list = el("select", { "aria-label": "State that was seen" }, states.map(([y, p]) =>
      el("option", { value: y }, `${problem.stateText(group.v, y)} (${percent(p)})`)));
    const tell = el("button", { type: "button", onclick: () => this.tell(Number(list.value)) },
      "This one");
    return el("div", { class: "choice" }, list, tell);
  }

  /** A list of what else can be opened. */
  #showOthers(hidden) {
    const { walk } = this;
    const best = walk.next();
    const groups = walk.available().filter((g) => g !== best).sort((a, b) => b.rank - a.rank);
    this.parts.others.hidden = hidden !== null || !groups.length;
    const option = (g, i) => el("option", { value: i, ".selected": g === this.other },
      `${walk.label(g)} (index ${amount(walk.problem.sign * g.rank)})`);
    const list = el("select", { "aria-label": "Open another box instead",
      onchange: () => this.prefer(list.value === "" ? null : groups[list.value]) },
      el("option", { value: "" }, this.other ? "back to the best box" : "choose …"),
      groups.slice(0, OTHERS).map(option));
    refill(this.parts.others, el("label", {}, "Or open another box instead: ", list));
  }

  #showStanding() {
    const { walk } = this;
    const expected = el("dd", { class: "expected" }, "…");
    const line = (title, ...shown) => el("div", {}, el("dt", {}, title), el("dd", {}, ...shown));
    const { minimize, timed } = walk.problem;
    refill(
      this.parts.standing,
      walk.hands ? this.#prizes(line) : this.#best(line),
      line("Spent", amount(walk.spent)),
      timed ? line("Time so far", number(walk.time)) : null,
      line(`If you stop: ${minimize ? "loss and costs" : "payoff"}${timed ? ", discounted" : ""}`,
        walk.payoff === null ? "none" : amount(walk.payoff)),
      walk.next() ? el("div", {}, el("dt", {}, this.#expectedTitle()), expected) : null,
    );
    if (walk.next()) this.#expect(expected);
  }

  #best(line) {
    const { walk } = this;
    const from = walk.bestBox === null ? ["outside option"] : ["from ", name(walk.bestBox)];
    return line(walk.problem.minimize ? "Least loss so far" : "Best so far",
      walk.best === null ? "nothing" : amount(walk.best), el("small", {}, " ", ...from));
  }

  #prizes(line) {
    const { taken, places, held } = this.walk.hands;
    const inHand = [...held.values()].map((s) => amount(s.reward)).join(", ") || "nothing";
    const sum = taken.reduce((total, step) => total + step.reward, 0);
    return [
      line("Prizes taken", `${taken.length} of ${places}`,
        taken.length ? el("small", {}, ` worth ${amount(sum)}`) : null),
      line("In hand, not taken", inHand),
    ];
  }

  #expectedTitle() {
    const { timed, risk } = this.walk.problem;
    if (risk !== null) return "If you continue: certainty equivalent";
    return timed ? "If you continue: expected, discounted" : "If you continue: expected";
  }

  async #expect(place) {
    const { walk } = this;
    const { value, expect } = this.options;
    const steps = walk.log.length;
    let found;
    if (!walk.log.length && value !== null) found = { value, error: 0 };
    else if (expect) found = await expect(walk);
    else if (walk.problem.folded) found = null;
    else found = walk.problem.mean(walk.futures(FUTURES, randomness(7)));
    if (walk !== this.walk || steps !== walk.log.length) return; // the user was faster
    this.expected = found?.value ?? found?.mean ?? null;
    if (!found) refill(place, el("small", {}, "not known here: boxes are folded away"));
    else if (!found.error) refill(place, amount(this.expected));
    else refill(place, amount(this.expected, 1.96 * found.error), el("small", {},
      ` ± ${margin(1.96 * found.error)}, from ${number(FUTURES)} played futures`));
    place.dataset.value = this.expected;
  }

  #showHistory() {
    const { walk } = this;
    const said = (s) => (s.taken ? ["Took ", amount(s.reward), " from ", name(s.box)]
      : [name(s.box), " showed ", name(walk.problem.stateText(s.v, s.y)),
        el("small", {}, ` cost ${amount(s.cost)}`)]);
    refill(this.parts.history, walk.log.map((s, i) =>
      el("li", { class: i < walk.given.length ? "given" : "" }, said(s))));
    this.parts.history.hidden = !walk.log.length;
  }

  #buttons() {
    const button = (text, title, onclick) =>
      el("button", { type: "button", title, onclick }, text);
    this.back = button("Back", "Take back the last answer", () => this.undo());
    this.again = button("Start again", "Take back all answers", () => this.restart());
    this.one = button("Play a future", "Let chance answer until it is best to stop",
      () => this.playOne());
    this.many = button(`Play ${number(FUTURES)} futures`, "Play many random futures and show what they earn",
      () => this.playMany());
    refill(this.parts.moves, this.back, this.again, this.one, this.many);
  }

  /** The pressed button is gone: move the focus to the next answer, or to Back. */
  #focus() {
    const next = this.parts.answers.querySelector("button, select") ?? this.back;
    next.focus({ preventScroll: true });
  }

  #random() {
    this.seed += 1;
    return randomness(this.seed * 2654435761);
  }

  /** Repeat a step of the previous walk, by names, if the box and the state still exist. */
  #retell(old, step) {
    const { problem } = this.walk;
    if (step.taken) {
      const same = this.walk.nextPrize()?.box === step.box;
      if (same) this.walk.take(this.walk.nextPrize());
      return same;
    }
    const title = old.boxes[step.v].name;
    const group = this.walk.available().find((g) =>
      problem.boxes[g.v].name === title && String(g.copy) === String(step.copy));
    if (!group) return false;
    const state = old.stateName(step.v, step.y);
    const found = problem.possible(group.v, group.row)
      .find(([y]) => problem.stateName(group.v, y) === state);
    if (!found) return false;
    this.walk.tell(group, found[0]);
    return true;
  }
}

/** The drawing that goes with a walk: what is open, what can be opened, what is next. */
export function walkDrawing(walk, options) {
  const { problem } = walk;
  const rows = new Map();
  for (const g of walk.available()) if (!rows.has(g.v)) rows.set(g.v, g.row);
  const open = new Set(walk.told.map((s) => s.v));
  const next = walk.next()?.v;
  const look = (v) => {
    const mark = v === next ? "next" : rows.has(v) ? "free" : open.has(v) ? "open" : "closed";
    return lookOf(problem, v, { row: rows.get(v) ?? null, opened: options.opened?.[v], mark });
  };
  const order = [...problem.roots].sort((a, b) => problem.rank(b, 0) - problem.rank(a, 0));
  return drawing(problem, { order: problem.boxes.length > 60 ? order : null, ...options, look });
}

/** Bars of how often a payoff came up. */
function histogram(sorted) {
  const [low, high, bins] = [sorted[0], sorted.at(-1), 28];
  const counts = new Array(bins).fill(0);
  const wide = (high - low) / bins || 1;
  for (const x of sorted) counts[Math.min(bins - 1, Math.floor((x - low) / wide))] += 1;
  return bars(counts, low, high);
}

function bars(counts, low, high) {
  const most = Math.max(...counts);
  const wide = counts.length * 10;
  const tall = (n) => (n ? Math.max(1, (60 * n) / most) : 0);
  return svg(
    "svg",
    { viewBox: `0 0 ${wide} 74`, class: "bars", role: "img",
      "aria-label": `Payoffs from ${amount(low)} to ${amount(high)}` },
    counts.map((n, i) =>
      svg("rect", { x: i * 10 + 1, y: 60 - tall(n), width: 8, height: tall(n) })),
    svg("text", { x: 1, y: 72 }, amount(low)),
    svg("text", { x: wide - 1, y: 72, "text-anchor": "end" }, amount(high)),
  );
}
