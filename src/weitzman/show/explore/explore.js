// The explorer: keeps the document and its past, asks Python about it, and shows what comes back.

import { reveal } from "../page/draw.js";
import { Stepper, walkDrawing } from "../page/stepper.js";
import { el, plural, refill, useWords } from "../page/text.js";
import { asked } from "./ask.js";
import {
  EMPTY, addBox, addState, boxOf, fromFile, moveBox, removeBox, removeState, shapePrice, toFile,
  toProblem, within,
} from "./edit.js";
import { Editor } from "./editor.js";
import { Files } from "./files.js";
import { complaint, headline, toEnter } from "./headline.js";
import { Outline } from "./outline.js";
import { Profile, Questions } from "./questions.js";
import { Settings } from "./settings.js";
import { WhatIf } from "./what_if.js";

// for tests
const edits = { addBox, addState, fromFile, moveBox, removeBox, removeState, shapePrice, toFile };
const DRAWN = 60; // boxes of the drawing
const PATIENCE = 2000; // milliseconds before the user is told that solving takes a while

const at = (id) => document.getElementById(id);
const given = JSON.parse(at("data").textContent);
const begun = given.document ? fromFile(given.document) : EMPTY;

const state = {
  doc: begun,
  past: [],
  future: [],
  chosen: begun.boxes[0]?.key ?? null,
  saved: begun, // the document as it stands in the file
  file: given.file, // the file that Save writes to; null: Save asks for a name
  title: given.file ?? "new boxes", // what the boxes are called
  versions: given.file === null ? {} : { [given.file]: given.version }, // as this tab knows the files
  solved: null, // the last answer, of `solvedDoc`
  solvedDoc: null,
  problem: null,
  message: null,
  tag: null,
};

// -- asking Python --------------------------------------------------------------------------------

let asking = false;

/** Solve the document as it is now; while one answer is awaited, only the newest is asked for. */
async function solveNow() {
  if (asking) return;
  asking = true;
  while (state.solvedDoc !== state.doc) {
    const { doc } = state;
    if (!doc.boxes.length) {
      Object.assign(state, { solved: null, solvedDoc: doc, problem: null, message: null });
      break;
    }
    const missing = toEnter(doc);
    if (missing) {
      Object.assign(state, { solvedDoc: doc, message: missing });
      break;
    }
    const slow = setTimeout(() => announce("Solving takes a while, the first time only …"), PATIENCE);
    const start = performance.now();
    const answer = await asked("solve", { document: toFile(doc) });
    clearTimeout(slow);
    state.solvedDoc = doc;
    state.message = answer.ok ? null : complaint(answer.message);
    if (answer.ok) {
      state.solved = answer;
      state.problem = toProblem(doc, answer);
      state.took = performance.now() - start;
    }
    if (doc === state.doc) break;
  }
  asking = false;
  show();
}

// -- changing the document ------------------------------------------------------------------------

/**
 * Change the document; consecutive typing into one field (the same tag) is one undo step.
 * `what` says what is done, as in "removing B".
 */
function change(edit, tag = null, what = "the last change") {
  if (edit === null) {
    state.tag = null;
    return;
  }
  const doc = edit(state.doc);
  if (!doc || doc === state.doc) return;
  if (tag === null || tag !== state.tag) state.past.push(moment(what));
  Object.assign(state, { doc, tag, future: [] });
  if (!boxOf(doc, state.chosen)) state.chosen = doc.boxes[0]?.key ?? null;
  announce("");
  show();
  keepDraft();
  solveNow();
}

/** Where things stand, and what is done next. */
function moment(what) {
  const { doc, chosen, file, title } = state;
  return { doc, chosen, file, title, what };
}

function travel(from, to, word) {
  if (!from.length) return;
  const { what, ...then } = from.pop();
  to.push(moment(what));
  Object.assign(state, then, { tag: null });
  announce(`${word}: ${what}.`);
  show();
  keepDraft();
  solveNow();
}

// -- the draft: what was not saved survives a reload of this tab ----------------------------------

const DRAFT = `weitzman draft ${given.folder} ${given.file}`;

function keepDraft() {
  try {
    if (state.doc === state.saved) sessionStorage.removeItem(DRAFT);
    else {
      const { doc, file, title, versions } = state;
      sessionStorage.setItem(DRAFT, JSON.stringify({ document: toFile(doc), file, title, versions }));
    }
  } catch { /* there is no room, or no storage: the question before leaving the page remains */ }
}

/** Continue with the draft of this tab; undo leads to what the file holds now. */
function takeDraft() {
  const kept = sessionStorage.getItem(DRAFT);
  if (kept === null) return;
  const { document: draft, ...then } = JSON.parse(kept);
  state.past.push(moment("restoring the changes"));
  Object.assign(state, then, { doc: fromFile(draft) });
  state.chosen = state.doc.boxes[0]?.key ?? null;
  announce("The changes that were not saved are here again. Undo leads to the file.");
}

