"""Files read part by part: the same value as in memory, and the same refusals."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import weitzman
from weitzman import Forest
from weitzman.bounds import solve_file
from weitzman.errors import InvalidArgument, InvalidFile, TooLarge
from weitzman.files import binary, save_many


def some_forest(seed: int, boxes: int = 60, minimize: bool = False) -> Forest:
    rng = np.random.default_rng(seed)
    parent = np.array([int(rng.integers(-1, i)) if i % 5 else -1 for i in range(boxes)])
    near = np.arange(boxes) // 5 * 5
    parent = np.where(parent < near, np.where(np.arange(boxes) == near, -1, near), parent)
    k = rng.integers(1, 4, boxes)
    law = [rng.dirichlet(np.ones(k[i]), 1 if p < 0 else k[p]) for i, p in enumerate(parent)]
    return Forest.from_arrays(
        parent=parent, cost=rng.uniform(0.01, 0.1, boxes), law=law,
        rewards=[rng.random(n) for n in k], count=rng.integers(1, 3, boxes),
        minimize=minimize, outside=0.7 if minimize else 0.2,
    )  # fmt: skip


def note(told: list[int], done: int, _: int) -> None:
    told.append(done)


@pytest.mark.parametrize("minimize", [False, True])
@pytest.mark.parametrize("part", [1, 7, 10**6])
def test_a_file_in_parts_has_the_value_of_the_whole(tmp_path, minimize, part):
    for seed in range(5):
        forests = [some_forest(seed * 10 + i, minimize=minimize) for i in range(3)]
        path = tmp_path / "many.wz"
        assert save_many(iter(forests), path) == 180
        whole = weitzman.load(path)
        solution = weitzman.solve(whole, exact=True)
        told: list[int] = []
        found = solve_file(
            path, part=part, indices=tmp_path / "i.npy", progress=partial(note, told)
        )
        assert found.value == pytest.approx(solution.value, abs=1e-8)
        assert found.gap <= 1e-9
        assert (found.boxes, found.parts) == (180, told[-1])
        assert (found.parts == 1) == (part > 180)
        assert found.first_box == (
            None if solution.first_box is None else whole.box(solution.first_box)
        )
        index = np.load(tmp_path / "i.npy")
        assert np.flatnonzero(~np.isnan(index)).tolist() == whole.roots.tolist()
        expected = [solution.index(int(v)) for v in whole.roots]
        np.testing.assert_allclose(index[whole.roots], expected, atol=1e-7)


def test_a_file_that_save_wrote_and_boxes_in_any_order(tmp_path):
    forest = some_forest(3)
    mixed = forest.take(np.random.default_rng(0).permutation(len(forest)))
    for i, each in enumerate((forest, mixed)):
        weitzman.save(each, tmp_path / f"{i}.wz")
        found = solve_file(tmp_path / f"{i}.wz", part=20)
        assert found.value == pytest.approx(weitzman.solve(each, exact=True).value, abs=1e-8)
        assert (found.parts > 1) == (i == 0)  # trees that are mixed up are read together


def test_places_of_matrices_are_found_piece_by_piece(tmp_path, monkeypatch):
    save_many([some_forest(1), some_forest(2)], tmp_path / "a.wz")
    before = solve_file(tmp_path / "a.wz", part=10)
    monkeypatch.setattr(binary, "_PIECE", 3)
    monkeypatch.setattr(binary, "_CHUNK", 16)
    after = solve_file(tmp_path / "a.wz", part=10)
    assert (before.value, before.gap, before.first_box) == (after.value, after.gap, after.first_box)


def test_what_cannot_be_read_in_parts_is_rejected(tmp_path):
    line = weitzman.line([[0.5, 0.5]] + [[[0.5, 0.5]] * 2] * 30, rewards=[0, 1], cost=0.1)
    weitzman.save(line, tmp_path / "line.wz")
    with pytest.raises(TooLarge, match="has 31 boxes, which take about"):
        solve_file(tmp_path / "line.wz", part=3)
    timed = weitzman.line([[0.5, 0.5]], rewards=[0, 1], cost=0.1).changed(risk_tolerance=1.0)
    weitzman.save(timed, tmp_path / "timed.wz")
    with pytest.raises(InvalidFile, match="must have no 'risk_tolerance'"):
        solve_file(tmp_path / "timed.wz")
    data = bytearray((tmp_path / "line.wz").read_bytes())
    data[-1] ^= 1
    (tmp_path / "damaged.wz").write_bytes(bytes(data))
    with pytest.raises(InvalidFile, match="is damaged"):
        solve_file(tmp_path / "damaged.wz")
    with pytest.raises(InvalidFile, match=r"nowhere\.wz: cannot be read"):
        solve_file(tmp_path / "nowhere.wz")
    with pytest.raises(InvalidFile, match="at least one forest"):
        save_many([], tmp_path / "none.wz")
    with pytest.raises(InvalidFile, match="the same objective"):
        save_many([some_forest(1), some_forest(1, minimize=True)], tmp_path / "two.wz")
    with pytest.raises(InvalidArgument, match="`part` a number of boxes"):
        solve_file(tmp_path / "line.wz", part=0)


def test_stated_errors_add_up(tmp_path):
    one = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, stated_error=0.25, unit="EUR")
    save_many([one, one], tmp_path / "two.wz")
    forest = weitzman.load(tmp_path / "two.wz")
    assert (forest.stated_error, forest.unit) == (0.5, "EUR")
    assert weitzman.solve(forest).status is weitzman.Status.DISCRETIZED
    assert solve_file(tmp_path / "two.wz").gap == pytest.approx(0.5)
