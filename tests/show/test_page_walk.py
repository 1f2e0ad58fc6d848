"""The script of the pages takes the same steps as the walk, and gives the same reasons."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from importlib.resources import files
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_walks import possible, ruled_forests

from weitzman import Policy
from weitzman._common.numbers import typed_number
from weitzman.errors import InvalidFile
from weitzman.files.ranges import typed_spread
from weitzman.policy.frontier import Box
from weitzman.policy.walk import Walk
from weitzman.policy.words import why
from weitzman.show.page import _EXPORT, _IMPORT, STEPPER, finite
from weitzman.show.report.findings import problem, steps

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="NODE IS NOT INSTALLED: walk.js is not tested")

STEPS = 8
DRAWN = {"draw.js", "chart.js", "stepper.js", "answers.js"}  # these need a browser

DRIVER = """
import { createInterface } from "node:readline";

function standing(walk) {
  const next = walk.next();
  return {
    next: next && walk.label(next), prize: walk.nextPrize()?.box ?? null, over: walk.over,
    payoff: walk.payoff, time: walk.time, taken: (walk.hands?.taken ?? []).map((s) => s.box),
    why: plain(walk.why()), best: walk.best, bestBox: walk.bestBox,
    spent: walk.spent, closed: walk.available().map((g) => [g.v, g.row, g.left]),
    history: walk.told.map((s) => [s.box, s.best, s.bestBox, s.spent]),
  };
}

/** How a walk stands after steps that were given, and after each further one that it takes. */
function walked({ problem, given, shown, ...scale }) {
  Object.assign(amounts, scale);
  const walk = new Walk(unpack(problem), given);
  const all = [standing(walk)];
  for (const y of shown) {
    if (y === "take") walk.take(walk.nextPrize());
    else walk.tell(walk.next(), y);
    all.push(standing(walk));
  }
  for (const was of all.slice(0, -1).reverse()) {
    walk.undo();
    if (JSON.stringify(standing(walk)) !== JSON.stringify(was)) throw new Error("undo");
  }
  return all;
}

function played({ problem, given, chances }) {
  const drawn = [...chances];
  return new Walk(unpack(problem), given).futures(1, () => drawn.shift() ?? 0);
}

function meant({ payoffs, risk, minimize }) {
  return new Problem({ boxes: [], outside: 0, minimize, risk }).mean(payoffs);
}

const typed = ({ texts }) => texts.map(typedNumber);
const based = ({ texts }) => texts.map(typedBase);

const questions = { walked, played, meant, typed, based };
for await (const line of createInterface({ input: process.stdin })) {
  const { what, ...rest } = JSON.parse(line);
  let answer;
  try { answer = questions[what](rest); } catch (error) { answer = { failed: error.stack }; }
  console.log(JSON.stringify(answer));
}
"""


class Script:
    """The page's script in a process of its own."""

    def __init__(self, path: str) -> None:
        self._process = subprocess.Popen(
            [str(NODE), path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, what: str, **request: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(finite({"what": what, **request})), file=self._process.stdin, flush=True)
        answer = json.loads(self._process.stdout.readline())
        assert "failed" not in answer, answer
        return answer

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Script]:
    folder = files("weitzman.show.page")
    texts = [folder.joinpath(n).read_text("utf-8") for n in STEPPER if n not in DRAWN]
    texts.append(files("weitzman.show.explore").joinpath("fields.js").read_text("utf-8"))
    path = tmp_path_factory.mktemp("node") / "walk.mjs"
    path.write_text("\n".join([_EXPORT.sub("", _IMPORT.sub("", t)) for t in texts] + [DRIVER]))
    script = Script(str(path))
    yield script
    script.close()


