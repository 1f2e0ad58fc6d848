// One box in detail: its name and parent, its cost, its states and their chances.

import { amount, el, name, number, refill } from "../page/text.js";
import {
  addState, base, boxOf, changeBox, childrenOf, isEndless, removeState, setChance, setEndless, setPrice,
  setReward, setStateName, shapePrice, stateTitle, timeOf, within,
} from "./edit.js";
import { Fields, readNumber } from "./fields.js";

const MANY = 1500; // with more chances, they are not shown one by one
const CLOSE = 1e-9; // as in Python: chances must sum to 1 up to this

const PRICES = { cost: "Cost", duration: "Duration", factor: "Factor" };

/** `act` has change(document -> document, tag), move(key, parent), add(parent), remove(key). */
export class Editor {
  constructor(place, act) {
    this.place = place;
    this.act = act;
    this.fields = new Fields(act.change);
    this.shape = "";
  }

  show(doc, key, problem) {
    const box = boxOf(doc, key);
    this.place.hidden = !box;
    if (!box) {
      this.shape = "";
      return;
    }
    const up = box.parent === null ? null : boxOf(doc, box.parent);
    const titles = up ? up.rewards.map((_, s) => stateTitle(up, s)) : [];
    const shape = JSON.stringify([key, box.parent, up?.name, titles, box.rewards.length,
      this.#shapeOf(doc, box), box.states === null, isEndless(box),
      childrenOf(doc, key).length > 0]);
    if (shape !== this.shape) {
      this.shape = shape;
      this.#keepingFocus(() => this.#build(doc, box, up, titles));
    }
    this.fields.follow(doc);
    this.#follow(doc, box, problem);
  }

