// One walk through the boxes: what can be opened, what to open next and why, and the result.
//
// The rule is the rule of weitzman.Policy: open the available box with the highest index while that
// index exceeds the best reward so far. An index equal to the best reward means stop. Among equal
// indices the box with the lowest number is opened; among its copies, the copy whose parent showed
// the state with the lowest number, and then the first copy. Among equal rewards the outside option
// comes first, then box, state and copy in the same order. A test compares each step with
// weitzman.policy.walk. Indices never change during a search, so nothing is computed again. With
// several prizes a reward can be taken for good, see hands.js.

import { earlier, Hands, lower, treeOf } from "./hands.js";
import { amount, name } from "./text.js";

export class Walk {
  constructor(problem, given = []) {
    this.problem = problem;
    // what has really happened: [box, copy, state, reward, cost], or [box, copy] for a reward taken
    this.given = given;
    this.told = [];
    this.restart();
  }

  restart() {
    this.#clear();
    for (const [v, copy, ...shown] of this.given) {
      if (shown.length) this.#open(this.#groupOf(v, copy), ...shown);
      else this.take(this.told.find((s) => s.v === v && sameCopy(s.copy, copy)));
    }
  }

  /** What can be opened, one entry for all copies that are alike. */
  available() {
    return this.groups.filter((g) => g.left > 0 && !this.hands?.closes(g));
  }

  /** The group to open next, or null if it is best to stop, or to take a prize. */
  next() {
    const top = this.top();
    return top && top.rank > this.bar() ? top : null;
  }

  top() {
    let top = null;
    for (const g of this.available()) if (!top || before(g, top)) top = g;
    return top;
  }

  /** The step whose reward to take for good now, where there are several prizes; else null. */
  nextPrize() {
    return this.hands?.worthTaking(this.top()?.rank ?? -Infinity) ?? null;
  }

  /** Whether it is best to stop: nothing to open and nothing to take. */
  get over() {
    return !this.next() && !this.nextPrize();
  }

  /** A box that the page does not hold and that would come before all others: [rank, name]. */
  hidden() {
    const { folded } = this.problem;
    if (!folded) return null;
    const candidates = [folded.root];
    for (const step of this.told) {
      if (!this.hands?.shut.has(step.tree)) candidates.push(folded.below[step.v]?.[step.y]);
    }
    let found = null;
    for (const c of candidates) {
      const rank = c ? this.problem.signed(c[0]) : -Infinity;
      if (c && (!found || rank > found[0])) found = [rank, c[1]];
    }
    const top = this.next();
    return found && found[0] > this.bar() && (!top || found[0] > top.rank) ? found : null;
  }

  /** What an index must exceed: the best reward so far, or every reward in hand. */
  bar() {
    return this.hands ? this.hands.bar() : this.problem.signed(this.best);
  }

  /** What stopping now earns; with discounting, as seen from the start. */
  get payoff() {
    if (this.best === null) return null;
    return this.factor * this.best - this.problem.sign * this.paid;
  }

  /** Open the first copy of a group, which shows state y. */
  tell(group, y) {
    const { boxes } = this.problem;
    this.#open(group, y, boxes[group.v].rewards[y], this.problem.costPaid(group.v, group.row, y));
  }

  /** Take the reward of a step for good and close its tree. */
  take(step) {
    this.hands.take(step);
    this.best = this.hands.total();
    this.log.push({ taken: true, box: step.box, reward: step.reward, at: this.told.indexOf(step) });
  }

  get canUndo() {
    return this.log.length > this.given.length;
  }

  undo() {
    const moves = this.log.slice(this.given.length, -1);
    this.restart();
    for (const m of moves) {
      if (m.taken) this.take(this.told[m.at]);
      else this.#open(this.groups[m.group], m.y, m.reward, m.cost);
    }
  }

  /** A state drawn by its chances; `random` gives numbers from 0 to 1. */
  draw(group, random) {
    return draw(this.problem.boxes[group.v].law[group.row], random);
  }

  /** Why to open the next box, or why to stop, as text and names. */
  why() {
    const { problem } = this;
    const [above, more] = problem.minimize ? ["below", "lower"] : ["above", "higher"];
    const group = this.next();
    if (group) {
      const cost = problem.costText(group.v, group.row);
      return [
        "Open ", name(this.label(group)), ` (cost ${cost}): its index `,
        `${amount(problem.sign * group.rank)} is ${above} `, ...this.#soFar(),
        `, and no box that can be opened has a ${more} one.`,
      ];
    }
    if (this.hands) return this.#whyTake(above);
    const top = this.top();
    const what = ["Stop and take ", ...this.#bestText()];
    if (!top) return [...what, ": no box is left to open."];
    const rest = Number.isFinite(top.rank)
      ? [`; the ${more.slice(0, -1)}st is ${amount(problem.sign * top.rank)}, of `,
          name(this.label(top))]
      : [];
    return [...what, `: no box that can be opened has an index ${above} that`, ...rest, "."];
  }

  /** Why to take a prize now, or why to stop, where there are several. */
  #whyTake(above) {
    const prize = this.nextPrize();
    const { hands } = this;
    if (prize) {
      return [`Take ${amount(prize.reward)} from `, name(prize.box),
        ` for good and close its tree: no box that can be opened has an index ${above} that.`];
    }
    const why = hands.full ? "all places are filled"
      : `no index and no reward in hand is ${above} the outside option`;
    return [`Stop, ${hands.taken.length} of ${hands.places} prizes taken: ${why}.`];
  }

