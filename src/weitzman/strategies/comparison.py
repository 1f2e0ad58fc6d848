"""What full adaptivity is worth: the optimal policy next to other ways to search."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .._common.arrays import FloatArray, check_counts, error_of_mean
from .._common.numbers import about
from .._common.sharing import Executor, check_executor, spread
from .._common.text import ResultTable
from .._common.text import columns as aligned
from ..engine.evaluation import Evaluation, evaluate
from ..engine.indices import Policy
from ..engine.plan import Progress
from ..engine.solution import Solution, hint
from ..engine.solver import solve
from ..errors import InvalidArgument, UnknownName
from ..forest.builder import expand
from ..forest.model import Forest
from ..policy.simulation import simulate, two_sided
from .fixed_orders import FixedOrder, best_partially_adaptive
from .fixed_sets import FixedSet, best_nonadaptive
from .parts import WRITE_OUT
from .thumb_rules import (
    MOST_DRAWS,
    by_expected_value,
    by_situation,
    everything,
    myopic,
    on_reward_grid,
    priority_list,
    random_order,
    work_through,
)

_NONE = math.nan
_ROUNDING = 1e-12  # differences of values, as a share of them, that are only rounding


@dataclass(frozen=True, slots=True)
class Strategy:
    """One way to search, and what it earns, in the user's sign.

    Attributes
    ----------
    key, name : str
        For programs and for people.
    value : float
        Expected payoff; for a kind of strategy, the payoff of the best one found.
    error : float
        Standard error of the value; 0 unless it was simulated.
    bound : float
        No strategy of this kind earns more (less, when minimizing); NaN for a single strategy.
    how : str
        "exact", "simulated", or "best found" if a better strategy of this kind may exist.
    openings, spend : float
        Expectations; NaN where they were not computed.
    """

    key: str
    name: str
    value: float
    error: float
    bound: float
    how: str
    openings: float = _NONE
    spend: float = _NONE

    @property
    def gap(self) -> float:
        """How far the best strategy of this kind may be from the one found; 0 if exact."""
        return 0.0 if math.isnan(self.bound) else abs(self.bound - self.value)


@dataclass(frozen=True, slots=True, eq=False)
class Comparison(ResultTable):
    """Strategies side by side, the optimal one first.

    Attributes
    ----------
    forest : Forest
    strategies : tuple of Strategy
    fixed_order : FixedOrder
        The best partially adaptive strategy found.
    fixed_set : FixedSet
        The best non-adaptive strategy found.
    """

    forest: Forest
    strategies: tuple[Strategy, ...]
    fixed_order: FixedOrder
    fixed_set: FixedSet

    def __getitem__(self, key: str) -> Strategy:
        """The strategy of that key."""
        found = {s.key: s for s in self.strategies}
        if key not in found:
            raise UnknownName(f"no strategy has the key {key!r}. There are: {', '.join(found)}.")
        return found[key]

    def lost(self, key: str) -> float:
        """How much less a strategy earns than the optimal one."""
        sign = self.forest.sign
        best, value = self.strategies[0].value, self[key].value
        return 0.0 if math.isclose(best, value, rel_tol=_ROUNDING) else sign * (best - value)

    def share(self, key: str) -> float:
        """The share of the possible gain over the outside option that a strategy earns.

        NaN where nothing can be gained or there is no outside option.
        """
        nothing = self.forest.prizes * self.forest.outside
        gain = self.strategies[0].value - nothing
        return (self[key].value - nothing) / gain if gain and math.isfinite(gain) else _NONE

    def gap(self, key: str) -> tuple[float, float]:
        """How much more the optimum earns than the best of a kind: at least and at most."""
        sign = self.forest.sign
        best, s = self.strategies[0].value, self[key]
        bound = s.value if math.isnan(s.bound) else s.bound
        return max(0.0, sign * (best - bound)), max(0.0, sign * (best - s.value))

    def columns(self) -> dict[str, list[Any]]:
        """One entry per strategy: its attributes, and what is lost and the share that is earned."""
        each: dict[str, Callable[[Strategy], Any]] = {
            "lost": lambda s: self.lost(s.key),
            "share": lambda s: self.share(s.key),
        }
        return {
            name: [each[name](s) if name in each else getattr(s, name) for s in self.strategies]
            for name in _COLUMNS
        }

    def cells(self) -> list[list[str]]:
        """The strategies as text, with 95 % intervals."""
        cells = [["strategy", "value", "± (95%)", "lost", "share", "openings", "bound", "how"]]
        z, say = two_sided(0.95), self.forest.amounts
        for s in self.strategies:
            share = self.share(s.key)
            short = f", at most {say(s.gap)} short" if s.how == "best found" else ""
            cells.append(
                [
                    s.name, say(s.value, z * s.error),
                    say.margin(z * s.error) if s.error else "",
                    say(self.lost(s.key), z * s.error),
                    "" if math.isnan(share) else f"{about(100 * share)}%",
                    "" if math.isnan(s.openings) else about(s.openings),
                    "" if math.isnan(s.bound) or s.bound == s.value else say(s.bound),
                    s.how + short,
                ]
            )  # fmt: skip
        return cells

    def headline(self) -> str:
        """What adaptivity is worth."""
        lines = []
        for key, what in (("fixed_order", "fixed order"), ("fixed_set", "fixed set")):
            low, high = self.gap(key)
            gap = self.forest.amounts(high)
            gap = gap if low == high else f"between {self.forest.amounts(low)} and {gap}"
            lines.append(f"adaptivity gap over the best {what}: {gap}")
        return "\n".join(lines)

    def table(self) -> str:
        """The strategies as text, and what adaptivity is worth."""
        return "\n".join([*aligned(self.cells(), right=1), "", self.headline()])

    def __repr__(self) -> str:
        values = ", ".join(f"{s.key}={s.value:.6g}" for s in self.strategies)
        return f"Comparison({values})"


_COLUMNS = (
    "key", "name", "value", "error", "bound", "gap", "lost", "share", "openings", "spend", "how",
)  # fmt: skip


def compare(
    forest: Forest | Solution, *, episodes: int = 100_000, rng: np.random.Generator | int = 0,
    budget: int | None = None, limit: int | None = None, time_limit: float | None = None,
    solution: Solution | None = None, threads: int | None = None,
    executor: Executor | None = None, progress: Progress | None = None,
) -> Comparison:  # fmt: skip
    """The optimal policy next to the best fixed order, the best fixed set and usual heuristics.

    Index policies and sets are evaluated exactly; the best order and set are exact for small
    forests and otherwise the best found, with a bound. Strategies that choose at random or end with
    a budget are evaluated exactly on small forests, by looking at all situations. On larger ones
    they are simulated with common random numbers: the optimal policy, whose value is known, takes
    out the noise that both share. No estimate is better than the optimum.

    Discounting, a risk tolerance and several prizes apply to all strategies. With a risk tolerance
    every value is a certainty equivalent.

    Parameters
    ----------
    forest : Forest or Solution
    episodes : int
        Of each simulation.
    rng : Generator or int
        For the simulations; seed 0 by default.
    budget : int, optional
        Boxes that strategies with a budget open; by default what the optimal policy opens on
        average.
    limit : int, optional
        Sets, and orders, to examine: see :func:`~weitzman.strategies.best_nonadaptive` and
        :func:`~weitzman.strategies.best_partially_adaptive`.
    time_limit : float, optional
        Seconds for the search of an order.
    solution : Solution, optional
        The solution of the forest, if it is already known; not needed if ``forest`` is a solution.
    threads, executor : optional
        As for :func:`~weitzman.solve`; with an executor ``rng`` must be a seed. The result does
        not depend on them.
    progress : callable, optional
        Called with (steps done, steps in all): one for each kind of strategy after the optimal one.

    Returns
    -------
    Comparison
        One entry for each strategy, by key: ``found["fixed_order"]``.

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.Builder().add("A", cost=1, outcomes={0: 0.5, 10: 0.5})
    >>> chest = chest.add("B", cost=2, outcomes={0: 0.5, 20: 0.5}).build()
    >>> compare(chest).lost("everything")
    0.5
    """
    if isinstance(forest, Solution):
        solution, forest = forest, forest.forest
    if not isinstance(forest, Forest):
        raise InvalidArgument(
            f"compare needs a forest or its solution, but got a {type(forest).__name__}. "
            f"{hint(forest, 'Describe one with Builder, or read a file with load.')}"
        )
    forest.must_end("comparing strategies")
    check_executor(executor)
    check_counts(episodes=episodes, budget=budget, limit=limit)
    if not isinstance(rng, np.random.Generator):
        check_counts(0, rng="none" if rng is None else rng)
        rng = int(rng)
    if executor is not None and not isinstance(rng, int):
        raise InvalidArgument(
            "with an executor `rng` must be a seed: workers cannot share one generator."
        )
    solved = solve(forest, threads=threads) if solution is None else solution
    optimum = evaluate(solved)
    most = max(1, round(optimum.openings)) if budget is None else budget
    data = _Trial(solved, episodes, rng, most, threads, limit, time_limit)
    fixed, *others = spread(executor, _tried, data, _kinds(forest), progress)
    assert isinstance(fixed, tuple), "the first kind"
    order, chosen = fixed
    nothing = forest.prizes * forest.outside
    rows = [replace(_exact("optimal", "fully adaptive (optimal)", optimum), value=solved.value)]
    best: tuple[tuple[str, str, FixedOrder | FixedSet], ...] = (
        ("fixed_order", "fixed order, best stopping", order), ("fixed_set", "fixed set", chosen)
    )  # fmt: skip
    for key, name, x in best:
        how = "exact" if x.exact else "best found"
        rows.append(Strategy(key, name, x.value, 0.0, x.bound, how))
    rows += [x for x in others if isinstance(x, Strategy)]
    rows.append(Strategy("nothing", "nothing", nothing, 0.0, _NONE, "exact", 0.0, 0.0))
    return Comparison(forest, tuple(rows), order, chosen)


class _Trial(NamedTuple):
    """What every strategy of a comparison is tried on."""

    solution: Solution
    episodes: int
    rng: np.random.Generator | int
    budget: int
    threads: int | None
    limit: int | None
    time_limit: float | None


def _kinds(forest: Forest) -> list[str]:
    """The keys of what is tried, in the order of the rows; first the fixed set and order."""
    few = forest.boxes <= WRITE_OUT
    kinds = {
        "fixed": True, "priority_list": few and bool(np.isfinite(forest.outside)),
        "reward_grid": True, "myopic": True, "expected_value": len(forest) <= WRITE_OUT,
        "everything": True, "budget": True, "random_order": few, "random_budget": few,
    }  # fmt: skip
    return [kind for kind, there in kinds.items() if there]


_RULES: dict[str, tuple[str, Callable[[Solution], Policy]]] = {
    "reward_grid": ("index read off the rewards", on_reward_grid),
    "myopic": ("own index, without what is behind", lambda s: myopic(s.forest)),
    "expected_value": ("expected net value (rNPV)", lambda s: by_expected_value(s.forest)),
    "everything": ("everything", lambda s: everything(s.forest)),
}


def _tried(trial: _Trial, kind: str) -> Strategy | tuple[FixedOrder, FixedSet]:
    """What one kind of strategy earns; also called by workers."""
    solved, episodes, rng, most, threads, limit, time_limit = trial
    forest = solved.forest
    if kind == "fixed":
        chosen = best_nonadaptive(forest, solution=solved, limit=limit)
        order = best_partially_adaptive(
            forest, solution=solved, limit=limit, time_limit=time_limit, fixed_set=chosen
        )
        return order, chosen
    if kind in _RULES:
        name, policy = _RULES[kind]
        return _exact(kind, name, evaluate(policy(solved)))
    name = {
        "priority_list": "fixed list, skipping boxes",
        "budget": f"the best {most} by index",
        "random_order": "random order, right stopping",
        "random_budget": f"any {most} at random",
    }[kind]
    if forest.boxes <= WRITE_OUT:
        written = solved if forest.count.max() == 1 else solve(expand(forest))
        found = by_situation(written, kind, most)
        if found is not None:
            return Strategy(kind, name, found.value, 0.0, _NONE, "exact", *found[1:])
        solved = written if kind == "priority_list" else solved
    trees = len(solved.forest.roots) if forest.prizes > 1 else 1
    n = max(1, min(episodes, MOST_DRAWS // int(solved.forest.boxes * trees)))
    if kind == "budget":
        played = simulate(solved, episodes, rng, budget=most, threads=threads)
    elif kind == "priority_list":
        played = work_through(solved, priority_list(solved), n, rng)
    else:
        played = random_order(solved, n, rng, budget=None if kind == "random_order" else most)
    means = played.openings.mean, played.spend.mean
    return _estimated(trial, kind, name, played.payoff.values, means)


def _exact(key: str, name: str, e: Evaluation) -> Strategy:
    return Strategy(key, name, e.value, 0.0, _NONE, "exact", e.openings, e.spend)


def _estimated(
    trial: _Trial, key: str, name: str, payoff: FloatArray, means: tuple[float, float]
) -> Strategy:
    """An estimate from episodes, with the optimal policy as a control variate."""
    solved, n, sign = trial.solution, len(payoff), trial.solution.forest.sign
    tau = solved.forest.risk_tolerance
    control = simulate(solved, n, trial.rng, threads=trial.threads).payoff.values
    x, y, known = sign * payoff, sign * control, np.array(sign * solved.value)
    low = min(float(x.min()), float(y.min()))
    if tau is not None:  # certainty equivalents are means of utilities, read back
        x, y, known = (-np.exp((low - z) / tau) for z in (x, y, known))
    slope, scale = 0.0, float(np.abs([x, y]).max()) or 1.0  # squares of 1e200 are beyond all floats
    together = np.cov(x / scale, y / scale) if n > 2 else np.zeros((2, 2))
    if together[1, 1] > 0:
        slope = float(together[0, 1] / together[1, 1])
    left = x - slope * (y - known)
    mean, error = float(left.mean()), error_of_mean(left) if n > 1 else 0.0
    if tau is not None:
        utility = max(-mean, float(np.finfo(float).tiny))
        mean, error = low - tau * math.log(utility), tau * error / utility
    # the value is known not to exceed the optimum: moving an estimate there never makes it worse
    value = sign * min(mean, sign * solved.value)
    return Strategy(key, name, value, error, _NONE, "simulated", *means)
