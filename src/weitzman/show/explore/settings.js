// What holds for all boxes: what counts, the outside option, and the terms: time, risk, prizes, unit.

import { el, refill } from "../page/text.js";
import { setTerm, setTime } from "./edit.js";
import { Fields } from "./fields.js";

const TIMES = [
  ["", "time does not count"],
  ["duration", "durations and a rate"],
  ["factor", "factors of what comes later"],
];

/** `act` has change(document -> document, tag, what) and add(parent). */
export class Settings {
  constructor(place, act) {
    this.act = act;
    this.fields = new Fields(act.change);
    this.objective = this.#list("objective", "What counts", [
      ["maximize", "the best reward found, less all costs"],
      ["minimize", "the least loss found, plus all costs"],
    ], (doc, x) => ({ ...doc, objective: x }));
    this.time = this.#list("time", "Time", TIMES, setTime);
    const outside = this.fields.number("Outside option", (doc) => doc.outside,
      (doc, x) => ({ ...doc, outside: x }), { empty: null, placeholder: "none", width: 6 });
    outside.id = "outside";
    this.rate = el("label", {}, "Rate ", this.#term("rate", "Rate of discounting", "0"));
    this.terms = el("details", { class: "terms" },
      el("summary", {}, "Time, risk, several prizes, unit"),
      el("label", {}, "Time ", this.time), this.rate,
      el("label", {}, "Risk tolerance ", this.#term("risk_tolerance", "Risk tolerance", "none")),
      el("label", {}, "Prizes ", this.#term("prizes", "Prizes, one from each tree", "1")),
      el("label", {}, "Unit ", this.#unit()));
    refill(place,
      el("button", { type: "button", id: "add-root", onclick: () => act.add(null) }, "Add a box"),
      el("label", {}, "What counts ", this.objective),
      el("label", {}, "Without opening anything you get ", outside), this.terms);
  }

  show(doc) {
    this.fields.follow(doc);
    this.objective.value = doc.objective;
    this.time.value = doc.time;
    this.rate.hidden = doc.time !== "duration";
    const { risk_tolerance: risk, prizes } = doc.terms;
    if (!this.shown && (doc.time || risk !== undefined || prizes !== undefined)) {
      this.terms.open = this.shown = true;
    }
  }

  #list(id, label, options, set) {
    const list = el("select", { id, "aria-label": label,
      onchange: () => this.act.change((doc) => set(doc, list.value), null,
        `choosing ${label.toLowerCase()}`) },
      options.map(([value, text]) => el("option", { value }, text)));
    return list;
  }

  #term(key, label, placeholder) {
    const field = this.fields.number(label, (doc) => doc.terms[key] ?? null,
      (doc, x) => setTerm(doc, key, x), { empty: null, placeholder, width: 6 });
    field.id = key.replace("_", "-");
    return field;
  }

  #unit() {
    const field = this.fields.text("Unit of rewards and costs", (doc) => doc.terms.unit ?? "",
      (doc, text) => setTerm(doc, "unit", text), { width: 6, placeholder: "none" });
    field.id = "unit";
    return field;
  }
}
