// One walk through the boxes: what can be opened, what to open next and why, what came of it.
//
// The rule is that of weitzman.Policy: open the available box of highest index while that exceeds
// the best reward so far; of equal ones the box of lowest number, of its copies that whose parent
// showed the state of lowest number, and then the first; an index equal to the best means stop. Of
// equal rewards the outside option comes first, then box, state and copy in the same order. It is
// tested step by step against weitzman.policy.walk. Indices never change on the way, so nothing is
// computed again.

import { amount, name } from "./text.js";

export class Walk {
  constructor(problem, given = []) {
    this.problem = problem;
    this.given = given; // steps that have really happened: [box, copy, state, reward, cost]
    this.told = [];
    this.restart();
  }

  restart() {
    this.#clear();
    for (const [v, copy, y, reward, cost] of this.given) {
      const group = this.groups.find((g) => g.v === v && sameCopy(g.copy, copy));
      this.#open(group ?? this.#copyGroup(v, copy), y, reward, cost);
    }
  }

  /** What can be opened, one entry for all copies that are alike. */
  available() {
    return this.groups.filter((g) => g.left > 0);
  }

  /** The group to open next, or null if it is best to stop. */
  next() {
    const top = this.top();
    return top && top.rank > this.bestRank() ? top : null;
  }

  top() {
    let top = null;
    for (const g of this.groups) if (g.left > 0 && (!top || before(g, top))) top = g;
    return top;
  }

  /** A box that the page does not hold and that would come before all others: [rank, name]. */
  hidden() {
    const { folded } = this.problem;
    if (!folded) return null;
    const candidates = [folded.root];
    for (const step of this.told) candidates.push(folded.below[step.v]?.[step.y]);
    let found = null;
    for (const c of candidates) {
      const rank = c ? this.problem.signed(c[0]) : -Infinity;
      if (c && (!found || rank > found[0])) found = [rank, c[1]];
    }
    const top = this.next();
    return found && found[0] > this.bestRank() && (!top || found[0] > top.rank) ? found : null;
  }

  bestRank() {
    return this.problem.signed(this.best);
  }

  get payoff() {
    return this.best === null ? null : this.best - this.problem.sign * this.spent;
  }

  /** Open the first copy of a group, which shows state y. */
  tell(group, y) {
    const { boxes } = this.problem;
    this.#open(group, y, boxes[group.v].rewards[y], this.problem.costPaid(group.v, group.row, y));
  }

  get canUndo() {
    return this.told.length > this.given.length;
  }

  undo() {
    const steps = this.told.slice(this.given.length, -1);
    this.restart();
    for (const s of steps) {
      this.#open(this.groups[s.group], s.y, s.reward, s.cost);
    }
  }

  /** A state drawn by its chances; `random` gives numbers from 0 to 1. */
  draw(group, random) {
    return draw(this.problem.boxes[group.v].law[group.row], random);
  }

  /** Why to open the next box, or why to stop: text and names in a row. */
  why() {
    const { problem } = this;
    const [above, more] = problem.minimize ? ["below", "lower"] : ["above", "higher"];
    const group = this.next();
    if (group) {
      const cost = problem.costText(group.v, group.row);
      const soFar = problem.minimize ? "the least loss so far" : "the best so far";
      return [
        "Open ", name(this.label(group)), ` (cost ${cost}): its index `,
        `${amount(problem.sign * group.rank)} is ${above} ${soFar} (`, ...this.#bestText(),
        `), and no box that can be opened has a ${more} one.`,
      ];
    }
    const top = this.top();
    const what = ["Stop and take ", ...this.#bestText()];
    if (!top) return [...what, ": no box is left to open."];
    const rest = Number.isFinite(top.rank)
      ? [`; the ${more.slice(0, -1)}st is ${amount(problem.sign * top.rank)}, of `,
          name(this.label(top))]
      : [];
    return [...what, `: no box that can be opened has an index ${above} that`, ...rest, "."];
  }

  /** Name of a box, with the number of the copy if there are any. */
  label(group) {
    return label(this.problem, group);
  }

  /** Payoffs of so many random futures from here on. */
  futures(times, random) {
    const start = this.available().sort((a, b) => (before(a, b) ? -1 : 1));
    return Array.from({ length: times }, () => this.#future(start, random));
  }

  #future(start, random) {
    const { problem } = this;
    let [best, spent, at, left] = [this.bestRank(), this.spent, 0, start[0]?.left ?? 0];
    const found = []; // groups that came up on the way
    for (;;) {
      while (at < start.length && left === 0) left = start[++at]?.left ?? 0;
      let next = at < start.length ? start[at] : null;
      for (const g of found) if (g.left > 0 && (!next || before(g, next))) next = g;
      if (!next || next.rank <= best) break;
      if (next === start[at]) left -= 1;
      else next.left -= 1;
      const y = this.draw(next, random);
      spent += problem.costPaid(next.v, next.row, y);
      best = Math.max(best, problem.signed(problem.boxes[next.v].rewards[y]));
      for (const u of problem.after(next.v)) found.push(behind(problem, next, u, y));
    }
    return problem.sign * best - problem.sign * spent;
  }

  #clear() {
    const { problem } = this;
    this.told = [];
    this.best = problem.outside;
    this.bestBox = null;
    this.holder = null; // the step that showed the best
    this.spent = 0;
    this.groups = problem.roots.map((v) => fresh(problem, v, 0, []));
  }

