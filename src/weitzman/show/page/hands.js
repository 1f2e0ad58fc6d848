// Several prizes: what each tree holds, what was taken, what is worth taking now. The twin of
// weitzman.policy.walk.

/** The tree of a group of boxes that can be opened: the tree of its root. */
export function treeOf(group) {
  return group.tree ?? `${group.v}:${group.copy}`;
}

/** Whether a step holds the best rather than another that showed the same reward. */
export function earlier(a, b) {
  if (a.v !== b.v) return a.v < b.v;
  if (a.y !== b.y) return a.y < b.y;
  return lower(a.copy, b.copy);
}

export function lower(a, b) {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    if (a[i] !== b[i]) return a[i] < b[i];
  }
  return a.length < b.length;
}

export class Hands {
  constructor(problem) {
    this.problem = problem;
    this.places = problem.prizes;
    this.held = new Map(); // by tree, the step that showed its best reward
    this.taken = []; // steps, in the order of taking
    this.shut = new Set(); // trees of the steps taken
  }

  copy() {
    const other = new Hands(this.problem);
    return Object.assign(other, {
      held: new Map(this.held), taken: [...this.taken], shut: new Set(this.shut),
    });
  }

  /** Whether all prizes were taken. */
  get full() {
    return this.taken.length === this.places;
  }

  /** Whether boxes are out of reach: their tree is closed, or all places are filled. */
  closes(group) {
    return this.full || this.shut.has(treeOf(group));
  }

  /** A box was opened; `step` has v, copy, y, tree and reward. */
  found(step) {
    if (step.reward === null || this.shut.has(step.tree)) return;
    const before = this.held.get(step.tree);
    if (!before || this.#better(step, before)) this.held.set(step.tree, step);
  }

  take(step) {
    this.taken.push(step);
    this.shut.add(step.tree);
    this.held.delete(step.tree);
  }

  /** What an index must exceed: the outside option and every reward in hand. */
  bar() {
    if (this.full) return Infinity;
    return Math.max(this.#outside, ...[...this.held.values()].map((s) => this.#rank(s)));
  }

  /** The step whose reward to take: no reward in hand and no index is higher, and it pays. */
  worthTaking(highestIndex) {
    if (this.full) return null;
    let best = null;
    for (const step of this.held.values()) {
      if (!best || this.#better(step, best)) best = step;
    }
    const pays = best && this.#rank(best) > this.#outside;
    return pays && highestIndex <= this.#rank(best) ? best : null;
  }

  /** The sum of all prizes if the search stopped now: taken, in hand, and empty places. */
  total() {
    const left = this.places - this.taken.length;
    const hand = [...this.held.values()].map((s) => this.#rank(s)).sort((a, b) => b - a);
    const kept = Array.from({ length: left }, (_, i) => Math.max(hand[i] ?? -Infinity, this.#outside));
    const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
    return sum(this.taken.map((s) => s.reward)) + this.problem.sign * sum(kept);
  }

  get #outside() {
    return this.problem.signed(this.problem.outside);
  }

  #better(a, b) {
    const more = this.#rank(a) - this.#rank(b);
    return more > 0 || (more === 0 && earlier(a, b));
  }

  #rank(step) {
    return this.problem.signed(step.reward);
  }
}
