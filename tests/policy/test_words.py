"""Policies told by thresholds: the text must decide as the indices do, for every finding."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest

import weitzman
from weitzman import Builder, explain, solve

LINE = re.compile(
    r"If (\w+ shows|the best so far is) (.+) \([^)]*%\): (.*)$|Whatever \w+ shows: (.*)$"
)
TESTS = {
    "at least": lambda x, t: x >= t,
    "more than": lambda x, t: x > t,
    "less than": lambda x, t: x < t,
    "at most": lambda x, t: x <= t,
}


def holds(words: str, x: float) -> bool:
    """Whether a number is in a range that is told in words."""
    for part in words.split(" and "):
        word, _, number = part.rpartition(" ")
        if not TESTS[word](x, float(number.replace(",", ""))):
            return False
    return True


def followed(text: str, shows: dict[str, float], outside: float, minimize: bool) -> list[str]:
    """The boxes that a reader of the text would open."""
    lines = text.splitlines()
    opened, best, level, at = [], outside, 0, 0
    move = lines[0]
    while (found := re.search(r"[oO]pen (?:one of \d+ copies of )?(\w+)", move)) is not None:
        box = found[1]
        opened.append(box)
        shown = shows[box]
        best = min(best, shown) if minimize else max(best, shown)
        level += 1
        for at in range(at + 1, len(lines)):  # noqa: B020
            margin = (len(lines[at]) - len(lines[at].lstrip())) // 2
            assert margin >= level, "no line of the text covers this finding"
            match = LINE.search(lines[at])
            assert match is not None, lines[at]
            if margin == level and (
                match[4] or holds(match[2], best if match[1].startswith("the") else shown)
            ):
                break
        move = match[3] or match[4]
    assert move.startswith("stop")
    return opened


def by_index(solution, shows: dict[str, float], outside: float, minimize: bool) -> list[str]:
    """The boxes that the rule of the indices opens."""
    sign = -1 if minimize else 1
    closed = {name: sign * solution.index(name) for name in shows}
    opened, best = [], sign * outside
    while closed and max(closed.values()) > best:
        box = max(closed, key=closed.__getitem__)
        del closed[box]
        opened.append(box)
        best = max(best, sign * shows[box])
    return opened


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("minimize", [False, True])
def test_the_text_decides_as_the_indices_do(seed, minimize):
    rng = np.random.default_rng(seed)
    outside = 60.0 if minimize else 40.0
    boxes = Builder(outside=outside, minimize=minimize)
    rewards = {}
    for name in "abc":
        rewards[name] = rng.choice(100, 16, replace=False).tolist()
        chances = rng.dirichlet(np.ones(16)).tolist()
        outcomes = dict(zip(rewards[name], chances, strict=True))
        boxes.add(name, cost=float(rng.uniform(0.5, 6)), outcomes=outcomes)
    solution = solve(boxes.build(), exact=True)
    text = explain(solution, lines=1000)
    assert "and so on" not in text
    for shown in product(*rewards.values()):
        shows = dict(zip(rewards, shown, strict=True))
        assert followed(text, shows, outside, minimize) == by_index(
            solution, shows, outside, minimize
        )


def test_a_continuous_prize_is_told_by_its_threshold():
    stats = pytest.importorskip("scipy.stats")
    boxes = Builder().add("x", cost=0.3, outcomes=stats.uniform(0, 10))
    boxes.add("y", cost=1, outcomes={0: 0.5, 12: 0.5})
    solution = solve(boxes.build())
    assert explain(solution).splitlines() == [
        "Open y (cost 1).",
        "  If y shows 0 (50%): open x (cost 0.3).",
        "    Whatever x shows: stop and take what x shows.",
        "  If y shows 12 (50%): stop and take 12 from y.",
    ]
    boxes.add("z", cost=0.2, outcomes={0: 0.6, 11: 0.4}, count=1)
    text = explain(solve(boxes.build()))
    assert len(text.splitlines()) < 20


def test_the_chances_of_the_ranges_add_up():
    stats = pytest.importorskip("scipy.stats")
    boxes = Builder()
    for name in "pqr":
        boxes.add(name, cost=0.4, outcomes=stats.norm(10, 2 + ord(name) % 3))
    found: dict[int, list[float]] = {}
    for line in explain(solve(boxes.build())).splitlines()[1:]:
        level = (len(line) - len(line.lstrip())) // 2
        share = re.search(r"\(([\d.]+)%\)", line)
        found.setdefault(level, []).append(float(share[1]) if share else 100.0)
    assert all(sum(shares) == pytest.approx(100, abs=0.2) for shares in found.values())


def test_several_prizes_have_no_single_threshold():
    rewards = dict.fromkeys(range(14), 1 / 14)
    boxes = Builder(prizes=2).add("a", cost=0.1, outcomes=rewards, count=3)
    text = explain(solve(boxes.build()))
    assert "best so far" not in text
    assert "... and 2 more outcomes of a (14.3%)" in text


def test_signals_are_still_told_one_by_one():
    names = {f"s{i}": 1 / 14 for i in range(14)}
    boxes = Builder().add("s", cost=0.1, outcomes=names, rewards=dict.fromkeys(names))
    after = {n: {0: 1 - i / 14, 5: i / 14} for i, n in enumerate(names)}
    boxes.add("d", parent="s", cost=1, outcomes=after)
    text = weitzman.explain(weitzman.solve(boxes.build()), lines=100)
    assert "... and 2 more outcomes of s (14.3%)" in text


def test_names_cannot_disturb_a_terminal():
    """Escapes of terminals and marks that turn the direction of text are shown, not sent."""
    names = ["\x1b[31mred", "left\u202etfel"]
    states = ["\x1b]0;title\x07", "\u2066fine"]
    f = weitzman.Forest.from_arrays(
        parent=[-1, 0], cost=[1, 1], rewards=[[0, 9]] * 2, law=[[0.5, 0.5], [[0.5, 0.5]] * 2],
        names=names, states=[states] * 2, outside=1,
    )  # fmt: skip
    said, search = [weitzman.explain(weitzman.solve(f)), weitzman.describe(f)], None
    for state in (1, 0):
        search = weitzman.Search(weitzman.solve(f))
        said += [search.explain(), search.explain(names[0])]
        search.ask()
        said.append(search.explain())
        search.tell(names[0], states[state])
        said += [search.explain(), search.explain(names[0]), search.undo()]
    assert not [c for text in said for c in text if not c.isprintable() and c != "\n"]


def test_a_description_says_objective_outside_option_and_durations():
    boxes = weitzman.Builder(outside=3, minimize=True, rate=0.1)
    boxes.add("A", cost=1, duration=2, outcomes={0: 0.5, 10: 0.5})
    boxes.add("B", parent="A", cost=1, outcomes={0: {1: 0.5, 2: 0.5}, 10: {1: 1}}, duration=4)
    said = weitzman.describe(boxes.build())
    assert "Rewards are losses" in said
    assert "Outside option: 3." in said
    assert "A: costs 1, takes 2, shows" in said
    assert "B: costs 1, takes 4, can be opened after A" in said
