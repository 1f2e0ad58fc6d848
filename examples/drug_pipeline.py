"""A portfolio of drug programs, of which one can be launched: which to advance, when to stop?

Success rates are counted from 29,476 real programs (data/drug_stages.csv, CC BY 4.0, see there).
Costs by stage are those of S. M. Paul et al., "How to improve R&D productivity: the pharmaceutical
industry's grand challenge", Nature Reviews Drug Discovery 9, 203-214 (2010): out of pocket, for
one program entering the stage, in millions of 2008 dollars, submission counted with phase 3. An
approval is taken to be worth 873, their out-of-pocket cost of one launch with all failures, as if
the industry just recouped what it spends. All of these are assumptions: put in your own. Time and
the cost of capital are left out at first; the last part counts them, with the durations and the
11 % of the same paper. docs/how-to/drug-pipeline.md explains every step.
"""

import csv
import math
from pathlib import Path

import weitzman
from weitzman.strategies import by_expected_value

COST = {"preclinical": 5, "phase 1": 15, "phase 2": 40, "phase 3": 150 + 40}
YEARS = {"preclinical": 1.0, "phase 1": 1.5, "phase 2": 2.5, "phase 3": 2.5 + 1.5}
WORTH, CAPITALIZED = 873, 1778  # of an approval, without and with the cost of capital
PORTFOLIO = {  # name: group, the stage it would enter next, how many there are
    "lead": ("common", "phase 2", 1),
    "backup": ("common", "phase 1", 1),
    "new": ("common", "preclinical", 4),
    "rare": ("orphan", "preclinical", 2),
}
MARKETS = {"lead": 1500, "backup": 2500, "new": 3500, "rare": 2000}  # made-up numbers
VIEWS = ("as the decided ones", "as ended", "as passed")  # how to count programs still active


def rates(view):
    """The chance to pass, by group and stage."""
    text = (Path(__file__).parent / "data" / "drug_stages.csv").read_text("utf-8")
    found = {}
    for row in csv.DictReader(x for x in text.splitlines() if not x.startswith("#")):
        passed, ended, active = (int(row[x]) for x in ("passed", "ended", "active"))
        if view == "as ended":
            ended += active
        elif view == "as passed":
            passed += active
        found[row["group"], row["stage"]] = passed / (passed + ended)
    return found


def forest_of(portfolio, rate, worth, interest=None):
    """A line of stages for each program: passed or ended, and at the end approved or ended.

    With interest, what comes later is discounted; without it, time is free.
    """
    stages = list(COST)
    builder = weitzman.Builder(rate=None if interest is None else math.log(1 + interest))
    worth = worth if isinstance(worth, dict) else dict.fromkeys(portfolio, worth)
    for name, (group, start, count) in portfolio.items():
        before = None
        for stage in stages[stages.index(start) :]:
            good = "approved" if stage == "phase 3" else "passed"
            law = {good: rate[group, stage], "ended": 1 - rate[group, stage]}
            builder.add(
                f"{name}, {stage}",
                parent=before,
                cost=COST[stage],
                count=1 if before else count,
                outcomes={"passed": law} if before else law,
                duration=None if interest is None else YEARS[stage],
                rewards={good: worth[name] if stage == "phase 3" else None, "ended": None},
            )
            before = f"{name}, {stage}"
    return builder.build()


def main() -> None:
    """Print what the page docs/how-to/drug-pipeline.md explains."""
    print("chance to pass (programs still active counted as ended ... as the rest ... as passed)")
    low, mid, high = (rates(view) for view in ("as ended", "as the decided ones", "as passed"))
    for key in mid:
        print(f"  {key[0]:7} {key[1]:12} {low[key]:.2f} ... {mid[key]:.2f} ... {high[key]:.2f}")

    forest = forest_of(PORTFOLIO, mid, WORTH)
    solution = weitzman.solve(forest)
    plan = weitzman.evaluate(solution)
    print(
        f"\nworth of the portfolio {solution.value:.1f}, expected spend {plan.spend:.1f}, ", end=""
    )
    print(f"chance of an approval {1 - plan.outside:.3f}")
    print(f"advance first: {solution.first_box}\n")
    print("program     next stage     index   chance that one is advanced")
    for name, (_, stage, count) in PORTFOLIO.items():
        box = f"{name}, {stage}"
        chance = plan.opened[forest.box(box)] / count
        print(f"{name:11} {stage:12} {solution.index(box):7.1f}   {chance:.2f}")

    turn = weitzman.break_even(solution, "lead, phase 2")
    print(f"\nphase 2 of the lead pays up to a cost of {turn.opened_below:.0f}; ", end="")
    print(f"it would come first below {turn.first_below:.1f}")

    print("\nworth of an approval   value and first step, programs still active counted ...")
    print(" " * 22 + "".join(f"{view:>30}" for view in VIEWS))
    for worth in (300, 450, 600, 873, 1395):
        cells = []
        for view in VIEWS:
            found = weitzman.solve(forest_of(PORTFOLIO, rates(view), worth))
            first = found.first_box or "nothing"
            cells.append(f"{found.value:9.1f} {first:>20}")
        print(f"{worth:22}{''.join(cells)}")

    # With two outcomes per stage, the index is the worth less the expected cost per approval.
    per_approval = (40 + mid["common", "phase 2"] * 190) / (
        mid["common", "phase 2"] * mid["common", "phase 3"]
    )
    assert abs(solution.index("lead, phase 2") - (WORTH - per_approval)) < 1e-9

    # Time: each stage takes years, and capital costs 11 % per year.
    print("\nwith time: rNPV of each program alone, index, what ranking by rNPV earns, the optimum")
    for title, worth in (("one worth", CAPITALIZED), ("other markets", MARKETS)):
        timed = forest_of(PORTFOLIO, mid, worth, interest=0.11)
        present, by_rnpv = weitzman.solve(timed), by_expected_value(timed)
        for name, (_, stage, _) in PORTFOLIO.items():
            box = timed.box(f"{name}, {stage}")
            rnpv = by_rnpv.index[by_rnpv.index_at[box]]
            print(f"  {title:14} {name:7} {rnpv:6.0f} {present.index(box):6.0f}")
            alone = weitzman.solve(timed.subtree(box)).value
            assert abs(alone - rnpv) < 1e-9  # one program alone is worth its rNPV
        earned, plan = weitzman.evaluate(by_rnpv).value, weitzman.evaluate(present)
        print(f"  {title:14} ranking by rNPV {earned:.1f}, by index {present.value:.1f}, ", end="")
        print(f"first {present.first_box}, {plan.time:.1f} years on average")
        assert earned <= present.value + 1e-9


if __name__ == "__main__":
    main()