def standing(walk: Walk) -> dict[str, Any]:
    """How a walk stands, in the words of the driver."""
    found, (best, best_box, spent) = walk.next(), walk.best
    prize = walk.next_prize()
    factor, paid, time = walk.discounted() if walk.forest.factors is not None else (1, spent, 0)
    taken = () if walk.hands is None else walk.hands.taken.values()
    return {
        "next": None if found is None else str(walk.box(found[0])),
        "prize": None if prize is None else str(walk.box(prize)),
        "over": found is None and prize is None,
        "payoff": factor * best - walk.sign * paid if np.isfinite(best) else None,
        "time": pytest.approx(time, rel=1e-12),
        "taken": [str(walk.box(box)) for box, _ in taken],
        "why": why(walk).replace("-", "−"),
        "best": best if np.isfinite(best) else None,
        "bestBox": best_box,
        "spent": spent,
        "closed": reachable(walk),
        "history": [
            [s.box, s.best if np.isfinite(s.best) else None, s.best_box, s.spent]
            for s in walk.history
        ],
    }


def reachable(walk: Walk) -> dict[tuple[int, int], int]:
    """Copies of each box that can be opened, by the state of the parent; not in closed trees."""
    if walk.hands is None:
        return dict(walk.closed())
    found: Counter[tuple[int, int]] = Counter()
    for box, _ in walk.frontier.best_first():
        found[box[0], walk.state_above(box)] += 1
    return dict(found)


def merged(answer: dict[str, Any]) -> dict[str, Any]:
    """Groups of copies that are alike, counted together."""
    closed: Counter[tuple[int, int]] = Counter()
    for v, row, left in answer["closed"]:
        closed[v, row] += left
    return {**answer, "closed": dict(closed)}


def any_steps(walk: Walk, data: st.DataObject) -> None:
    """Open some boxes that can be opened, in any order."""
    for _ in range(data.draw(st.integers(0, 4), label="given")):
        ranked = list(islice(walk.frontier.best_first(), 20))
        if not ranked:
            return
        box, _ = data.draw(st.sampled_from(ranked))
        walk.show(box, data.draw(st.sampled_from(possible(walk, box)))[0])


def take(walk: Walk, prize: Any) -> None:
    assert walk.hands is not None
    walk.hands.take(prize, walk.answers[prize].reward)


def any_taken(walk: Walk, data: st.DataObject) -> list[Box]:
    """Take some prizes that can be taken, in any order."""
    found = []
    while walk.hands is not None and not walk.hands.full and walk.hands.held:
        if not data.draw(st.booleans(), label="take"):
            break
        box, _ = data.draw(st.sampled_from(sorted(walk.hands.held.values())))
        take(walk, box)
        found.append(walk.box(box))
    return found


@settings(max_examples=200)
@given(policy=ruled_forests(terms=True), data=st.data())
def test_the_script_takes_the_same_steps(
    script: Script, policy: Policy, data: st.DataObject
) -> None:
    """After steps that were taken in any order, and then after each that the rule asks for."""
    keep = np.arange(len(policy.forest))
    walk = Walk(policy)
    any_steps(walk, data)
    given = steps(walk.history, keep, any_taken(walk, data))
    wanted, shown = [standing(walk)], []
    while len(shown) < STEPS and not wanted[-1]["over"]:
        if (prize := walk.next_prize()) is not None:
            shown.append("take")
            take(walk, prize)
        else:
            box, _ = walk.next()
            shown.append(data.draw(st.sampled_from(possible(walk, box)))[0])
            walk.show(box, shown[-1])
        wanted.append(standing(walk))
    unit, spread, digits = walk.amounts
    described = problem(policy, keep)
    described["amounts"]["digits"] = digits  # in a report fewer, for people
    answer = script.ask(
        "walked", problem=described, given=given, shown=shown, unit=unit, spread=spread
    )
    assert [merged(a) for a in answer] == wanted


