"""What full adaptivity is worth: the optimal policy next to other ways to search."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._common.arrays import error_of_mean
from .._common.numbers import about
from .._common.optional import need
from .._common.sharing import Executor, check_executor, spread
from .._common.text import cells_html
from .._common.text import columns as aligned
from ..engine.evaluation import Evaluation, evaluate
from ..engine.indices import Policy
from ..engine.plan import Progress
from ..engine.solution import Solution, hint
from ..engine.solver import solve
from ..errors import InvalidArgument
from ..forest.model import Forest
from ..policy.simulation import Sample, Simulation, simulate, two_sided
from .copies import WRITE_OUT
from .fixed_order import FixedOrder, best_partially_adaptive
from .fixed_set import FixedSet, best_nonadaptive
from .thumb_rules import (
    MOST_BOXES,
    MOST_DRAWS,
    by_expected_value,
    everything,
    listed,
    myopic,
    on_reward_grid,
    priority_list,
    random_order,
    work_through,
)

if TYPE_CHECKING:
    import pandas as pd

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


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
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
        return next(s for s in self.strategies if s.key == key)

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
        out: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
        for s in self.strategies:
            more = {"lost": self.lost(s.key), "share": self.share(s.key)}
            for name in _COLUMNS:
                out[name].append(more[name] if name in more else getattr(s, name))
        return out

    def to_pandas(self) -> pd.DataFrame:
        """The columns as a data frame."""
        frame: pd.DataFrame = need("pandas", "table").DataFrame(self.columns())
        return frame

    def table(self) -> str:
        """The strategies as text, and what adaptivity is worth."""
        return "\n".join([*aligned(self._cells(), right=1), "", *self._gaps()])

    def _cells(self) -> list[list[str]]:
        cells = [["strategy", "value", "± (95%)", "lost", "share", "openings", "bound", "how"]]
        z, say = two_sided(0.95), self.forest.amounts
        for s in self.strategies:
            share = self.share(s.key)
            cells.append(
                [
                    s.name, say(s.value, z * s.error),
                    say.margin(z * s.error) if s.error else "",
                    say(self.lost(s.key), z * s.error),
                    "" if math.isnan(share) else f"{about(100 * share)}%",
                    _known(s.openings, about),
                    "" if s.bound == s.value else _known(s.bound, lambda x: say(x)), s.how,
                ]
            )  # fmt: skip
        return cells

    def _gaps(self) -> Iterator[str]:
        for key, what in (("fixed_order", "fixed order"), ("fixed_set", "fixed set")):
            low, high = self.gap(key)
            gap = self.forest.amounts(high)
            gap = gap if low == high else f"between {self.forest.amounts(low)} and {gap}"
            yield f"adaptivity gap over the best {what}: {gap}"

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        values = ", ".join(f"{s.key}={s.value:.6g}" for s in self.strategies)
        return f"Comparison({values})"

    def _repr_html_(self) -> str:
        return cells_html(list(self._gaps()), self._cells())


_COLUMNS = (
    "key", "name", "value", "error", "bound", "lost", "share", "openings", "spend", "how",
)  # fmt: skip


def _known(x: float, written: Callable[[float], str]) -> str:
    return "" if math.isnan(x) else written(x)


def compare(
    forest: Forest | Solution,
    *,
    episodes: int = 100_000,
    rng: np.random.Generator | int = 0,
    budget: int | None = None,
    solution: Solution | None = None,
    threads: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """The optimal policy next to the best fixed order, the best fixed set and usual heuristics.

    Index policies and sets are evaluated exactly; the best order and set are exact for small
    forests and otherwise the best found, with a bound; strategies that choose at random or end with
    a budget are simulated.

    Discounting, a risk tolerance and several prizes apply to all strategies. With discounting the
    order of a fixed set matters, too: costs are paid when boxes are opened. With a risk tolerance
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
    solution : Solution, optional
        The solution of the forest, if it is already known; not needed if ``forest`` is a solution.
    threads : int, optional
    executor : optional
        Workers to share the strategies, as for :func:`~weitzman.solve`; ``rng`` must then be a
        seed. The result does not depend on it.
    progress : callable, optional
        Called with (steps done, steps in all): one for each kind of strategy after the optimal one.

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
    if executor is not None and not isinstance(rng, (int, np.integer)):
        raise InvalidArgument(
            "with an executor `rng` must be a seed: workers cannot share one generator."
        )
    solved = solve(forest, threads=threads) if solution is None else solution
    optimum = evaluate(solved, threads=threads)
    most = max(1, round(optimum.openings)) if budget is None else budget
    trial = Trial(solved, episodes, rng, most, threads)
    kinds = _kinds(forest)
    found: list[Strategy | Fixed] = []
    if executor is None:
        for kind in kinds:
            found.append(_tried(trial, kind))
            if progress is not None:
                progress(len(found), len(kinds))
    else:
        found = spread(executor, _tried, trial, kinds, progress)
    best = replace(_exact("optimal", "fully adaptive (optimal)", optimum), value=solved.value)
    fixed, others = found[0], [x for x in found if isinstance(x, Strategy)]
    assert isinstance(fixed, Fixed), "the first kind"
    nothing = forest.prizes * forest.outside
    last = Strategy("nothing", "nothing", nothing, 0.0, _NONE, "exact", 0.0, 0.0)
    rows = best, _of_order(fixed.order), _of_set(fixed.chosen), *others, last
    return Comparison(forest, rows, fixed.order, fixed.chosen)


