// The document and its changes. Every change gives a new document and leaves the old one as it is,
// so undo returns to the old document. Input that is not a number stays text: a range such as
// 80/100/130 in its place in the matrices, and faults, which Python reports.
//
// A document: {objective, outside, time ("", "duration" or "factor"), terms ({unit, rate,
// risk_tolerance, prizes}, those that there are), boxes}. A box: {key, name, parent (a key or null),
// count, rewards (null: none), states (names, "" for the reward itself; null: numbered), law (rows),
// cost (rows: one, or one for each state of the parent; columns: one, or one for each own state),
// duration and factor (like the cost; null: none), more}.

import { Problem } from "../page/problem.js";
import { number } from "../page/text.js";
import { typedBase } from "./fields.js";

const PRICED = ["cost", "duration", "factor"]; // matrices by the state of the parent and the own one
const KNOWN = ["name", "parent", "count", "rewards", "states", "law", ...PRICED];
const TIMELESS = { duration: 0, factor: 1 }; // what stands for a box that does not say
const RANGED = { cost: "cost", duration: "duration", rewards: "reward", law: "probability" };
const ENDLESS = "endless"; // as the file format says it
let keys = 0;

export const EMPTY = { objective: "maximize", outside: 0, time: "", terms: {}, boxes: [] };

/** From the file format, as Python sends it. */
export function fromFile({ format, objective, outside, boxes, ranges, ...terms }) {
  const key = new Map(boxes.map((box) => [box.name, (keys += 1)]));
  const says = (what) => boxes.some((box) => box[what] !== undefined);
  const doc = {
    objective,
    outside,
    time: says("factor") ? "factor" : says("duration") || terms.rate !== undefined ? "duration" : "",
    terms,
    boxes: boxes.map((box) => {
      const root = box.parent === undefined || box.parent === null;
      const more = Object.entries(box).filter(([k]) => !KNOWN.includes(k));
      return {
        key: key.get(box.name),
        name: box.name,
        parent: root ? null : key.get(box.parent),
        count: box.count ?? 1,
        rewards: box.rewards,
        states: box.states?.map((s, y) => (s === rewardName(box.rewards[y]) ? "" : s)) ?? null,
        law: root ? [box.law] : box.law,
        cost: costRows(box.cost),
        duration: box.duration === undefined ? null : costRows(box.duration),
        factor: box.factor === undefined ? null : costRows(box.factor),
        more: Object.fromEntries(more),
      };
    }),
  };
  for (const { box: title, field, given, state } of ranges ?? []) { // of one price among equal ones
    const box = doc.boxes.find(({ name }) => name === title);
    const prices = PRICED.includes(field) && box?.[field];
    if (prices && given && prices.length === 1) box[field] = box.law.map(() => [...prices[0]]);
    if (prices && state && prices[0].length === 1) {
      box[field] = box[field].map(([x]) => box.rewards.map(() => x));
    }
  }
  const all = ranges ? numbersOf(doc) : [];
  const places = (ranges ?? []).map((range) => all.filter(({ said }) =>
    ["box", "field", "given", "state"].every((k) => (range[k] ?? said[k]) === said[k])));
  places.forEach((some, i) => some.forEach(({ row, y }) => (row[y] = ranges[i].range)));
  return doc;
}

/** All numbers that may have a range: the row that holds each, its place there, and what files call it. */
function numbersOf(doc, of = doc.boxes) {
  const titles = new Map(doc.boxes.map((box) => [box.key, labels(box)]));
  return of.flatMap((box) => Object.entries(RANGED).flatMap(([key, field]) => {
    const matrix = key === "rewards" ? [box.rewards] : box[key] ?? [];
    const up = matrix.length > 1 || key === "law" ? titles.get(box.parent) : null;
    return matrix.flatMap((row, s) => row.map((x, y) => {
      const state = row.length > 1 || key === "law" || key === "rewards"
        ? { state: titles.get(box.key)[y] } : {};
      return { row, y, x, said: { box: box.name, field, ...(up ? { given: up[s] } : {}), ...state } };
    }));
  }));
}