const undo = () => travel(state.past, state.future, "Undone");
const redo = () => travel(state.future, state.past, "Redone");

const act = {
  document: () => state.doc,
  change,
  choose(key) {
    if (state.chosen === key) return;
    state.chosen = key;
    show();
  },
  edit: () => editor.focus(),
  add(parent) {
    change((doc) => addBox(doc, parent), null, "adding a box");
    state.chosen = state.doc.boxes.at(-1).key;
    show();
    editor.focus();
    editor.place.querySelector("input")?.select();
  },
  move(key, parent) {
    if (parent === undefined) return;
    const moved = moveBox(state.doc, key, parent);
    if (!moved) {
      announce("A box cannot be opened after itself or a box behind it.");
      return;
    }
    const up = parent === null ? null : boxOf(state.doc, parent).name;
    const title = boxOf(state.doc, key).name;
    change(() => moved.doc, null, `moving ${title} ${up === null ? "to the front" : `after ${up}`}`);
    const now = up === null ? "no longer needs another box first" : `is now opened after ${up}`;
    announce(`${title} ${now}. ${moved.note ?? ""}`);
    outline.focus(key);
  },
  remove(key) {
    const gone = within(state.doc, key).size;
    const title = boxOf(state.doc, key).name;
    change((doc) => removeBox(doc, key), null, `removing ${title}`);
    const more = gone > 1 ? ` and ${plural(gone - 1, "box", "boxes")} behind it` : "";
    announce(`${title}${more} removed. Undo brings it back.`);
  },
};

/** Replace all boxes by others, from a file of that name (null: not from a file). */
function load(doc, title, what) {
  change(() => doc, null, `opening ${title}`);
  Object.assign(state, { chosen: doc.boxes[0]?.key ?? null, file: null, title });
  announce(what);
  show();
}

async function openExample() {
  const answer = await asked("example", {});
  const about = "An example: B can be opened after A, and depends on what A showed.";
  if (!answer.ok) alertUser(answer.message);
  else if (state.doc.boxes.length) load(fromFile(answer.document), "the example", about);
  else {
    change(() => fromFile(answer.document), null, "opening the example");
    state.chosen = state.doc.boxes[0].key;
    announce(about);
    show();
  }
}

const files = new Files(at("save-as"), {
  doc: () => state.doc,
  file: () => state.file,
  title: () => state.title,
  version: (file) => state.versions[file],
  saved(doc, file, version) {
    Object.assign(state, { saved: doc, file, title: file });
    state.versions[file] = version;
    keepDraft();
    given.isNew = false;
    show();
  },
  load,
  announce,
  alert: alertUser,
}, given.folder);

// -- what the user sees ---------------------------------------------------------------------------

const outline = new Outline(at("outline"), act);
const editor = new Editor(at("editor"), act);
const whatIf = new WhatIf(at("what-if"), act);
const settings = new Settings(at("settings"), act);
const questions = new Questions(at("questions"));
const profile = new Profile(at("profile"));
let stepper = null;
let notice = given.message;

/** Say what happened, in a line of its own that covers nothing, until something else happens. */
function announce(text) {
  at("live").textContent = text;
}

function alertUser(text) {
  notice = text;
  show();
}

function show() {
  const { doc, problem, solved, solvedDoc } = state;
  useWords(given.words, doc.boxes.flatMap((box) => [box.name, ...(box.states ?? [])]));
  const current = solvedDoc === doc && !state.message;
  const same = (box, v) => box.key === doc.boxes[v].key && box.law.length === doc.boxes[v].law.length;
  const fits = problem && problem.boxes.length === doc.boxes.length && problem.boxes.every(same);
  outline.show(doc, state.chosen, fits ? problem : null, fits ? solved : null);
  editor.show(doc, state.chosen, fits ? problem : null);
  whatIf.show(doc, state.chosen, current);
  settings.show(doc);
  questions.show(doc, problem, current);
  profile.minimize = doc.objective === "minimize";
  profile.show(doc.boxes.length ? solved : null, current);
  showHeadline(current);
  showWalk(current);
  showBar();
  window.__state = { ...state, stepper, current, edits };
}

function showHeadline(current) {
  const { doc, solved, message } = state;
  const empty = !doc.boxes.length;
  at("welcome").hidden = !empty;
  at("settings").hidden = empty;
  document.body.classList.toggle("empty", empty);
  document.body.classList.toggle("stale", !current);
  const wrong = (state.solvedDoc === doc && message) || notice;
  at("alert").hidden = !wrong;
  if (at("alert").textContent !== (wrong ?? "")) at("alert").textContent = wrong ?? "";
  notice = null;
  if (empty || !solved) refill(at("headline"));
  else if (current) refill(at("headline"), headline(doc, solved));
}