@settings(max_examples=60)
@given(policy=ruled_forests(endless=False, terms=True), data=st.data())
def test_futures_are_played_by_the_same_rule(
    script: Script, policy: Policy, data: st.DataObject
) -> None:
    keep = np.arange(len(policy.forest))
    walk = Walk(policy)
    any_steps(walk, data)
    given = steps(walk.history, keep, any_taken(walk, data))
    chances = data.draw(st.lists(st.floats(0, 0.999), min_size=60, max_size=60))
    drawn = iter(chances)
    while (prize := walk.next_prize()) is not None or walk.next() is not None:
        if prize is not None:
            take(walk, prize)
            continue
        found = walk.next()
        assert found is not None
        u = next(drawn, 0.0)
        total, state = 0.0, -1
        for y, p in possible(walk, found[0]):
            total, state = total + p, y
            if u < total:
                break
        walk.show(found[0], state)
    payoff = standing(walk)["payoff"]
    if payoff is not None:
        answer = script.ask("played", problem=problem(policy, keep), given=given, chances=chances)
        assert answer == [pytest.approx(payoff, abs=1e-9)]


@given(
    payoffs=st.lists(st.floats(-50, 50), min_size=2, max_size=9),
    risk=st.sampled_from([None, 0.5, 3.0, 100.0]),
    minimize=st.booleans(),
)
def test_means_and_certainty_equivalents(
    script: Script, payoffs: list[float], risk: float | None, minimize: bool
) -> None:
    answer = script.ask("meant", payoffs=payoffs, risk=risk, minimize=minimize)
    z = np.array(payoffs)
    wanted = z.mean()
    if risk is not None:
        scale = (1 if minimize else -1) / risk
        wanted = np.log(np.exp(scale * z - (scale * z).max()).mean()) / scale + (
            (scale * z).max() / scale
        )
    assert answer["mean"] == pytest.approx(wanted, abs=1e-9)
    assert answer["error"] >= 0
    assert risk is not None or answer["error"] == pytest.approx(z.std(ddof=1) / len(z) ** 0.5)


def test_ranges_are_read_as_in_sheets(script: Script) -> None:
    texts = [
        "80/100/130", "80k / 100k / 130k", "20%/30%/0.5", "3/2/1", "1/2", "1/2/3/4", "a/b/c",
        "-3/-2/0", "normal(100; 20)", "Normal(1,000; 20)", "lognormal(5, 2)",
        "uniform(0; 10)",
        "triangular(0; 1; 5)", "PERT(0; 1; 5)", "P10/P50/P90(1; 2; 7)", "p10p50p90(1; 2; 2.5)",
        "normal(1)", "beta(1; 2)", "normal(1; 2; 3)", "100", "", "pert(1; x; 3)",
    ]  # fmt: skip
    for text, found in zip(texts, script.ask("based", texts=texts), strict=True):
        try:
            spread = typed_spread(text, lambda part: typed_number(part).value, False)
        except InvalidFile:
            spread = None
        expected = None if spread is None else pytest.approx(spread.base, rel=1e-14)
        assert found == expected, text


def test_numbers_are_read_as_in_sheets_and_options(script: Script) -> None:
    """150,000 became 150 and $300,000 was no number: the page had rules of its own."""
    marks = ["", "$", "€", "US$", " EUR", "%", "k", "M", "bn", "T€", "kg", "£", "CHF "]
    bodies = [
        "150,000", "1,500", "1.5", "0,35", "1,5", "30.000", "1.234.567", "1,234,567.89", "12,34,5",
        "7", "-7", "−7", "(500)", "2e3", "1/2", "3/0", "95'000", ".5", "5.", "1,50,000", "0.000",
        "--5", "", "abc", "1,234", "12,000", "0,000", "1e999", "+3", "1_000", "½",
    ]  # fmt: skip
    texts = [
        *bodies,
        *(m + b for m in marks for b in bodies),
        *(b + m for m in marks for b in bodies),
    ]
    for text, found in zip(texts, script.ask("typed", texts=texts), strict=True):
        try:
            expected = typed_number(text).value
        except ValueError:
            expected = None
        assert found == (None if expected is None else pytest.approx(expected, rel=1e-15)), text