  #open(group, y, reward, cost) {
    const { problem } = this;
    const box = this.label(group);
    this.spent += cost;
    const step = {
      box, v: group.v, copy: group.copy, row: group.row, y, reward, cost,
      group: this.groups.indexOf(group),
    };
    const rank = problem.signed(reward);
    const better = rank > this.bestRank();
    if (better || (rank === this.bestRank() && this.holder && earlier(step, this.holder))) {
      [this.best, this.bestBox, this.holder] = [reward, box, step];
    }
    this.told.push({ ...step, best: this.best, bestBox: this.bestBox, spent: this.spent });
    for (const u of problem.after(group.v)) this.groups.push(behind(problem, group, u, y));
    group.left -= 1;
    if (group.left > 0) {
      let own = group.copy.at(-1) + 1;
      while (group.gone?.has(own)) own += 1;
      group.copy = [...group.copy.slice(0, -1), own];
    }
  }

  /** A copy that is not the next of its kind, taken out of its group. */
  #copyGroup(v, copy) {
    const group = this.groups.find(
      (g) => g.v === v && g.left > 0 && sameCopy(g.copy.slice(0, -1), copy.slice(0, -1)),
    );
    group.left -= 1;
    (group.gone ??= new Set()).add(copy.at(-1));
    const one = { ...group, copy, left: 1 };
    this.groups.push(one);
    return one;
  }

  #bestText() {
    if (this.best === null) return ["nothing"];
    const best = amount(this.best);
    return this.bestBox === null
      ? [`${best}, the outside option`]
      : [`${best} from `, name(this.bestBox)];
  }
}

/** Random numbers from 0 to 1 that are the same for the same seed (mulberry32). */
export function randomness(seed) {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function fresh(problem, v, row, above) {
  const { count, endless } = problem.boxes[v];
  const copy = count > 1 || endless ? [...above, 1] : above;
  return { v, row, copy, left: count, rank: problem.rank(v, row) };
}

/** What can be opened once a box has shown y: one behind it, or the next along an endless line. */
function behind(problem, group, u, y) {
  const after = fresh(problem, u, y, group.copy);
  if (u === group.v) after.copy = [...group.copy.slice(0, -1), group.copy.at(-1) + 1];
  return after;
}

function label(problem, { v, copy }) {
  const title = problem.boxes[v].name;
  return copy.length ? `${title}#${copy.join(".")}` : title;
}

/** Whether a group is to be opened before another. */
function before(a, b) {
  if (a.rank !== b.rank) return a.rank > b.rank;
  if (a.v !== b.v) return a.v < b.v;
  if (a.row !== b.row) return a.row < b.row;
  return lower(a.copy, b.copy);
}

/** Whether a step holds the best rather than another that showed the same reward. */
function earlier(a, b) {
  if (a.v !== b.v) return a.v < b.v;
  if (a.y !== b.y) return a.y < b.y;
  return lower(a.copy, b.copy);
}

function lower(a, b) {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    if (a[i] !== b[i]) return a[i] < b[i];
  }
  return a.length < b.length;
}

function sameCopy(a, b) {
  return a.length === b.length && a.every((x, i) => x === b[i]);
}

function draw(chances, random) {
  let rest = random() * chances.reduce((sum, p) => sum + p, 0);
  let last = 0;
  for (let y = 0; y < chances.length; y++) {
    if (chances[y] <= 0) continue;
    last = y;
    rest -= chances[y];
    if (rest < 0) break;
  }
  return last;
}