  #soFar() {
    const { problem } = this;
    if (this.hands) {
      const bar = amount(problem.sign * this.bar());
      return [`every reward in hand and the outside option (${bar})`];
    }
    const soFar = problem.minimize ? "the least loss so far" : "the best so far";
    return [`${soFar} (`, ...this.#bestText(), ")"];
  }

  /** Name of a box, with the number of the copy if there are any. */
  label(group) {
    return label(this.problem, group);
  }

  /** Payoffs of this many random futures from here on. */
  futures(times, random) {
    const start = this.available().sort((a, b) => (before(a, b) ? -1 : 1));
    return Array.from({ length: times }, () => this.#future(start, random));
  }

  #future(start, random) {
    const { problem } = this;
    const hands = this.hands?.copy() ?? null;
    let [best, spent, factor] = [problem.signed(this.best), this.paid, this.factor];
    let [at, first] = [0, null]; // the best of what could be opened at first
    const found = []; // groups that came up on the way
    const free = (g) => g.left > 0 && !hands?.closes(g);
    for (;;) {
      while (!(first && free(first)) && at < start.length) first = { ...start[at++] };
      let next = first && free(first) ? first : null;
      for (const g of found) if (free(g) && (!next || before(g, next))) next = g;
      const prize = hands?.worthTaking(next?.rank ?? -Infinity);
      if (prize) {
        hands.take(prize);
        continue;
      }
      if (!next || next.rank <= (hands ? hands.bar() : best)) break;
      const y = this.draw(next, random);
      const reward = problem.boxes[next.v].rewards[y];
      hands?.found({ v: next.v, copy: next.copy, y, tree: treeOf(next), reward });
      best = Math.max(best, problem.signed(reward));
      spent += factor * problem.costPaid(next.v, next.row, y);
      factor *= problem.factor(next.v, next.row, y);
      for (const u of problem.after(next.v)) found.push(behind(problem, next, u, y));
      advance(next);
    }
    const total = hands ? hands.total() : problem.sign * best;
    return factor * total - problem.sign * spent;
  }

  #clear() {
    const { problem } = this;
    this.told = []; // what was opened
    this.log = []; // the same with the prizes taken in between
    this.hands = problem.prizes > 1 ? new Hands(problem) : null;
    this.best = this.hands ? this.hands.total() : problem.outside;
    this.bestBox = null;
    this.holder = null; // the step that showed the best
    this.spent = 0;
    this.paid = 0; // the same, discounted to the start
    this.factor = 1; // of all that comes later
    this.time = 0;
    this.groups = problem.roots.map((v) => fresh(problem, v, 0, []));
  }

  #open(group, y, reward, cost) {
    const { problem } = this;
    const box = this.label(group);
    this.spent += cost;
    this.paid += this.factor * cost;
    this.factor *= problem.factor(group.v, group.row, y);
    this.time += problem.duration(group.v, group.row, y);
    const step = {
      box, v: group.v, copy: group.copy, row: group.row, y, reward, cost, tree: treeOf(group),
      group: this.groups.indexOf(group),
    };
    this.#hold(step);
    Object.assign(step, { best: this.best, bestBox: this.bestBox, spent: this.spent });
    this.told.push(step);
    this.log.push(step);
    for (const u of problem.after(group.v)) this.groups.push(behind(problem, group, u, y));
    advance(group);
  }

  /** What was found may be the best so far, or the best of its tree. */
  #hold(step) {
    if (this.hands) {
      this.hands.found(step);
      this.best = this.hands.total();
      return;
    }
    const [rank, bar] = [this.problem.signed(step.reward), this.bar()];
    if (rank > bar || (rank === bar && this.holder && earlier(step, this.holder))) {
      [this.best, this.bestBox, this.holder] = [step.reward, step.box, step];
    }
  }

  #groupOf(v, copy) {
    const same = this.groups.find((g) => g.v === v && sameCopy(g.copy, copy));
    return same ?? this.#copyGroup(v, copy);
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
  return { ...after, tree: treeOf(group) };
}

/** A box of the group was opened: the next copy is now the first of the group. */
function advance(group) {
  group.left -= 1;
  if (group.left === 0) return;
  let own = group.copy.at(-1) + 1;
  while (group.gone?.has(own)) own += 1;
  group.copy = [...group.copy.slice(0, -1), own];
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