  /** Which prices there are, and what they depend on. */
  #shapeOf(doc, box) {
    const rows = [box.cost, ...(doc.time ? [timeOf(doc, box)] : [])];
    return [doc.time, ...rows.map((matrix) => [matrix.length, matrix[0].length])];
  }

  focus() {
    this.place.querySelector("input")?.focus();
  }

  /** Return the focus to the field or button that replaced the one in focus before. */
  #keepingFocus(build) {
    const mark = (x) => x.id || x.getAttribute("aria-label");
    const before = document.activeElement;
    const held = this.place.contains(before) ? mark(before) : null;
    build();
    const all = [...this.place.querySelectorAll("button, input, select")];
    if (held) all.find((x) => mark(x) === held)?.focus();
  }

  // -- what stands there ------------------------------------------------------------------------

  #build(doc, box, up, titles) {
    const { key } = box;
    this.fields.clear();
    const f = this.fields;
    const of = (d) => boxOf(d, key);
    const title = f.text("Name of the box", (d) => of(d).name,
      (d, text) => changeBox(d, key, () => ({ name: text })), { width: 18 });
    title.classList.add("title");
    const count = f.number("Copies of the box", (d) => of(d).count,
      (d, n) => changeBox(d, key, () => ({ count: n })), { width: 4 });
    refill(this.place,
      el("div", { class: "line head" }, el("label", {}, "Name ", title), this.#parents(doc, box),
        el("label", {}, "Copies ", count)),
      this.#price("cost", box.cost, box, up, titles),
      doc.time ? this.#price(doc.time, timeOf(doc, box), box, up, titles) : null,
      this.#states(box, up, titles),
      el("p", { class: "hint" }, "A number that you are not sure of can be a range: 80/100/130."),
      up && !childrenOf(doc, key).length ? this.#endless(box) : null,
      el("div", { class: "line" },
        el("button", { type: "button", id: "add-state",
          onclick: () => this.act.change((d) => addState(d, key), null, "adding a state") },
          "Add a state"),
        el("button", { type: "button", id: "add-behind", onclick: () => this.act.add(key) },
          "Add a box behind it"),
        el("button", { type: "button", id: "remove", onclick: () => this.act.remove(key) },
          "Remove this box")));
  }

  /** A list of all boxes that may come before this one; filled when it is used. */
  #parents(doc, box) {
    const up = box.parent === null ? null : boxOf(doc, box.parent);
    const option = (text, value) => el("option", { value }, text);
    const list = el("select", { id: "parent", "aria-label": "Opened after",
      onchange: () => this.act.move(box.key, list.value === "" ? null : Number(list.value)) });
    const fill = (now) => {
      const inside = within(now, box.key);
      const others = now.boxes.filter((b) => !inside.has(b.key));
      refill(list, option("no other box", ""), others.map((b) => option(b.name, b.key)));
      list.value = box.parent ?? "";
    };
    refill(list, up ? option(up.name, up.key) : option("no other box", ""));
    const now = () => fill(this.act.document());
    list.addEventListener("focus", now);
    list.addEventListener("pointerdown", now);
    return el("label", {}, "Opened after ", list);
  }

  #endless(box) {
    const tick = el("input", { type: "checkbox", id: "endless", ".checked": isEndless(box),
      onchange: () => this.act.change((d) => setEndless(d, box.key, tick.checked), null,
        `letting ${box.name} ${tick.checked ? "continue without end" : "end"}`) });
    return el("p", {}, el("label", {}, tick,
      " Continues without end: each box is followed by another one like it"));
  }

  /** The cost of a box, its duration or its factor; `matrix` as it is now. */
  #price(what, matrix, box, up, titles) {
    const { key } = box;
    const byParent = matrix.length > 1;
    const byOwn = matrix[0].length > 1;
    const forms = [[what === "cost" ? "one price" : "one number", false, false],
      ...(up ? [[`by what ${up.name} showed`, true, false]] : []),
      ["by what it shows", false, true],
      ...(up ? [["by both", true, true]] : [])];
    const now = forms.findIndex(([, p, o]) => p === byParent && o === byOwn);
    const form = el("select", { id: `${what}-form`, "aria-label": `What the ${what} depends on`,
      onchange: () => this.act.change((d) => shapePrice(d, key, what, ...forms[form.value].slice(1)),
        null, `choosing what the ${what} depends on`) },
      forms.map(([text], i) => el("option", { value: i, ".selected": i === Math.max(0, now) }, text)));
    const rows = (d) => (what === "cost" ? boxOf(d, key).cost : timeOf(d, boxOf(d, key)));
    const field = (s, y) => {
      const after = byParent ? `after ${titles[s]}` : "";
      const where = [after, byOwn ? `if it shows ${stateTitle(box, y)}` : ""];
      return this.fields.number(`${PRICES[what]} ${where.filter(Boolean).join(", ")}`.trim(),
        (d) => (d.time === what || what === "cost" ? rows(d)[s]?.[y] ?? "" : ""),
        (d, x) => setPrice(d, key, what, s, y, x));
    };
    const table = matrix.map((row, s) => el("div", { class: "line prices" },
      byParent ? el("span", { class: "after" }, "after ", name(titles[s])) : null,
      row.map((_, y) => el("label", {}, byOwn ? [name(stateTitle(box, y)), " "] : "", field(s, y)))));
    const single = !byParent && !byOwn;
    return el("div", { class: "cost" },
      el("div", { class: "line" }, el("span", { class: "word" }, PRICES[what]),
        single ? table[0].querySelector("input") : null, form),
      single ? null : table);
  }

  /** A row for each state, a column of chances for each state of the parent. */
  #states(box, up, titles) {
    if (box.law.length * box.rewards.length > MANY) {
      this.sums = [];
      return el("p", { class: "hint" }, `Its ${box.law.length} by ${box.rewards.length} chances are `,
        "too many to edit here. They are kept unchanged.");
    }
    const heads = up ? titles.map((t) => ["after ", name(t)]) : ["chance"];
    this.sums = heads.map(() => ({ sum: el("td"), index: el("td") }));
    const foot = (title, key, last) => el("tr", {}, el("th", { scope: "row", colspan: 2 }, title),
      this.sums.map((cells) => cells[key]), last);
    return el("div", { class: "wide" }, el("table", { class: "law" },
      el("caption", {},
        el("span", {}, "What it may show", up ? [", by what ", name(up.name), " showed"] : "")),
      el("thead", {}, el("tr", {},
        ["reward", "name", ...heads].map((t) => el("th", { scope: "col" }, t)), el("td"))),
      el("tbody", {}, box.rewards.map((_, y) => this.#state(box, up, titles, y))),
      el("tfoot", {}, foot("sum", "sum", el("td")), foot("index", "index", el("td")))));
  }

  #state(box, up, titles, y) {
    const { key } = box;
    const f = this.fields;
    const reward = f.number(`Reward of state ${y + 1}`, (d) => boxOf(d, key).rewards[y] ?? null,
      (d, x) => setReward(d, key, y, x), { empty: null, placeholder: "none" });
    const title = f.text(`Name of state ${y + 1}`, (d) => boxOf(d, key).states?.[y] ?? "",
      (d, text) => setStateName(d, key, y, text), { width: 8, placeholder: "its reward" });
    const chance = (s) => f.number(
      `Chance of state ${y + 1}${up ? ` after ${up.name} shows ${titles[s]}` : ""}`,
      (d) => boxOf(d, key).law[s]?.[y] ?? "", (d, p) => setChance(d, key, s, y, p));
    const remove = el("button", { type: "button", class: "small", title: `Remove state ${y + 1}`,
      "aria-label": `Remove state ${y + 1}`, ".disabled": box.rewards.length === 1,
      onclick: () => this.act.change((d) => removeState(d, key, y), null,
        `removing state ${y + 1}`) }, "×");
    const cells = [reward, title, ...box.law.map((_, s) => chance(s)), remove];
    return el("tr", {}, cells.map((x) => el("td", {}, x)));
  }

  /** Sums and indices, which change while one types. */
  #follow(doc, box, problem) {
    const v = doc.boxes.indexOf(box);
    this.sums.forEach(({ sum: cell, index }, s) => {
      const row = box.law[s];
      const sum = row.reduce((a, p) => a + Number(base(p)), 0);
      const right = Math.abs(sum - 1) <= CLOSE;
      cell.textContent = Number.isFinite(sum) ? number(sum) : "?";
      cell.classList.toggle("wrong", !right);
      cell.title = right ? "" : "Chances must sum to 1";
      index.textContent = problem ? amount(problem.boxes[v].index[s]) : "";
    });
    for (const input of this.place.querySelectorAll("input.figure")) {
      const bad = input.value.trim() === "" ? !input.placeholder
        : typeof base(readNumber(input.value)) !== "number";
      input.setAttribute("aria-invalid", String(bad));
    }
  }
}
