"""Whether two forests describe the same problem, box by box."""

from __future__ import annotations

import numpy as np
import pytest

from weitzman.forest.model import Forest


def assert_same(found: Forest, wanted: Forest, *, names: bool = True) -> None:
    """Same boxes in the same order; pools may be laid out differently, costs be written shorter."""
    assert found.parent.tolist() == wanted.parent.tolist()
    assert found.count.tolist() == wanted.count.tolist()
    for name in ("outside", "minimize", "unit", "rate", "risk_tolerance", "prizes", "stated_error"):
        assert getattr(found, name) == getattr(wanted, name), name
    assert (found.factors is None) == (wanted.factors is None)
    if names:
        assert [found.name(v) for v in range(len(found))] == [
            wanted.name(v) for v in range(len(wanted))
        ]
    for v in range(len(wanted)):
        if names:
            assert found.states(v) == wanted.states(v)
        law = wanted.laws[wanted.law[v]]
        assert found.laws[found.law[v]].tolist() == law.tolist()
        rewards = wanted.rewards[wanted.reward[v]]
        assert found.rewards[found.reward[v]].tolist() == rewards.tolist()
        if wanted.factors is not None:
            factors = [
                np.where(law > 0, np.broadcast_to(f.factors[f.cost[v]], law.shape), 1.0)
                for f in (found, wanted)
            ]
            assert factors[0].tolist() == factors[1].tolist()
        costs = [
            np.where(law > 0, np.broadcast_to(f.costs[f.cost[v]], law.shape), 0.0)
            for f in (found, wanted)
        ]
        assert costs[0].tolist() == costs[1].tolist()


def assert_paper(forest: Forest) -> None:
    """The example of the paper, whose indices and value are known."""
    from weitzman.engine.solver import solve

    solution = solve(forest)
    assert solution.value == pytest.approx(94.325, abs=1e-9)
    assert solution.index("A") == pytest.approx(707, abs=1e-9)
    assert solution.index("B", 1) == pytest.approx(15, abs=1e-9)
    assert solution.index("B", 900) == pytest.approx(914, abs=1e-9)
    assert solution.index("C") == pytest.approx(40, abs=1e-9)
