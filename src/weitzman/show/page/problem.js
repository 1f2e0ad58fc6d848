// Boxes on a forest with the index of each, as the page needs them. All numbers come from Python.

import { amount, amounts } from "./text.js";

/**
 * boxes: [{name, parent (number or -1), count, endless, rewards, states (names or null), law, cost,
 * index}]. An endless box is followed by boxes like itself. A reward or index of null stands for the
 * infinity that never wins. `folded` tells what is left out, and the best of it among the roots
 * and behind each box after each state: {boxes, root: [index, name] or null, below: {box: [...]}}.
 * `timed`: each box has `factors` of what comes later (and `durations`, if these were given), in the
 * shapes of its cost. `risk` is the risk tolerance, `prizes` how many rewards may be taken.
 */
export class Problem {
  constructor({ boxes, outside, minimize, amounts: written = null, folded = null, ...terms }) {
    if (written) Object.assign(amounts, written);
    this.timed = Boolean(terms.timed);
    this.risk = terms.risk ?? null;
    this.prizes = terms.prizes ?? 1;
    this.boxes = boxes;
    this.minimize = minimize;
    this.sign = minimize ? -1 : 1;
    this.outside = outside;
    this.folded = folded;
    this.children = boxes.map(() => []);
    this.roots = [];
    boxes.forEach((box, v) => (box.parent < 0 ? this.roots : this.children[box.parent]).push(v));
    this.single = this.#singles();
  }

  /** What can be opened once a box is open; an endless box is followed by itself. */
  after(v) {
    return this.boxes[v].endless ? [v] : this.children[v];
  }

  /** For each box, whether it exists only once: neither it nor a box before it has copies. */
  #singles() {
    const single = this.boxes.map(() => false);
    const waiting = [...this.roots];
    while (waiting.length) {
      const v = waiting.pop();
      if (this.boxes[v].count > 1 || this.boxes[v].endless) continue;
      single[v] = true;
      waiting.push(...this.children[v]);
    }
    return single;
  }

  /** The index of a box after its parent showed a state, higher is better. */
  rank(v, row) {
    return this.signed(this.boxes[v].index[row]);
  }

  signed(x) {
    return x === null || x === undefined ? -Infinity : this.sign * x;
  }

  meanCost(v, row) {
    const { law, cost } = this.boxes[v];
    const prices = cost[cost.length > 1 ? row : 0];
    if (prices.length === 1) return prices[0];
    return law[row].reduce((sum, p, y) => sum + p * prices[y], 0);
  }

  /** The factor of everything that comes after the opening. */
  factor(v, row, y) {
    return this.timed ? entry(this.boxes[v].factors, row, y) : 1;
  }

  /** How long opening takes; with factors alone, in units of the inverse of the rate. */
  duration(v, row, y) {
    if (!this.timed) return 0;
    const { durations } = this.boxes[v];
    return durations ? entry(durations, row, y) : -Math.log(this.factor(v, row, y));
  }

  /** The mean of payoffs and its error; with a risk tolerance, their certainty equivalent. */
  mean(payoffs) {
    if (this.risk === null) return plainMean(payoffs);
    const scale = -this.sign / this.risk;
    const worst = payoffs.reduce((a, z) => Math.max(a, scale * z), -Infinity);
    const { mean, error } = plainMean(payoffs.map((z) => Math.exp(scale * z - worst)));
    return { mean: (Math.log(mean) + worst) / scale, error: (this.risk * error) / mean };
  }

  /** What opening costs if the cost is certain, else the average cost. */
  costText(v, row) {
    const sure = this.boxes[v].cost[0].length === 1;
    return `${amount(this.meanCost(v, row))}${sure ? "" : " on average"}`;
  }

  costPaid(v, row, y) {
    return entry(this.boxes[v].cost, row, y);
  }

  stateName(v, y) {
    const { states } = this.boxes[v];
    return states ? states[y] : String(y);
  }

  /** A state by its reward if that says it all, else by name and reward. */
  stateText(v, y) {
    const { states, rewards } = this.boxes[v];
    const worth = rewards[y] === null ? null : amount(rewards[y]);
    const alone = rewards.indexOf(rewards[y]) === rewards.lastIndexOf(rewards[y]);
    if (states && worth !== null && Number(states[y]) === rewards[y]) return worth;
    if (!states && worth !== null && alone) return worth;
    const title = states ? states[y] : `state ${y}`;
    return worth === null ? title : `${title}, worth ${worth}`;
  }

  /** The states that can occur after the parent showed `row`. */
  possible(v, row) {
    const chances = this.boxes[v].law[row];
    return chances.map((p, y) => [y, p]).filter(([, p]) => p > 0);
  }
}

/** What a matrix says after a state of the parent and of the box itself; one entry may stand for all states. */
function entry(matrix, row, y) {
  const numbers = matrix[matrix.length > 1 ? row : 0];
  return numbers[numbers.length > 1 ? y : 0];
}

function plainMean(numbers) {
  const n = numbers.length;
  const mean = numbers.reduce((a, b) => a + b, 0) / n;
  const variance = numbers.reduce((a, b) => a + (b - mean) ** 2, 0) / (n - 1);
  return { mean, error: Math.sqrt(variance / n) };
}

/** The problem from the columns and pools that a report carries. */
export function unpack(data) {
  const boxes = data.names.map((name, v) => ({
    name,
    parent: data.parent[v],
    count: data.count[v],
    endless: data.endless[v],
    rewards: data.rewards[data.reward[v]],
    states: data.states[data.reward[v]],
    law: data.laws[data.law[v]],
    cost: data.costs[data.cost[v]],
    factors: data.factors?.[data.cost[v]],
    durations: data.durations?.[data.cost[v]],
    index: data.indices[v],
  }));
  return new Problem({ ...data, boxes, timed: Boolean(data.factors) });
}