function labels(box) {
  return box.states ? stateNames(box) : box.rewards.map((_, y) => String(y));
}

/** The number that a range stands for; anything else as it is. */
export function base(x) {
  const found = typeof x === "string" ? typedBase(x) : NaN;
  return Number.isNaN(found) ? x : found;
}

/** A box without ranges. */
function certain(box) {
  return {
    ...box,
    rewards: box.rewards.map(base),
    law: box.law.map((row) => row.map(base)),
    ...pricedOf(box, (rows) => rows.map((row) => row.map(base))),
  };
}

/** To the file format. */
export function toFile(doc) {
  const name = new Map(doc.boxes.map((box) => [box.key, box.name]));
  const text = (box) => Object.keys(RANGED).some((k) => box[k]?.flat().some((x) => typeof x === "string"));
  const ranges = numbersOf(doc, doc.boxes.filter(text)).filter(({ x }) => base(x) !== x);
  return {
    format: "weitzman/1",
    objective: doc.objective,
    outside: doc.outside,
    ...termsOf(doc),
    boxes: doc.boxes.map(certain).map((box) => {
      const root = box.parent === null;
      const time = doc.time ? { [doc.time]: costValue(timeOf(doc, box), root) } : {};
      return {
        name: box.name,
        ...(root ? {} : { parent: name.get(box.parent) }),
        cost: costValue(box.cost, root),
        ...time,
        rewards: box.rewards,
        ...(box.states ? { states: stateNames(box) } : {}),
        law: root ? box.law[0] : box.law,
        ...(box.count === 1 ? {} : { count: box.count }),
        ...box.more,
      };
    }),
    ...(ranges.length ? { ranges: ranges.map(({ x, said }) => ({ ...said, range: x })) } : {}),
  };
}

/** The terms that are written: a rate goes with durations alone, one prize need not be said. */
function termsOf({ terms: { rate, prizes, ...terms }, time }) {
  return {
    ...Object.fromEntries(Object.entries(terms).filter(([, x]) => x !== null && x !== "")),
    ...(time === "duration" ? { rate: rate ?? 0 } : {}),
    ...(prizes === undefined || prizes === null || prizes === 1 ? {} : { prizes }),
  };
}

/** How long a box takes, or what it multiplies later payoffs by: rows like those of its cost. */
export function timeOf(doc, box) {
  return box[doc.time] ?? [[TIMELESS[doc.time]]];
}

/** What stepper and drawing need, with the indices and the times that Python found. */
export function toProblem(doc, solved) {
  const place = new Map(doc.boxes.map((box, v) => [box.key, v]));
  const { factors, durations } = solved;
  const boxes = doc.boxes.map(certain).map((box, v) => ({
    ...box,
    parent: box.parent === null ? -1 : place.get(box.parent),
    states: box.states && stateNames(box),
    endless: isEndless(box),
    index: solved.index[v],
    factors: factors?.[v],
    durations: durations?.[v],
  }));
  const { amounts, risk, prizes } = solved;
  return new Problem({
    boxes, outside: doc.outside, minimize: doc.objective === "minimize", amounts, risk, prizes,
    timed: Boolean(factors),
  });
}

/** Another unit, rate, risk tolerance or number of prizes; null: none. */
export function setTerm(doc, key, x) {
  return { ...doc, terms: { ...doc.terms, [key]: x } };
}

/** Whether time counts, and in which form. The data of the boxes is kept in case the user returns. */
export function setTime(doc, time) {
  const { terms } = doc;
  const rate = time === "duration" ? { rate: terms.rate ?? 0.1 } : {};
  return { ...doc, time, terms: { ...terms, ...rate } };
}

/** Whether a box is followed by boxes like itself, without end. */
export function isEndless(box) {
  return box.more.length === ENDLESS;
}

export function setEndless(doc, key, endless) {
  return changeBox(doc, key, ({ more: { length, ...rest } }) => ({
    more: endless ? { ...rest, length: ENDLESS } : rest,
  }));
}