class Trial(NamedTuple):
    """What every strategy of a comparison is tried on."""

    solution: Solution
    episodes: int
    rng: np.random.Generator | int
    budget: int
    threads: int | None


class Fixed(NamedTuple):
    """The best set and the best order, which falls back on the set."""

    chosen: FixedSet
    order: FixedOrder


def _kinds(forest: Forest) -> list[str]:
    """The keys of what is tried, in the order of the rows; first the fixed set and order."""
    few = forest.boxes <= WRITE_OUT
    listable = forest.boxes <= MOST_BOXES and bool(np.isfinite(forest.outside))
    kinds = [
        (True, "fixed"),
        (listable, "priority_list"),
        (True, "reward_grid"),
        (True, "myopic"),
        (len(forest) <= MOST_BOXES, "expected_value"),
        (True, "everything"),
        (True, "budget"),
        (few, "random_order"),
        (few, "random_budget"),
    ]
    return [kind for there, kind in kinds if there]


def _tried(trial: Trial, kind: str) -> Strategy | Fixed:
    """What one kind of strategy earns; also called by workers."""
    solved, episodes, rng, most, threads = trial
    if kind == "fixed":
        chosen = best_nonadaptive(solved.forest, solution=solved)
        return Fixed(chosen, _order(trial, chosen))
    if kind == "priority_list":
        written = listed(solved)
        assert written is not None, "few enough boxes"
        return _listed(written, episodes, rng)
    if kind == "budget":
        played = simulate(solved, episodes, rng, budget=most, threads=threads)
        return _simulated(kind, f"the best {most} by index", played)
    if kind == "random_order":
        played = random_order(solved, episodes, rng, threads=threads)
        return _simulated(kind, "random order, right stopping", played)
    if kind == "random_budget":
        played = random_order(solved, episodes, rng, budget=most, threads=threads)
        return _simulated(kind, f"any {most} at random", played)
    name, policy = _RULES[kind]
    return _exact(kind, name, evaluate(policy(solved), threads=threads))


def _order(trial: Trial, chosen: FixedSet) -> FixedOrder:
    return best_partially_adaptive(
        trial.solution.forest, episodes=trial.episodes, rng=trial.rng, solution=trial.solution,
        fixed_set=chosen,
    )  # fmt: skip


_RULES: dict[str, tuple[str, Callable[[Solution], Policy]]] = {
    "reward_grid": ("index read off the rewards", on_reward_grid),
    "myopic": ("own index, without what is behind", lambda s: myopic(s.forest)),
    "expected_value": ("expected net value (rNPV)", lambda s: by_expected_value(s.forest)),
    "everything": ("everything", lambda s: everything(s.forest)),
}


def _listed(written: Solution, episodes: int, rng: np.random.Generator | int) -> Strategy:
    """A fixed priority list with skipping, simulated."""
    f = written.forest
    trees = len(f.roots) if f.prizes > 1 else 1
    n = max(1, min(episodes, MOST_DRAWS // (len(f) * trees)))
    seeded = np.random.default_rng(rng) if isinstance(rng, int) else rng
    played = work_through(written, priority_list(written), n, seeded)
    value = float(played.payoff.mean())
    error = error_of_mean(played.payoff) if n > 1 else 0.0
    if f.risk_tolerance is not None:
        kept = Sample(played.payoff, n, value, math.nan)
        value, error = kept.certainty(f.risk_tolerance, f.sign)
    means = float(played.openings.mean()), float(played.spend.mean())
    return Strategy(
        "priority_list", "fixed list, skipping boxes", value, error, _NONE, "simulated", *means
    )


def _exact(key: str, name: str, e: Evaluation) -> Strategy:
    return Strategy(key, name, e.value, 0.0, _NONE, "exact", e.openings, e.spend)


def _simulated(key: str, name: str, s: Simulation) -> Strategy:
    return Strategy(
        key, name, s.value, s.value_error, _NONE, "simulated", s.openings.mean, s.spend.mean
    )  # fmt: skip


def _of_order(order: FixedOrder) -> Strategy:
    how = "exact" if order.exact else "best found"
    return Strategy(
        "fixed_order", "fixed order, best stopping", order.value, order.error, order.bound, how
    )


def _of_set(chosen: FixedSet) -> Strategy:
    how = "exact" if chosen.exact else "best found"
    return Strategy("fixed_set", "fixed set", chosen.value, 0.0, chosen.bound, how)
