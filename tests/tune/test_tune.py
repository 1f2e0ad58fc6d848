"""The plain loop: what it decides, writes down, survives and tells."""

from __future__ import annotations

import io
import json
import math
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from journal_events import events_in, journal_of
from test_tune_race import policy_moves
from tuning_worlds import Chained, four_grades, slow_starters

from weitzman import learn, tune
from weitzman.errors import InvalidAnswer, InvalidArgument, InvalidFile, JournalError
from weitzman.files import event_log
from weitzman.tune.outcome import Display

MODEL = four_grades()
CURVES = slow_starters(MODEL)
CONFIGS = [{"curve": i} for i in range(12)]

HELPERS = Path(__file__).parents[1] / "helpers"


def train(config: dict[str, int], past: tune.Past) -> Iterator[tuple[float, float]]:
    """A run that can be brought back."""
    for step, score, cost in MODEL.shown(CURVES[config["curve"]]):
        if step > past.step:
            yield score, cost


def forgetful(config: dict[str, int]) -> Iterator[tuple[float, float]]:
    """A run that cannot."""
    yield from train(config, tune.Past(0))


class Stepwise:
    """A run as an object."""

    def __init__(self, config: dict[str, int]) -> None:
        self.rows = train(config, tune.Past(0))
        self.closed = False

    def advance(self) -> tuple[float, float] | None:
        return next(self.rows, None)


def moves(result: tune.Result, model: Chained = MODEL) -> set[tuple[int, int]]:
    """(run, rung) of all that was paid for."""
    return {
        (number, step)
        for number, run in enumerate(result.runs)
        for step in run.steps
        if step in model.rungs
    }


def seen(reports: list[tune.Report]) -> list[tuple[int | None, int | None]]:
    return [(report.run, report.step) for report in reports if report.event == "seen"]


@pytest.mark.parametrize("start", [train, forgetful, Stepwise])
def test_it_does_what_the_policy_does(start):
    reports: list[tune.Report] = []
    result = tune.optimize(start, CONFIGS, MODEL, outside=0.0, callback=reports.append)
    wanted, best, spent = policy_moves(MODEL, CURVES, 0.0)
    assert [(run, step) for run, step in seen(reports) if step in MODEL.rungs] == wanted
    assert (result.best_score, result.worth) == (best, best)
    assert result.spent == pytest.approx(spent)
    assert result.payoff == pytest.approx(best - spent)
    assert result.best_config == CONFIGS[result.best_run]
    assert result.runs[result.best_run].scores[-1] == best
    assert result.reason.startswith("Stop: ")
    assert str(result).startswith(f"Best score {best:g} (run {result.best_run}, step ")


def test_a_sampler_and_an_iterator_do_as_well():
    wanted = tune.optimize(train, CONFIGS, MODEL)
    assert tune.optimize(train, lambda run: {"curve": run}, MODEL) == wanted
    assert tune.optimize(train, iter(CONFIGS), MODEL) == wanted
    few = tune.optimize(train, iter(CONFIGS[:1]), MODEL)
    assert len(few.runs) == 1


def test_nothing_to_start():
    result = tune.optimize(train, [], MODEL)
    assert (result.best_score, result.best_config, result.runs, result.spent) == (None, None, (), 0)
    assert str(result) == "No score; spent 0. Stop: no run is left to advance or to start."


def test_costs_are_measured_if_not_told():
    now = [0.0]

    def slow(config):
        now[0] += 0.125  # to start
        for score in (4.0, 7.0, 7.0):
            now[0] += 0.25
            yield score

    result = tune.optimize(slow, [1], MODEL, clock=lambda: now[0])
    assert result.runs[0].costs == (0.375, 0.25, 0.25)
    assert result.runs[0].over == "ended"


def test_time_in_which_a_run_is_paused_is_not_its_cost():
    now = [0.0]
    poor = np.minimum(MODEL.curves(5, np.random.default_rng(0)), 1)  # resumed again and again

    def slow(config):
        for _, score, _ in MODEL.shown(poor[config]):
            now[0] += 0.25
            yield score

    result = tune.optimize(slow, list(range(5)), MODEL, clock=lambda: now[0])
    assert {cost for run in result.runs for cost in run.costs} == {0.25}
    assert result.spent == now[0]