async function expectHere(walk) {
  const steps = walk.log.map((s) => (s.taken ? [walk.told[s.at].v, walk.told[s.at].copy]
    : [s.v, s.copy, s.y]));
  const answer = await asked("expect", { id: state.solved.id, steps });
  return answer.ok ? { value: answer.value, error: 0 } : null;
}

let shownProblem = null;
let drawn = [];

function showWalk(current) {
  document.querySelector(".walk").hidden = !state.problem || !state.doc.boxes.length;
  if (current && state.problem && shownProblem !== state.problem) {
    shownProblem = state.problem;
    const { value } = state.solved;
    const onchange = () => stepper && state.solved && showDrawing();
    if (stepper) stepper.load(state.problem, [], value);
    else stepper = new Stepper(at("stepper"), state.problem, { value, expect: expectHere, onchange });
  }
  at("drawing").hidden = !state.doc.boxes.length || !stepper;
  if (stepper && current && state.solved) showDrawing();
}

function showDrawing() {
  const { walk } = stepper;
  const chosen = state.doc.boxes.findIndex((box) => box.key === state.chosen);
  const now = [walk, walk.log.length, walk.problem, chosen];
  if (now.every((x, i) => x === drawn[i])) return;
  const steps = drawn[1];
  drawn = now;
  const keys = walk.problem.boxes.map((box) => box.key);
  const { picture, left } = walkDrawing(walk, {
    opened: state.solved.opened, chosen, most: DRAWN, order: drawOrder(walk.problem, chosen),
    choose: (v) => act.choose(keys[v]),
  });
  const rest = `… and ${plural(left, "box", "boxes")} more, not drawn`;
  const more = left ? el("p", { class: "hint" }, rest) : null;
  const before = [at("drawing").scrollLeft, at("drawing").scrollTop];
  refill(at("drawing"), picture, more);
  [at("drawing").scrollLeft, at("drawing").scrollTop] = before;
  reveal(at("drawing"), steps === walk.log.length ? ".chosen" : ".next");
}

/** Of a large forest, the tree of the chosen box first, then the best. */
function drawOrder(problem, chosen) {
  if (problem.boxes.length <= DRAWN || chosen < 0) return null;
  let root = chosen;
  while (problem.boxes[root].parent >= 0) root = problem.boxes[root].parent;
  const others = problem.roots.filter((v) => v !== root);
  return [root, ...others.sort((a, b) => problem.rank(b, 0) - problem.rank(a, 0))];
}

function showBar() {
  at("undo").disabled = !state.past.length;
  at("redo").disabled = !state.future.length;
  at("save").disabled = !state.doc.boxes.length;
  at("save").textContent = state.file === null ? "Save as…" : "Save";
  at("save").title = state.file === null ? "Save under a name (Ctrl+S)" : `Save to ${state.file} (Ctrl+S)`;
  at("rename").hidden = state.file === null;
  for (const id of ["rename", "download", "report"]) at(id).disabled = !state.doc.boxes.length;
  at("file").textContent = state.title;
  const clean = state.doc === state.saved && state.file !== null && !given.isNew;
  at("saved").textContent = !state.doc.boxes.length ? "" : clean ? "saved" : "not saved";
}

// -- what the user does ---------------------------------------------------------------------------

at("undo").addEventListener("click", undo);
at("redo").addEventListener("click", redo);
at("save").addEventListener("click", () => files.save());
at("rename").addEventListener("click", () => files.saveAs());
at("download").addEventListener("click", () => files.download());
at("report").addEventListener("click", () => files.report());
at("open").addEventListener("click", () => at("pick").click());
at("pick").addEventListener("change", (event) => {
  const [file] = event.target.files;
  if (file) files.open(file);
  event.target.value = "";
});
at("first-box").addEventListener("click", () => act.add(null));
at("example").addEventListener("click", openExample);

addEventListener("keydown", (event) => {
  if (!event.ctrlKey && !event.metaKey) return;
  const key = event.key.toLowerCase();
  const run = { s: () => files.save(), z: event.shiftKey ? redo : undo, y: redo }[key];
  if (!run) return;
  event.preventDefault();
  const typing = document.activeElement;
  run();
  if (key !== "s" && typing?.matches("input")) settle(typing);
});

/** The field in use shows the result of an undo. */
function settle(input) {
  input.blur();
  show();
  input.focus();
}

addEventListener("beforeunload", (event) => {
  if (state.doc !== state.saved && state.doc.boxes.length) event.preventDefault();
});

takeDraft();
show();
if (state.doc.boxes.length) solveNow();
