// More questions about the boxes: which numbers matter, what knowing is worth, budgets, risk. They
// take seconds, so the page asks them only while they are visible.

import { showAnswer } from "../page/answers.js";
import { showProfile } from "../page/profile.js";
import { el, percent, refill } from "../page/text.js";
import { asked } from "./ask.js";
import { toFile } from "./edit.js";

const PARTS = {
  swings: "Which numbers matter",
  knowing: "Value of perfect information",
  budget: "If the budget is limited",
  careful: "Risk attitude",
};
const LATER = 600; // milliseconds after the last change before they are asked again

/** The risk profile below the boxes, asked for once nothing has changed for a moment. */
export class Profile {
  constructor(place) {
    this.picture = el("div", {});
    this.text = el("p", { class: "hint", role: "status" });
    this.fold = el("details", { class: "risk", open: true, ontoggle: () => this.#ask(0) },
      el("summary", {}, "Risk profile"), this.text, this.picture);
    refill(place, this.fold);
    this.place = place;
    this.shown = null;
  }

  show(solved, current) {
    this.place.hidden = !solved;
    this.solved = current ? solved : null;
    if (current && solved) this.#ask(LATER);
  }

  #ask(wait) {
    clearTimeout(this.timer);
    if (this.fold.open && this.solved && this.shown !== this.solved) {
      this.timer = setTimeout(() => this.#fetch(), wait);
    }
  }

  async #fetch() {
    const { solved } = this;
    if (!solved) return; // something was changed in the meantime
    const answer = await asked("profile", { id: solved.id });
    if (solved !== this.solved) return;
    this.shown = solved;
    const { laws, nothing, worse, how, message } = answer;
    const place = el("div", {});
    refill(this.picture, answer.ok ? place : null);
    if (!answer.ok) {
      this.text.textContent = message;
      return;
    }
    const chance = `Chance of ending worse than doing nothing: ${percent(worse)} (${how}).`;
    this.text.textContent = nothing === null ? "" : chance;
    showProfile(place, laws, { nothing, minimize: this.minimize, high: 220 });
  }
}

export class Questions {
  constructor(place) {
    this.place = place;
    this.parts = Object.fromEntries(Object.keys(PARTS).map((key) => [key, el("div", {})]));
    this.status = el("p", { class: "hint", role: "status" });
    this.fold = el("details", { class: "questions", ontoggle: () => this.#ask(0) },
      el("summary", {}, "More questions: what matters, knowing, budgets, risk"), this.status,
      Object.entries(PARTS).map(([key, title]) => el("section", { "aria-label": title },
        el("h3", {}, title), this.parts[key])));
    refill(place, this.fold);
    this.answered = null;
  }

  show(doc, problem, current) {
    this.place.hidden = !doc.boxes.length;
    Object.assign(this, { doc, problem });
    if (current && this.answered !== doc) this.#ask(LATER);
  }

  #ask(wait) {
    clearTimeout(this.timer);
    if (this.fold.open && this.answered !== this.doc) {
      this.timer = setTimeout(() => this.#fetch(), wait);
    }
  }

  async #fetch() {
    const { doc, problem } = this;
    this.status.textContent = "Solving with other numbers …";
    const answer = await asked("answers", { document: toFile(doc) });
    if (doc !== this.doc) return;
    this.answered = doc;
    this.status.textContent = answer.ok ? "" : answer.message;
    for (const [key, place] of Object.entries(this.parts)) {
      if (answer.ok) showAnswer(place, key, answer, problem);
      else refill(place);
    }
  }
}
