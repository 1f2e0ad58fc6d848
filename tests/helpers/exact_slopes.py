"""The recursion of slopes for rows that need not sum to one, exact and plain.

The value of a subtree with a fall-back x is phi(x) = E max(x, kappa) for a random variable kappa,
here a dictionary from numbers to masses. Weights of a row may sum to less than one (time) or to
more (risk); what is missing lies above everything, what is too much is taken away there.
"""

from __future__ import annotations

from fractions import Fraction

from reference import NOTHING, Number, Problem, States, Table

Law = dict[Number, Fraction]


def larger(laws: list[Law]) -> Law:
    """The law of the largest of independent values."""
    out: Law = {}
    before = Fraction(0)
    for x in sorted({x for law in laws for x in law}):
        now = Fraction(1)
        for law in laws:
            now *= sum((p for z, p in law.items() if z <= x), Fraction(0))
        out[x] = now - before
        before = now
    return out


def capped(law: Law, total: Fraction, cost: Fraction) -> tuple[Number, Law]:
    """The index, and the law of what is capped by it, if the mass of ``law`` is ``total``.

    The index is the x at which -cost + sum of mass times max(z, x) falls to x: the gain is convex
    and piecewise linear, so the root lies on the piece where it first turns from gain to loss.
    """
    law = {z: p for z, p in law.items() if p}
    if total == 1 and set(law) == {NOTHING}:
        return NOTHING, law
    top = max([z for z in law if z != NOTHING] + [Fraction(0)])

    def gain(x: Number) -> Number:
        return -cost + sum((p * max(z, x) for z, p in law.items()), Fraction(0)) - x

    points = sorted({z for z in law if z != NOTHING} | {top})
    right: Number = next((x for x in points if gain(x) <= 0), top)
    below = [x for x in points if x < right]
    if below:
        left = below[-1]
        a, b = gain(left), gain(right)
        sigma = left + (right - left) * a / (a - b) if a > 0 else left
    else:  # on the left all of the law lies above: the slope of the gain is that of nothing
        slope = sum((p for z, p in law.items() if z == NOTHING), Fraction(0)) - 1
        sigma = right + gain(right) / -slope if slope else right
    out: Law = {}
    for z, p in law.items():
        if z < sigma:
            out[z] = out.get(z, Fraction(0)) + p
    out[sigma] = out.get(sigma, Fraction(0)) + 1 - sum(out.values(), Fraction(0))
    return sigma, out


def solve(
    problem: Problem, weights: Table, cost: Table
) -> tuple[list[Law], list[dict[States, Number]]]:
    """The capped values of the roots, and the indices of all boxes.

    ``weights[box][s][y]`` stands where the probability does; ``cost[box][s][y]`` is weighed by the
    probability itself.
    """
    index: list[dict[States, Number]] = [{} for _ in problem.boxes]

    def value(box: int, above: States) -> Law:
        mixed: Law = {}
        children = [b for b in problem.boxes if problem.parents[b] == (box,)]
        for y, w in enumerate(weights[box][above]):
            reward = problem.rewards[box][y]
            own: Law = {NOTHING if reward is None else reward: Fraction(1)}
            for z, p in larger([own, *(value(child, (y,)) for child in children)]).items():
                mixed[z] = mixed.get(z, Fraction(0)) + w * p
        mean = sum(
            (p * c for p, c in zip(problem.law[box][above], cost[box][above], strict=True)),
            Fraction(0),
        )
        sigma, law = capped(mixed, sum(weights[box][above], Fraction(0)), mean)
        index[box][above] = sigma
        return law

    roots = [value(box, ()) for box in problem.boxes if not problem.parents[box]]
    return roots, index
