// What if one number of the chosen box were different: a curve of exact answers, and a slider on it.

import { Curve } from "../page/chart.js";
import { amount, el, inUnit, name, number, refill } from "../page/text.js";
import { asked } from "./ask.js";
import { boxOf, setChances, setPrice, setReward, setTerm, stateTitle, timeOf, toFile } from "./edit.js";

const WAIT = 250; // milliseconds after the last change before the curve is asked for
const MOST = 80; // numbers to choose from
const TERMS = { rate: "rate", risk_tolerance: "risk tolerance" };
const PLAIN = ["chance", "duration", "factor", "rate"]; // numbers without a unit
const LARGE = 600; // boxes beyond which the curve waits to be opened

/** `act` has change(document -> document, tag, what). */
export class WhatIf {
  constructor(place, act) {
    this.act = act;
    this.which = el("select", { id: "what-if-which", onchange: () => this.#ask(0) });
    this.text = el("p", { class: "reading", role: "status" });
    this.use = el("button", { type: "button", id: "use", onclick: () => this.#use() }, "Use this number");
    const chart = el("div", { class: "curve" });
    this.body = el("div", {}, el("label", {}, "If ", this.which, " were different"), chart, this.text,
      this.use);
    this.fold = el("details", { class: "what-if", ontoggle: () => this.#ask(0) },
      el("summary", {}, "What if?"), this.body);
    refill(place, this.fold);
    this.curve = new Curve(chart, { label: "The number, as it might be", onmove: (i) => this.#say(i) });
    this.curve.place.hidden = this.use.hidden = true; // until there is a curve
    this.shape = "";
    this.asked = null;
    this.opened = false;
  }

  show(doc, key, ready) {
    const box = boxOf(doc, key);
    this.fold.hidden = !box;
    if (!box) return;
    Object.assign(this, { doc, key });
    const up = box.parent === null ? null : boxOf(doc, box.parent);
    const list = numbers(doc, box, up);
    const shape = JSON.stringify([key, list]);
    if (shape !== this.shape) this.#list(list, shape);
    if (this.drawn !== key) this.#clear(); // no curve of another box
    if (!this.opened && doc.boxes.length <= LARGE) this.fold.open = this.opened = true;
    if (ready && this.asked !== doc) this.#ask(WAIT);
  }

  #list(list, shape) {
    const before = this.which.value;
    this.shape = shape;
    this.list = list;
    refill(this.which, list.map(({ title, id }) => el("option", { value: id }, title)));
    this.which.value = list.some(({ id }) => id === before) ? before : list[0].id;
    this.asked = null;
  }

  #clear() {
    this.curve.place.hidden = this.use.hidden = true;
    refill(this.text);
  }

  #ask(wait) {
    clearTimeout(this.timer);
    if (this.fold.open) this.timer = setTimeout(() => this.#fetch(), wait);
  }

  async #fetch() {
    const { doc, key } = this;
    this.asked = doc;
    const chosen = this.list.find(({ id }) => id === this.which.value);
    const box = doc.boxes.findIndex((b) => b.key === key);
    const { what, row, state } = chosen;
    const answer = await asked("curve", { document: toFile(doc), box, what, row, state });
    if (doc !== this.doc || key !== this.key || chosen.id !== this.which.value) {
      if (this.asked === doc) this.asked = null; // undo may lead here again
      return;
    }
    Object.assign(this, { chosen, drawn: key });
    this.curve.place.hidden = this.use.hidden = !answer.ok;
    if (!answer.ok) {
      refill(this.text, answer.message);
      return;
    }
    const yTitle = doc.terms.risk_tolerance ? "certainty equivalent"
      : doc.objective === "minimize" ? "loss and costs" : "expected value";
    this.curve.show({ ...answer, title: PLAIN.includes(chosen.what) ? chosen.axis : inUnit(chosen.axis),
      yTitle: inUnit(yTitle), log: chosen.what === "risk_tolerance" });
  }

  #say(i) {
    const { x, value, first, now } = this.curve.points;
    const { doc, chosen } = this;
    const [was, would] = [value[now], value[i]];
    const verb = doc.objective === "minimize" ? "cost a total of " : "be worth ";
    const say = PLAIN.includes(chosen.what) ? number : amount;
    const more = i === now ? ", as it is now" : ` (now ${amount(was)} at ${say(x[now])})`;
    const start = first[i] === null ? "and nothing would be opened." : ["and begin with ",
      name(first[i]), "."];
    refill(this.text, `At ${say(x[i])} the search would ${verb}`, el("b", {}, amount(would)),
      `${more}, `, start);
    this.curve.slider.setAttribute("aria-valuetext", `${chosen.title}: ${this.text.textContent}`);
    this.use.disabled = i === now;
  }

  #use() {
    const { row, state, what, title } = this.chosen;
    const x = Number(this.curve.points.x[this.curve.at].toPrecision(6));
    const { key } = this;
    const priced = (doc) => {
      const rows = what === "cost" ? boxOf(doc, key).cost : timeOf(doc, boxOf(doc, key));
      const at = [Math.min(row, rows.length - 1), Math.min(state, rows[0].length - 1)];
      return setPrice(doc, key, what, ...at, x);
    };
    const set = {
      reward: (doc) => setReward(doc, key, state, x),
      chance: (doc) => setChances(doc, key, row, state, x),
      rate: (doc) => setTerm(doc, what, x),
      risk_tolerance: (doc) => setTerm(doc, what, x),
    };
    const of = what in TERMS ? "" : ` of ${boxOf(this.doc, key).name}`;
    this.act.change(set[what] ?? priced, null, `setting ${title}${of} to ${number(x)}`);
  }
}

/** All numbers of a box, and those of the whole search, that can be different. */
function numbers(doc, box, up) {
  const list = [];
  const add = (what, row, state, title, axis) =>
    list.push({ what, row, state, title, axis, id: `${what}-${row}-${state}` });
  const after = (s) => (up ? ` after ${stateTitle(up, s)}` : "");
  const prices = (what, matrix, axis) => matrix.forEach((row, s) => row.forEach((_, y) => {
    const when = (matrix.length > 1 ? after(s) : "")
      + (row.length > 1 ? ` if it shows ${stateTitle(box, y)}` : "");
    add(what, s, y, `the ${what}${when}`, axis);
  }));
  prices("cost", box.cost, "cost of opening");
  if (doc.time) prices(doc.time, timeOf(doc, box), doc.time);
  for (const [what, title] of Object.entries(TERMS)) {
    const there = what === "rate" ? doc.time === "duration" : typeof doc.terms[what] === "number";
    if (there) add(what, 0, 0, `the ${title} of the whole search`, title);
  }
  box.rewards.forEach((r, y) => {
    if (r !== null) add("reward", 0, y, `the reward of ${stateTitle(box, y)}`, "reward");
  });
  if (box.rewards.length > 1) box.law.forEach((row, s) => row.forEach((_, y) =>
    add("chance", s, y, `the chance of ${stateTitle(box, y)}${after(s)}`, "chance")));
  return list.slice(0, MOST);
}