def test_steps_may_be_numbered_by_the_run():
    def rungs(config):
        rows = {step: score for step, score, _ in MODEL.shown(CURVES[config["curve"]])}
        for step in MODEL.rungs:
            yield rows[step], 0.5, step

    result = tune.optimize(rungs, CONFIGS, MODEL)
    assert moves(result) == moves(tune.optimize(train, CONFIGS, MODEL))
    assert result.runs[result.best_run].steps[:2] == (1, 3)


# -- the journal -------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 3])
def test_stopped_anywhere_it_continues_where_it_stood(tmp_path: Path, workers: int):
    """Every prefix of a journal leads to the same end, and nothing in it is paid for again."""
    whole = tmp_path / "whole"
    result = tune.optimize(train, CONFIGS, MODEL, journal=whole, outside=0.0)
    wanted = events_in(whole)
    for cut in range(0, len(wanted) + 1, workers):
        path = tmp_path / f"{cut}-{workers}"
        journal_of(path, wanted[:cut])
        reports: list[tune.Report] = []
        again = tune.optimize(
            train, CONFIGS, MODEL, journal=path, outside=0.0, callback=reports.append,
            workers=workers,
        )  # fmt: skip
        if workers == 1:
            assert again == result
            assert events_in(path) == wanted
        kept = {(e["run"], e["step"]) for e in wanted[:cut] if e["event"] == "seen"}
        assert not kept & set(seen(reports))


def test_sigkill_loses_nothing(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, str(HELPERS / "tune_killing.py"), tmp_path, "25", "3"],
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["wrong"] == []
    assert told["kills"] >= 25
    assert told["steps"] > 20


def test_a_finished_search_costs_nothing_to_look_at(tmp_path: Path):
    path = tmp_path / "journal"
    result = tune.optimize(train, CONFIGS, MODEL, journal=path)

    def never(config, past):
        raise AssertionError("nothing is to be started")

    assert tune.optimize(never, CONFIGS, MODEL, journal=path) == result


def interrupted(path: Path, start) -> None:
    """Tune until a run is in the middle of a move, and die."""

    def die(report: tune.Report) -> None:
        if report.event == "seen" and report.step not in MODEL.rungs:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune.optimize(start, CONFIGS, MODEL, journal=path, outside=0.0, callback=die)


def test_runs_that_cannot_be_brought_back_are_left(tmp_path: Path):
    path = tmp_path / "journal"
    interrupted(path, forgetful)
    before = [e for e in events_in(path) if e["event"] == "seen"]
    with pytest.warns(UserWarning, match=r"run \d+ was under way .* say on_missing_checkpoint="):
        result = tune.optimize(forgetful, CONFIGS, MODEL, journal=path, outside=0.0)
    lost = [number for number, run in enumerate(result.runs) if run.over == "lost"]
    assert lost
    for number in lost:
        steps = tuple(e["step"] for e in before if e["run"] == number)
        assert result.runs[number].steps == steps
    paid = sum(cost for run in result.runs for cost in run.costs)
    assert result.spent == pytest.approx(paid)


def test_or_trained_again_and_paid_for_again(tmp_path: Path):
    path = tmp_path / "journal"
    interrupted(path, forgetful)
    result = tune.optimize(
        forgetful, CONFIGS, MODEL, journal=path, outside=0.0, on_missing_checkpoint="replay"
    )
    whole = tune.optimize(forgetful, CONFIGS, MODEL, outside=0.0)
    assert result.runs == whole.runs
    paid = [e["cost"] for e in events_in(path) if e["event"] == "paid"]
    assert paid
    assert result.spent == pytest.approx(whole.spent + sum(paid))


def test_a_journal_in_use_is_left_alone(tmp_path: Path):
    path = tmp_path / "journal"

    def nested(config):
        with pytest.raises(
            JournalError, match=rf"process {os.getpid()} on .* is using the journal"
        ):
            tune.optimize(forgetful, CONFIGS, MODEL, journal=path)
        yield 10.0, 0.1

    assert tune.optimize(nested, [1], MODEL, journal=path).best_score == 10