export function stateNames(box) {
  return box.states.map((s, y) => s || (box.rewards[y] === null ? "" : rewardName(base(box.rewards[y]))));
}

/** How a state reads: its name, else its reward, else its number. */
export function stateTitle(box, y) {
  return box.states?.[y] || (box.rewards[y] === null ? `state ${y}` : shown(base(box.rewards[y])));
}

function shown(reward) {
  return typeof reward === "number" ? number(reward) : String(reward);
}

export function boxOf(doc, key) {
  return doc.boxes.find((box) => box.key === key) ?? null;
}

export function childrenOf(doc, key) {
  return doc.boxes.filter((box) => box.parent === key);
}

/** A box and all boxes behind it. */
export function within(doc, key) {
  const inside = new Set([key]);
  for (let before = 0; before < inside.size; ) {
    before = inside.size;
    for (const box of doc.boxes) if (inside.has(box.parent)) inside.add(box.key);
  }
  return inside;
}

// -- changes ------------------------------------------------------------------------------------

export function changeBox(doc, key, change) {
  const boxes = doc.boxes.map((box) => (box.key === key ? { ...box, ...change(box) } : box));
  return { ...doc, boxes };
}

/** Another box, a root or behind another box; it becomes the last one. */
export function addBox(doc, parent = null) {
  const rows = parent === null ? 1 : boxOf(doc, parent).rewards.length;
  const box = {
    key: (keys += 1),
    name: freeName(doc),
    parent,
    count: 1,
    rewards: [0, 10],
    states: ["", ""],
    law: Array.from({ length: rows }, () => [0.5, 0.5]),
    cost: [[1]],
    duration: null,
    factor: null,
    more: {},
  };
  return { ...doc, boxes: [...doc.boxes, box] };
}

export function removeBox(doc, key) {
  const gone = within(doc, key);
  return { ...doc, boxes: doc.boxes.filter((box) => !gone.has(box.key)) };
}

/** Hang a box under another, or make it a root. The note says what became of its chances. */
export function moveBox(doc, key, parent) {
  const box = boxOf(doc, key);
  if (box.parent === parent || (parent !== null && within(doc, key).has(parent))) return null;
  const rows = parent === null ? 1 : boxOf(doc, parent).rewards.length;
  const same = box.law.every((row) => String(row) === String(box.law[0]));
  const fits = box.law.length === rows;
  const spread = (matrix) =>
    matrix.length === 1 && matrix !== box.law ? matrix
      : Array.from({ length: rows }, (_, i) => [...(fits ? matrix[i] : matrix[0])]);
  const law = spread(box.law);
  const priced = pricedOf(box, (rows) => (parent === null ? [rows[0]] : spread(rows)));
  const note = fits || same ? null
    : "Its chances after each state of the new parent are now the chances that it had after the first "
      + "state of the old parent. Undo brings the others back.";
  return { doc: changeBox(doc, key, () => ({ parent, law, ...priced })), note };
}

/** One more state: no chance yet; boxes behind it act as after the last state. */
export function addState(doc, key) {
  const next = changeBox(doc, key, (box) => ({
    rewards: [...box.rewards, freeReward(box)],
    states: box.states && [...box.states, ""],
    law: box.law.map((row) => [...row, 0]),
    ...pricedOf(box, (rows) => rows.map((row) => (row.length > 1 ? [...row, row.at(-1)] : row))),
  }));
  return changeRows(next, key, (rows) => [...rows, [...rows.at(-1)]]);
}

export function removeState(doc, key, y) {
  const without = (list) => list.filter((_, i) => i !== y);
  const next = changeBox(doc, key, (box) => ({
    rewards: without(box.rewards),
    states: box.states && without(box.states),
    law: box.law.map(without),
    ...pricedOf(box, (rows) => rows.map((row) => (row.length > 1 ? without(row) : row))),
  }));
  return changeRows(next, key, without);
}

