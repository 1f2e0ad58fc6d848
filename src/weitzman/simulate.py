"""Play a policy many times and see what it earns, and how that varies."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from html import escape
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from ._kernels import episodes as kernel
from ._layout import columns as aligned
from ._sample import Sample, merge, share_interval, two_sided
from ._types import FloatArray, IntArray
from .errors import WeitzmanError
from .model import Forest
from .plan import Progress
from .policy import Policy
from .solution import Solution

if TYPE_CHECKING:
    import pandas as pd

Play = Callable[[int, int, FloatArray, IntArray], None]
"""Play episodes ``first`` to ``last - 1``: write what they came to, and count what was opened."""

_CHUNK = 4096  # episodes that a thread plays at a time, at most
_CHUNKS = 256  # and so many times at least, if there are as many episodes
_QUANTILES = (0.05, 0.5, 0.95)


class InvalidArgument(WeitzmanError, ValueError):
    """An argument that makes no sense."""


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """What a policy came to in many episodes, in the user's sign.

    Attributes
    ----------
    forest : Forest
    workers : int
        Boxes opened at once.
    payoff : Sample
        Reward less spend (plus, when minimising).
    reward : Sample
        The best reward found (least loss), or the outside option.
    spend : Sample
        Sum of the costs paid.
    openings : Sample
        Boxes opened.
    rounds : Sample
        Rounds in which boxes were opened, all of one round at once.
    loss : float
        Share of the episodes that ended worse than with the outside option and nothing opened.
    opened : (n,) array of float
        Average number of copies of each box that were opened.
    """

    forest: Forest
    workers: int
    payoff: Sample
    reward: Sample
    spend: Sample
    openings: Sample
    rounds: Sample
    loss: float
    opened: FloatArray

    @property
    def episodes(self) -> int:
        """How many episodes were played."""
        return self.payoff.episodes

    def loss_interval(self, level: float = 0.95) -> tuple[float, float]:
        """A confidence interval for the probability of a loss (Wilson's)."""
        return share_interval(self.loss, self.episodes, level)

    def columns(self) -> dict[str, FloatArray]:
        """Payoff, reward, spend, openings and rounds of every episode that was kept."""
        return {name: getattr(self, name).values for name in _SAMPLES}

    def to_pandas(self) -> pd.DataFrame:
        """A data frame with a row for every episode that was kept."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def summary(self, level: float = 0.95) -> list[dict[str, Any]]:
        """For each quantity its mean, standard error, confidence interval and quantiles."""
        out = []
        for name in _SAMPLES:
            sample: Sample = getattr(self, name)
            low, high = sample.interval(level)
            row = {"name": name, "mean": sample.mean, "standard_error": sample.standard_error}
            quantiles = zip(_QUANTILES, sample.quantile(_QUANTILES).tolist(), strict=True)
            out.append(
                row | {"low": low, "high": high} | {f"{100 * q:g}%": x for q, x in quantiles}
            )
        return out

    def table(self, level: float = 0.95) -> str:
        """Means with confidence intervals, and quantiles, as text."""
        at_once = "one box at a time" if self.workers == 1 else f"{self.workers} boxes at once"
        low, high = self.loss_interval(level)
        return "\n".join(
            [
                f"{self.episodes} episodes, {at_once}",
                *aligned(self._cells(level), right=1),
                f"worse than opening nothing: {100 * self.loss:.3g}% of the episodes "
                f"({100 * low:.3g}% to {100 * high:.3g}%)",
            ]
        )

    def _cells(self, level: float) -> list[list[str]]:
        z = two_sided(level)
        cells = [["", "mean", f"± ({100 * level:g}%)", *(f"{100 * q:g}%" for q in _QUANTILES)]]
        for row in self.summary(level):
            name, mean, error, _, _, *quantiles = row.values()
            cells.append([name, f"{mean:.6g}", f"{z * error:.2g}", *(f"{x:.6g}" for x in quantiles)])
        return cells

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return (
            f"Simulation({self.episodes} episodes, workers={self.workers}, "
            f"payoff={self.payoff.mean:.6g} ± {self.payoff.standard_error:.2g})"
        )

    def _repr_html_(self) -> str:
        head, *body = self._cells(0.95)
        return (
            f"<p>{self.episodes} episodes, {100 * self.loss:.3g}% of them worse than opening "
            f"nothing</p><table><thead>{_row('th', head)}</thead><tbody>"
            f"{''.join(_row('td', row) for row in body)}</tbody></table>"
        )


_SAMPLES = ("payoff", "reward", "spend", "openings", "rounds")


def _row(tag: str, cells: list[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"


def simulate(
    policy: Policy | Solution,
    episodes: int,
    rng: np.random.Generator | int,
    *,
    workers: int = 1,
    budget: int | None = None,
    keep: int = 1_000_000,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Simulation:
    """Play a policy against randomly drawn boxes.

    States are drawn from the laws, and costs that depend on them are charged as drawn. Copies are
    not written out: an episode takes time by what is opened, not by the size of the forest.

    Parameters
    ----------
    policy : Policy or Solution
        An index policy; of a solution, the optimal one.
    episodes : int
    rng : Generator or int
        Where randomness comes from, or a seed. Two numbers are taken from it.
    workers : int
        Open so many boxes at once: in each round those of highest index above the best reward so
        far (fewer if there are fewer), then see all that they show. The optimal policy is no
        longer optimal then: compare ``payoff`` and ``rounds`` with those of one worker.
    budget : int, optional
        Open exactly so many boxes, highest index first, whatever is found (fewer if there are
        fewer). Without it the policy stops when no index exceeds the best reward so far.
    keep : int
        Keep the numbers of so many episodes, for quantiles. Means and errors are over all.
    threads : int, optional
        All cores by default. The result does not depend on it, to the last bit.
    progress : callable, optional
        Called now and then with (episodes done, episodes in all).

    Examples
    --------
    >>> import weitzman
    >>> box = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=3)
    >>> played = simulate(weitzman.solve(box), 100_000, rng=1)
    >>> played.openings.mean  # 1 + 1/2 + 1/4 on average
    1.7507
    """
    rule = Policy.optimal(policy) if isinstance(policy, Solution) else policy
    at_least_one(workers=workers, budget=1 if budget is None else budget)
    f, tables = rule.forest, tabulate(rule)
    workers, most = min(workers, f.boxes), f.boxes if budget is None else budget
    key = stream_key(rng)
    scratch: list[tuple[FloatArray, IntArray]] = []

    def play(first: int, last: int, out: FloatArray, opened: IntArray) -> None:
        heap = scratch.pop() if scratch else (np.empty(64), np.empty((64, 6), np.int64))
        scratch.append(
            kernel.play(
                tables, len(rule.root), rule.outside, workers, most, budget is None, key, first,
                last, out, opened, *heap,
            )  # fmt: skip
        )

    return run_episodes(
        play, f, episodes, workers=workers, keep=keep, threads=threads, progress=progress
    )


def at_least_one(**arguments: int) -> None:
    """Refuse numbers below 1."""
    for name, n in arguments.items():
        if n < 1:
            raise InvalidArgument(f"`{name}` must be at least 1, but it is {n}.")


def stream_key(rng: np.random.Generator | int) -> IntArray:
    """Two random words, from which the streams of all episodes follow."""
    return np.random.default_rng(rng).integers(0, 2**64, 2, np.uint64)  # type: ignore[return-value]


def tabulate(policy: Policy) -> kernel.Tables:
    """A policy as the kernel reads it."""
    f = policy.forest
    boxes = np.empty((len(f), kernel.COLUMNS), np.int64)
    boxes[:, kernel.INDEX_AT] = policy.index_at
    boxes[:, kernel.LAW_AT] = f.laws.start[f.law]
    boxes[:, kernel.REWARD_AT] = f.rewards.start[f.reward]
    boxes[:, kernel.COST_AT] = f.costs.start[f.cost]
    rows, cols = f.costs.shape[f.cost].T
    boxes[:, kernel.COST_ROW] = np.where(rows > 1, cols, 0)
    boxes[:, kernel.COST_STEP] = cols > 1
    boxes[:, kernel.STATES] = f.rewards.shape[f.reward, 1]
    boxes[:, kernel.COUNT] = f.count
    row, owner = f.laws.rows()
    return kernel.Tables(
        siblings=kernel.list_siblings(
            policy.root, policy.child_at, policy.child, policy.index, boxes
        ),
        boxes=boxes,
        index=policy.index,
        chances=kernel.cumulate(f.laws.data, row, f.laws.shape[owner, 1]),
        rewards=policy.rewards,
        costs=f.costs.data,
    )


def run_episodes(
    play: Play,
    forest: Forest,
    episodes: int,
    *,
    workers: int = 1,
    keep: int = 1_000_000,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Simulation:
    """Share episodes out among threads and gather what they came to.

    The chunks depend on the number of episodes only, and are put together in their order.
    """
    at_least_one(episodes=episodes, keep=keep)
    chunk = max(1, min(_CHUNK, episodes // _CHUNKS))
    first = np.arange(0, episodes, chunk)
    size = np.minimum(first + chunk, episodes) - first
    mean, square = np.empty((len(first), kernel.RECORDED)), np.empty((len(first), kernel.RECORDED))
    kept = np.empty((kernel.RECORDED, min(keep, episodes)))
    sign = -1.0 if forest.minimise else 1.0
    opened, worse, done = np.zeros(len(forest), np.int64), 0, 0
    todo, lock = iter(range(len(first))), Lock()

    def work() -> None:
        nonlocal worse, done
        out, mine, below = np.empty((kernel.RECORDED, chunk)), np.zeros(len(forest), np.int64), 0
        while True:
            with lock:
                c = next(todo, None)
            if c is None:
                break
            a, n = int(first[c]), int(size[c])
            play(a, a + n, out, mine)
            kernel.moments(out, n, mean[c], square[c])
            below += int(kernel.count_below(out[kernel.PAYOFF], n, sign * forest.outside))
            part = kept[:, a : a + n]
            part[:] = out[:, : part.shape[1]]
            with lock:
                done += n
                if progress is not None:
                    progress(done, episodes)
        with lock:
            opened[:] += mine
            worse += below

    crew = min(threads or os.cpu_count() or 1, len(first))
    with ThreadPoolExecutor(crew) as pool:
        try:
            for end in [pool.submit(work) for _ in range(crew)]:
                end.result()
        finally:
            with lock:  # after an error or an interrupt, nobody begins another chunk
                todo = iter(range(0))
    samples = _samples(kept, episodes, *merge(size, mean, square), sign)
    return Simulation(forest, workers, *samples, worse / episodes, opened / episodes)


def _samples(
    kept: FloatArray, episodes: int, mean: FloatArray, deviation: FloatArray, sign: float
) -> list[Sample]:
    """The samples in the user's sign; the arrays are read-only."""
    signs = np.array([sign, sign, 1.0, 1.0, 1.0])
    kept *= signs[:, None]
    kept.flags.writeable = False
    return [
        Sample(values, episodes, float(m), float(d))
        for values, m, d in zip(kept, signs * mean, deviation, strict=True)
    ]