def test_damage_is_rejected_and_left_alone(tmp_path: Path):
    path = tmp_path / "journal"
    tune.optimize(train, CONFIGS, MODEL, journal=path)
    whole = path.read_bytes()
    cases = {
        "it must have": whole[:-1],
        "was changed": whole.replace(b"curve", b"curse", 1),
        "the file is not a journal": b"my thesis",
        "the file is empty": b"",
    }
    for message, content in cases.items():
        path.write_bytes(content)
        with pytest.raises(InvalidFile, match=message):
            tune.optimize(train, CONFIGS, MODEL, journal=path)
        assert path.read_bytes() == content


def test_no_damage_drops_an_event_in_silence(tmp_path: Path):
    """Every byte, changed or cut off: the search is refused, or comes to the same end for free."""
    path = tmp_path / "journal"
    result = tune.optimize(train, CONFIGS, MODEL, journal=path)
    whole = path.read_bytes()

    def never(config, past):
        raise AssertionError("what was promised is paid for again")

    refused, rng = 0, np.random.default_rng(5)
    for at in rng.choice(len(whole), 200, replace=False).tolist():
        flawed = bytearray(whole)
        flawed[at] ^= 1 << int(rng.integers(8))
        for content in (bytes(flawed), whole[:at]):
            path.write_bytes(content)
            try:
                assert tune.optimize(never, CONFIGS, MODEL, journal=path) == result
            except InvalidFile:
                refused += 1
    assert refused > 200  # the others fell on the time of day, or on space that is not in use


def test_another_problem_is_rejected(tmp_path: Path):
    path = tmp_path / "journal"
    tune.optimize(train, CONFIGS, MODEL, journal=path)
    with pytest.raises(
        InvalidArgument, match=r"run 0 was started with {'curve': 0}, but now it is"
    ):
        tune.optimize(train, CONFIGS[1:], MODEL, journal=path)
    with pytest.raises(InvalidArgument, match="a search that maximizes, unlike the model"):
        tune.optimize(train, CONFIGS, four_grades(minimize=True), journal=path)
    with pytest.raises(InvalidArgument, match="configurations must be made of numbers, texts"):
        tune.optimize(train, [object()], MODEL, journal=tmp_path / "new")
    with pytest.raises(JournalError, match="cannot be used as a journal: it is a folder"):
        tune.optimize(train, CONFIGS, MODEL, journal=tmp_path)


def test_numbers_of_numpy_may_stand_in_a_journal(tmp_path: Path):
    configs = [{"curve": np.int64(0), "rates": np.array([0.5, 1.0])}]
    result = tune.optimize(train, configs, MODEL, journal=tmp_path / "journal")
    assert result.best_config is configs[0]  # with the types that it has here


def test_a_row_that_cannot_be_written_is_not_believed(tmp_path: Path, monkeypatch):
    path = tmp_path / "journal"
    interrupted(path, train)
    before, plain = events_in(path), event_log.connect

    def small(where: str, mode: str = "rw", until: float = 0.0):
        db = plain(where, mode, until)
        db.execute("PRAGMA max_page_count=1")  # no more than there are
        return db

    monkeypatch.setattr(event_log, "connect", small)
    reports: list[tune.Report] = []
    with pytest.raises(JournalError, match=r"disk is full.* all before it is safe"):
        tune.optimize(
            train, lambda i: {"curve": 0, "notes": "x" * 9000}, MODEL, journal=path,
            callback=reports.append,
        )  # fmt: skip
    new = [(e["run"], e["step"]) for e in events_in(path)[len(before) :] if e["event"] == "seen"]
    assert events_in(path)[: len(before)] == before
    assert new == seen(reports)


@pytest.mark.parametrize("executor", [None, ThreadPoolExecutor(1)])
@pytest.mark.parametrize("first", [0, -3])
def test_steps_may_be_counted_from_elsewhere(first: int, executor):
    """The first rung may lie at step 0 or below: a move makes one step at least."""
    model = Chained([0.5, 0.5], [[0.5, 0.5], [0.0, 1.0]], [0.0, 1.0], [0.1] * 3,
                    [first, first + 1, first + 3])  # fmt: skip

    def counted(config, past: tune.Past):
        for step in range(first, first + 4):
            if not past.steps or step > past.step:
                yield float(step >= first + config), 0.05, step

    result = tune.optimize(counted, [3, 2], model, outside=0.0, executor=executor)
    assert result.best_score == 1.0
    assert result.runs[0].steps[0] == first
    with_zero = learn.fit(learn.sample().of_task("letter"), price=1000)
    assert with_zero.rungs[0] == 0
    shown = [(0.3, 0.02), (0.4, 0.02)]  # at about the costs of the log
    assert tune.optimize(lambda config: iter(shown), [0, 1], with_zero).best_score == 0.4


