// Boxes on a forest with the index of each, as the page needs them. All numbers come from Python.

import { amount, amounts } from "./text.js";

/**
 * boxes: [{name, parent (number or -1), count, endless, rewards, states (names or null), law, cost,
 * index}]. An endless box is followed by its like. A reward or index of null stands for the
 * infinity that never wins. `folded` tells what is left out, and the best of it among the roots
 * and behind each box after each state: {boxes, root: [index, name] or null, below: {box: [...]}}.
 */
export class Problem {
  constructor({ boxes, outside, minimize, amounts: written = null, folded = null }) {
    if (written) Object.assign(amounts, written);
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

  /** For each box, whether there is one of it: no copies of it or of a box before it. */
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

  /** What opening costs if that is sure, else what it costs on average. */
  costText(v, row) {
    const sure = this.boxes[v].cost[0].length === 1;
    return `${amount(this.meanCost(v, row))}${sure ? "" : " on average"}`;
  }

  costPaid(v, row, y) {
    const { cost } = this.boxes[v];
    const prices = cost[cost.length > 1 ? row : 0];
    return prices[prices.length > 1 ? y : 0];
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
    index: data.indices[v],
  }));
  return new Problem({ ...data, boxes });
}
