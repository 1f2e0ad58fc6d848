// The boxes as a list with indents: to choose one, and to hang one under another by dragging or
// with the keyboard.

import { range } from "../page/draw.js";
import { about, el, percent, refill } from "../page/text.js";
import { childrenOf, isEndless } from "./edit.js";

const LONG = 200; // with more rows, rows out of sight are not laid out
const SEARCHED = 12; // with this many rows, a search field appears

/** `act` has choose(key), move(key, parent), add(parent), remove(key). */
export class Outline {
  constructor(place, act) {
    this.act = act;
    this.rows = new Map();
    this.tree = el("div", { role: "tree", "aria-label": "Boxes", class: "tree",
      onkeydown: (event) => this.#key(event) });
    this.root = el("div", { class: "to-root" }, "Drop here if no other box must be opened first");
    this.find = el("input", { type: "search", id: "find", autocomplete: "off", spellcheck: "false",
      oninput: () => this.#filter(), onkeydown: (event) => this.#findKey(event) });
    this.hits = el("span", { class: "hint", role: "status" });
    this.search = el("p", { class: "find" }, el("label", {}, "Find a box ", this.find), this.hits);
    refill(place, this.search, this.#head(), this.tree, this.root);
  }

  show(doc, chosen, problem, solved) {
    this.doc = doc;
    this.chosen = chosen;
    const order = inOrder(doc);
    const kept = new Map();
    const place = new Map(doc.boxes.map((box, v) => [box.key, v]));
    for (const [box, level] of order) {
      const row = this.rows.get(box.key) ?? this.#row(box.key);
      kept.set(box.key, row);
      this.#fill(row, box, level, problem, solved, place.get(box.key));
    }
    const before = [...this.rows.keys()];
    this.rows = kept;
    const now = [...kept.keys()];
    if (before.length !== now.length || before.some((key, i) => key !== now[i])) {
      this.tree.replaceChildren(...[...kept.values()].map((row) => row.line));
    }
    this.all = now;
    this.search.hidden = now.length < SEARCHED;
    this.#filter();
    this.tree.classList.toggle("long", now.length > LONG);
    this.tree.parentElement.hidden = !doc.boxes.length;
  }

  focus(key) {
    this.rows.get(key)?.line.focus();
  }

  /** Only boxes with these letters in their names; all if there are none. */
  #filter() {
    const wanted = this.search.hidden ? "" : this.find.value.trim().toLocaleLowerCase();
    const fits = (key) => this.rows.get(key).said.name.toLocaleLowerCase().includes(wanted);
    this.order = wanted ? this.all.filter(fits) : this.all;
    const shown = new Set(this.order);
    for (const [key, row] of this.rows) row.line.hidden = !shown.has(key);
    this.hits.textContent = wanted ? `${this.order.length} of ${this.all.length}` : "";
  }

  /** From the field to the first box that was found, or to all boxes again. */
  #findKey(event) {
    if (event.key === "Escape" && this.find.value) {
      this.find.value = "";
      this.#filter();
    } else if ((event.key === "Enter" || event.key === "ArrowDown") && this.order.length) {
      this.act.choose(this.order[0]);
      this.focus(this.order[0]);
    } else return;
    event.preventDefault();
  }

  #head() {
    return el("div", { class: "tree-head", "aria-hidden": "true" }, el("span", {}, "Box"),
      el("span", {}, "Index"), el("span", {}, "Opened"));
  }

  #row(key) {
    const parts = { name: el("bdi"), index: el("span"), opened: el("span") };
    const handle = el("span", { class: "handle", "aria-hidden": "true", title: "Drag under another box",
      onpointerdown: (event) => this.#drag(event, key) }, "⠿");
    const line = el("div", { role: "treeitem", class: "row", "data-key": key,
      onclick: () => this.act.choose(key) },
      el("span", { class: "name" }, handle, parts.name), parts.index, parts.opened);
    return { line, said: {}, ...parts };
  }

  #fill(row, box, level, problem, solved, v) {
    const said = {
      name: `${box.name}${box.count === 1 ? "" : ` ×${box.count}`}${isEndless(box) ? " …" : ""}`,
      index: problem ? range(problem.boxes[v].index) : "",
      opened: solved ? howOften(problem, v, solved.opened[v]) : "",
    };
    for (const [key, text] of Object.entries(said)) {
      if (row.said[key] !== text) row[key].textContent = text;
    }
    row.said = said;
    const { line } = row;
    if (row.level !== level) {
      row.level = level;
      line.setAttribute("aria-level", level);
      line.style.setProperty("--level", Math.min(level - 1, 12));
    }
    const chosen = box.key === this.chosen;
    if (row.chosen !== chosen) {
      row.chosen = chosen;
      line.setAttribute("aria-selected", String(chosen));
      line.tabIndex = chosen ? 0 : -1;
    }
  }

  // -- keyboard -----------------------------------------------------------------------------------

  #key(event) {
    const at = this.order.indexOf(this.chosen);
    if (at < 0 || event.ctrlKey || event.metaKey) return;
    const box = this.doc.boxes.find((b) => b.key === this.chosen);
    const go = (i) => {
      const key = this.order[Math.max(0, Math.min(this.order.length - 1, i))];
      this.act.choose(key);
      this.focus(key);
    };
    if (event.altKey && event.key === "ArrowRight") this.act.move(box.key, this.#sibling(box));
    else if (event.altKey && event.key === "ArrowLeft") this.act.move(box.key, this.#above(box));
    else if (event.altKey) return;
    else if (event.key === "ArrowDown") go(at + 1);
    else if (event.key === "ArrowUp") go(at - 1);
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(this.order.length - 1);
    else if (event.key === "Delete") this.act.remove(box.key);
    else if (event.key === "Enter") this.act.edit();
    else return;
    event.preventDefault();
  }

  /** The box before among those with the same parent. */
  #sibling(box) {
    const all = childrenOf(this.doc, box.parent);
    return all[all.indexOf(box) - 1]?.key;
  }

  #above(box) {
    return box.parent === null ? undefined
      : this.doc.boxes.find((b) => b.key === box.parent).parent;
  }

  // -- dragging, with a mouse, a pen or a finger --------------------------------------------------

  #drag(event, key) {
    event.preventDefault();
    this.act.choose(key);
    const handle = event.currentTarget;
    handle.setPointerCapture(event.pointerId);
    let target = null;
    const light = (element) => {
      target?.classList.remove("target");
      target = element;
      target?.classList.add("target");
    };
    const stop = () => {
      light(null);
      this.root.classList.remove("ready");
      handle.onpointermove = handle.onpointerup = handle.onpointercancel = null;
      removeEventListener("keydown", escape, true);
    };
    const escape = (e) => {
      if (e.key !== "Escape") return;
      e.stopPropagation();
      stop();
    };
    this.root.classList.add("ready");
    handle.onpointermove = (e) => {
      const under = document.elementFromPoint(e.clientX, e.clientY);
      const row = under?.closest(".row");
      light(row && row.dataset.key !== String(key) ? row : under?.closest(".to-root"));
    };
    handle.onpointerup = () => {
      const to = target;
      stop();
      if (to) this.act.move(key, to === this.root ? null : Number(to.dataset.key));
    };
    handle.onpointercancel = stop;
    addEventListener("keydown", escape, true);
  }
}

/** The chance that a box is opened, or how many of its copies are on average. */
function howOften(problem, v, opened) {
  if (problem.single[v]) return percent(opened);
  return opened > 0 && opened < 0.001 ? "<0.001" : about(opened);
}

/** The boxes with their levels, each before those behind it. */
function inOrder(doc) {
  const below = new Map();
  for (const box of doc.boxes) {
    if (!below.has(box.parent)) below.set(box.parent, []);
    below.get(box.parent).push(box);
  }
  const order = [];
  const stack = (below.get(null) ?? []).map((box) => [box, 1]).reverse();
  while (stack.length) {
    const [box, level] = stack.pop();
    order.push([box, level]);
    for (const child of (below.get(box.key) ?? []).reverse()) stack.push([child, level + 1]);
  }
  return order;
}