def test_a_diverged_run_is_not_trained_on_to_its_rung():
    model = Chained([0.5, 0.5], [[0.5, 0.5], [0.0, 1.0]], [0.0, 1.0], [0.1] * 2, [4, 9])

    def start(config, past: tune.Past):
        yield from [(0.0, 0.1), (math.nan, 0.1), (0.0, 0.1), (0.0, 0.1)]

    for executor in (None, ThreadPoolExecutor(1)):
        result = tune.optimize(start, [0, 1], model, executor=executor)
        assert [run.steps for run in result.runs] == [(1, 2), (1, 2)]
        assert result.spent == pytest.approx(0.4)


@pytest.mark.parametrize("run", [[], [(math.nan, 1.0)]])
def test_a_search_without_any_score_comes_to_an_end(run, tmp_path: Path):
    path = tmp_path / "journal"
    with pytest.raises(InvalidAnswer, match="100 have ended or diverged without one"):
        tune.optimize(lambda _: iter(run), lambda i: i, MODEL, journal=path)
    mended = tune.optimize(lambda _: iter([(10.0, 1.0)]), lambda i: i, MODEL, journal=path)
    assert mended.best_run == 100


@pytest.mark.parametrize("configs", ["abc", None, 3])
def test_what_is_no_list_of_configurations(configs):
    with pytest.raises(InvalidArgument, match=f"got a {type(configs).__name__}"):
        tune.optimize(train, configs, MODEL)
    table = pytest.importorskip("pandas").DataFrame({"rate": [0.1, 0.2]})
    with pytest.raises(InvalidArgument, match="got a DataFrame"):
        tune.optimize(train, table, MODEL)


# -- workers -----------------------------------------------------------------------------------


def test_threads_work_side_by_side():
    barrier = threading.Barrier(3, timeout=20)

    def together(config):
        barrier.wait()
        yield from forgetful(config)

    result = tune.optimize(together, CONFIGS[:3], MODEL, workers=3)
    assert len(result.runs) == 3


def processes() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, processes])
def test_any_executor_will_do(kind, tmp_path: Path):
    with kind() as executor:
        result = tune.optimize(
            train, CONFIGS, MODEL, executor=executor, journal=tmp_path / "journal"
        )
    assert result == tune.optimize(train, CONFIGS, MODEL)


def test_what_others_did_is_kept_when_one_breaks(tmp_path: Path):
    """The exception comes out once all that is going on has been written down."""
    path, ready = tmp_path / "journal", threading.Event()

    def start(config):
        if config["curve"] == 1:
            ready.wait(20)
            raise RuntimeError("out of memory")
        ready.set()
        yield from forgetful(config)

    with pytest.raises(RuntimeError, match="out of memory"):
        tune.optimize(start, CONFIGS[:2], MODEL, journal=path, workers=2)
    events = events_in(path)
    assert [e["run"] for e in events if e["event"] == "seen"]
    again = tune.optimize(train, CONFIGS[:2], MODEL, journal=path)
    assert again.runs[1].steps


def test_runs_that_fail_on_purpose_are_left():
    def start(config):
        yield 4.0, 0.25
        if config % 2:
            raise ValueError("nan in the gradients")
        yield 7.0, 0.25

    with pytest.raises(ValueError, match="nan in the gradients"):
        tune.optimize(start, [1, 2], MODEL)
    result = tune.optimize(start, [1, 2], MODEL, catch=(ValueError,))
    assert str(result) == str(tune.optimize(start, [1, 2], MODEL, catch=ValueError))
    assert [run.over for run in result.runs] == ["failed", "ended"]
    assert result.runs[0].steps == (1, 2)
    assert math.isnan(result.runs[0].scores[1])
    assert result.runs[0].costs == (0.25, 0.0)
    with pytest.raises(InvalidAnswer, match="must give a score"):  # a mistake, not a failure
        tune.optimize(lambda config: iter(["good"]), [1], MODEL, catch=(Exception,))


def broken(config, past):
    if past.step >= 1:
        raise ValueError("nan in the gradients")
    yield 4.0, 0.25