/** Change the rows of all that hangs on a box. */
function changeRows(doc, key, change) {
  const boxes = doc.boxes.map((box) => box.parent !== key ? box : {
    ...box, law: change(box.law), ...pricedOf(box, (rows) => (rows.length > 1 ? change(rows) : rows)),
  });
  return { ...doc, boxes };
}

export function setReward(doc, key, y, reward) {
  return changeBox(doc, key, (box) => ({ rewards: replaced(box.rewards, y, reward) }));
}

export function setStateName(doc, key, y, text) {
  return changeBox(doc, key, (box) => {
    const names = box.states ?? box.rewards.map((_, i) => String(i));
    return { states: replaced(names, y, text) };
  });
}

export function setChance(doc, key, row, y, p) {
  return changeBox(doc, key, (box) => ({
    law: replaced(box.law, row, replaced(box.law[row], y, p)),
  }));
}

/** Another chance of a state; the other chances of the row share the rest in proportion. */
export function setChances(doc, key, row, y, p) {
  return changeBox(doc, key, (box) => {
    const rest = box.law[row].reduce((sum, q, i) => (i === y ? sum : sum + Number(base(q))), 0);
    const others = box.law[row].length - 1;
    const share = (q) => Number((rest > 0 ? ((1 - p) * base(q)) / rest : (1 - p) / others).toPrecision(12));
    const chance = (q, i) => (i === y ? p : share(q)); // 0.35, not 0.35000000000000003
    return { law: replaced(box.law, row, box.law[row].map(chance)) };
  });
}

/** Another cost, duration or factor (`what`). */
export function setPrice(doc, key, what, row, y, price) {
  return changeBox(doc, key, (box) => {
    const rows = what === "cost" ? box.cost : timeOf(doc, box);
    return { [what]: replaced(rows, row, replaced(rows[row], y, price)) };
  });
}

/** Let a cost, duration or factor depend on what the parent showed, on what the box shows, or not. */
export function shapePrice(doc, key, what, byParent, byOwn) {
  return changeBox(doc, key, (box) => {
    const now = what === "cost" ? box.cost : timeOf(doc, box);
    const rows = byParent ? box.law.length : 1;
    const columns = byOwn ? box.rewards.length : 1;
    const at = (i, j) => {
      const row = now[Math.min(i, now.length - 1)];
      return row[Math.min(j, row.length - 1)];
    };
    return {
      [what]: Array.from({ length: rows }, (_, i) => Array.from({ length: columns }, (_, j) => at(i, j))),
    };
  });
}

// -- details ------------------------------------------------------------------------------------

/** Costs, durations and factors, all changed alike; missing ones stay missing. */
function pricedOf(box, change) {
  return Object.fromEntries(PRICED.map((what) => [what, box[what] && change(box[what])]));
}

function replaced(list, i, value) {
  return list.map((x, j) => (j === i ? value : x));
}

function rewardName(reward) {
  return reward === null ? null : String(reward);
}

function costRows(cost) {
  if (!Array.isArray(cost)) return [[cost]];
  return Array.isArray(cost[0]) ? cost : cost.map((x) => [x]);
}

function costValue(cost, root) {
  if (cost.length === 1 && cost[0].length === 1) return cost[0][0];
  if (cost[0].length === 1) return cost.map((row) => row[0]);
  return root ? cost[0] : cost;
}

/** A reward that no state of a box has, since states are called by their rewards. */
function freeReward(box) {
  const known = box.rewards.map(base).filter((r) => typeof r === "number");
  return known.length ? Math.ceil(Math.max(...known)) + 10 : 0;
}

/** A to Z, then numbers. */
function freeName(doc) {
  const taken = new Set(doc.boxes.map((box) => box.name));
  for (let i = 0; i < 26; i++) {
    const letter = String.fromCharCode(65 + i);
    if (!taken.has(letter)) return letter;
  }
  let n = doc.boxes.length + 1;
  while (taken.has(`Box ${n}`)) n += 1;
  return `Box ${n}`;
}