def test_failures_elsewhere_are_failures_too():
    with ThreadPoolExecutor(2) as executor:
        result = tune.optimize(
            broken, [1, 2], MODEL, executor=executor, catch=(ValueError,), workers=2
        )
        assert [run.over for run in result.runs] == ["failed", "failed"]
        with pytest.raises(ValueError, match="nan in the gradients"):
            tune.optimize(broken, [1, 2], MODEL, executor=executor)


# -- what it tells -----------------------------------------------------------------------------


def test_reports_tell_how_it_stands():
    reports: list[tune.Report] = []
    result = tune.optimize(train, CONFIGS, MODEL, outside=0.0, callback=reports.append)
    assert (reports[0].event, reports[0].run, reports[0].config) == ("start", 0, {"curve": 0})
    assert reports[0].expected_gain == pytest.approx(
        tune.Race(MODEL, available=12, outside=0.0).expected_gain
    )
    assert (reports[-1].event, reports[-1].reason) == ("stop", result.reason)
    assert reports[-1].expected_gain == 0
    assert reports[-1].spent == result.spent
    for report in reports:
        assert report.worth == max([0.0, *[r.score for r in reports[: reports.index(report) + 1]
                                          if r.score is not None]])  # fmt: skip


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_display_is_one_line_on_a_terminal_and_few_elsewhere():
    reports: list[tune.Report] = []
    tune.optimize(train, CONFIGS, MODEL, callback=reports.append)
    for out, lines in ((Terminal(), 1), (io.StringIO(), 2)):
        display = Display(out, clock=lambda: 0.0)
        for report in reports:
            display(report)
        assert out.getvalue().count("\n") == lines
        assert out.getvalue().endswith("\n")
    assert out.getvalue().splitlines()[0] == (
        "no score yet, spent 0, expected further gain unknown; runs: 1, going: 1 | Start "
        "candidate 0, and train it to step 1: nothing has been seen yet."
    )
    assert "best " in out.getvalue()


def test_progress_goes_to_standard_error(capsys):
    tune.optimize(train, CONFIGS, MODEL, progress=True)
    told = capsys.readouterr()
    assert told.out == ""
    assert " | Stop: " in told.err


def test_the_runs_become_curves_to_learn_from():
    result = tune.optimize(train, CONFIGS, MODEL)
    curves = result.curves
    assert len(curves) == len(result.runs)
    assert curves.score.tolist() == [x for run in result.runs for x in run.scores]
    assert curves.cost.sum() == pytest.approx(result.spent)
    assert not curves.ended.any()


def test_the_model_may_learn_on_the_way():
    """After every run at first, later after a tenth more; each time from all that was seen."""

    class Learning(Chained):
        told: list[list[int]] = []  # noqa: RUF012

        def updated(self, curves):
            self.told.append(np.diff(curves.start).tolist())
            return MODEL

    model = Learning(MODEL.first, MODEL.then, MODEL.scores, [0.1] * 5, MODEL.rungs)
    result = tune.optimize(train, CONFIGS, model, outside=0.0, refit=True)
    assert [len(rows) for rows in model.told] == list(range(1, 12))
    for rows in model.told:
        assert all(n <= len(run.steps) for n, run in zip(rows, result.runs, strict=False))
    with pytest.raises(InvalidArgument, match="must have `updated`, but a Chained does not"):
        tune.optimize(train, CONFIGS, MODEL, refit=True)


def test_a_model_that_learns_comes_to_the_same_end_after_a_crash(tmp_path: Path):
    """What it had learned by each decision is what it learns from the journal."""

    class Learning(Chained):
        def updated(self, curves):
            dearer = [0.05 + 0.01 * len(curves.step)] * 5  # depends on all that was seen
            return Learning(self.first, self.then, self.scores, dearer, self.rungs)

    model = Learning(MODEL.first, MODEL.then, MODEL.scores, [0.1] * 5, MODEL.rungs)
    whole = tmp_path / "whole"
    result = tune.optimize(train, CONFIGS, model, journal=whole, outside=0.0)
    assert result != tune.optimize(train, CONFIGS, model, outside=0.0, refit=False)
    events = events_in(whole)
    for cut in range(0, len(events) + 1, 3):
        path = tmp_path / str(cut)
        journal_of(path, events[:cut])
        assert tune.optimize(train, CONFIGS, model, journal=path, outside=0.0) == result


def test_runs_are_closed_once_they_are_out_of_the_race():
    closed = []

    def start(config):
        try:
            yield from forgetful(config)
        finally:
            closed.append(config["curve"])

    result = tune.optimize(start, CONFIGS, MODEL)
    assert sorted(closed) == list(range(len(result.runs)))


# -- what cannot be ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "options", "message"),
    [
        (train, {"workers": 0}, "`workers` must be a whole number from 1 on, but it is 0"),
        (train, {"on_missing_checkpoint": "cry"}, 'must be "abandon" or "replay", but'),
        (train, {"executor": 3}, "`executor` must have `submit`, but it is 3"),
        (forgetful, {"executor": ThreadPoolExecutor(1)}, "`start` must take a parameter `past`"),
        (lambda config: 3, {}, "must return a generator or an object with `advance"),
    ],
)
def test_settings_that_cannot_be(start, options, message):
    with pytest.raises(InvalidArgument, match=message):
        tune.optimize(start, CONFIGS, MODEL, **options)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["good"], "a step must give a score, .score, cost. or .score, cost, step., all numbers"),
        ([(1, 2, 3, 4)], "a step must give"),
        ([(1.0, 0.5, 1.5)], "a step must give"),
        ([(1.0, -0.5)], "a cost must be finite and not negative"),
        ([(4.0, 0.5), (4.0, 0.5, 1)], "the steps of a run must rise"),
        ([(7.0, 0.5), 4.0], "either all steps or none must give their cost, but run 0, step 2"),
    ],
)
def test_rows_that_cannot_be(rows, message, tmp_path: Path):
    path = tmp_path / "journal"
    with pytest.raises(InvalidAnswer, match=message):
        tune.optimize(lambda config: iter(rows), [1], MODEL, journal=path)
    with pytest.raises(InvalidAnswer, match=message):  # what is wrong was not written down
        tune.optimize(lambda config, past: iter(rows[past.step :]), [1], MODEL, journal=path)


# -- with learned models ------------------------------------------------------------------------


def rough(seed: int, minimize: bool) -> list[tuple[float, float]]:
    """A noisy curve that may diverge and may end early."""
    rng = np.random.default_rng(seed)
    top, speed = 0.87 - 0.4 * rng.random() ** 2, 0.05 + rng.random()
    scores = top * (1 - np.exp(-speed * np.arange(1, 17))) + 0.01 * rng.normal(size=16)
    if rng.random() < 0.2:
        scores[rng.integers(16) :] = math.nan
    length = 16 if rng.random() < 0.8 else int(rng.integers(1, 16))
    sign = -1 if minimize else 1
    return [(sign * float(x), float(c)) for x, c in zip(scores, rng.random(16) + 0.5, strict=True)][
        :length
    ]


@pytest.mark.parametrize("minimize", [False, True])
def test_a_learned_model_with_rough_curves(minimize: bool, tmp_path: Path):
    log = [rough(1000 + i, minimize) for i in range(25)]
    rows = [(i, step, *row) for i, run in enumerate(log) for step, row in enumerate(run, 1)]
    columns = dict(zip(("run", "step", "score", "cost"), zip(*rows, strict=True), strict=True))
    curves = learn.Curves.read(columns, minimize=minimize)
    model = learn.fit(curves, price=1000)

    def start(config: int, past: tune.Past):
        yield from rough(config, minimize)[past.step :]

    path = tmp_path / "journal"
    result = tune.optimize(start, range(40), model, journal=path)
    scores = [x for run in result.runs for x in run.scores if not math.isnan(x)]
    assert result.best_score == (min(scores) if minimize else max(scores))
    assert result.spent == pytest.approx(sum(c for run in result.runs for c in run.costs))
    for number, run in enumerate(result.runs):
        paid = rough(number, minimize)[: len(run.steps)]
        np.testing.assert_array_equal(run.scores, [x for x, _ in paid])
    events = events_in(path)
    cut = tmp_path / "cut"
    journal_of(cut, events[: len(events) * 2 // 3], minimize=minimize)
    again = tune.optimize(start, range(40), model, journal=cut)
    assert (again.spent, again.best_score, again.reason) == (
        result.spent, result.best_score, result.reason,
    )  # fmt: skip
    three = tune.optimize(start, range(40), model, workers=3)
    assert three.runs
