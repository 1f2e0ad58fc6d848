"""Count how drug programs left each stage: ``make_drug_stages.py PROGRAMS.csv.gz``.

The input has a row for each program (a target and an indication) with the furthest stage it
reached, four columns that say TRUE, FALSE or nothing for "did it pass on to the next stage", and
whether the indication is an orphan one. See the heading of the table for its origin.
"""

import csv
import gzip
import sys
from collections import Counter
from collections.abc import Iterable, Iterator

STAGES = {  # name of the stage: the furthest stage as it is called, the column that says "passed"
    "preclinical": ("Preclinical", "preclinical_to_1"),
    "phase 1": ("Phase I", "phase1_to_2"),
    "phase 2": ("Phase II", "phase2_to_3"),
    "phase 3": ("Phase III", "phase3_to_approval"),
}
HEADING = """\
# Drug programs (pairs of a target and an indication) by what became of them at each stage.
# passed: continued to the next stage, or was approved. ended: abandoned. active: not decided yet.
# Counted by make_drug_stages.py from data/pp.tsv of github.com/ericminikel/genetic_support, commit
# b84cf058: E. V. Minikel, J. L. Painter, C. C. Dong, M. R. Nelson, "Refining the impact of genetic
# evidence on clinical success", Nature 629, 624-629 (2024). License: CC BY 4.0. Changed: counted.
"""


def count(rows: Iterable[dict[str, str]]) -> Iterator[tuple[str, str, int, int, int]]:
    """Group, stage, and how many passed, ended and are active."""
    found: Counter[tuple[str, str, str]] = Counter()
    furthest = [*(name for name, _ in STAGES.values()), "Launched"]
    for row in rows:
        group = "orphan" if row["orphan"].upper() == "TRUE" else "common"
        reached = furthest.index(row["furthest_stage"])
        for stage, (_, column) in list(STAGES.items())[: reached + 1]:
            found[group, stage, row[column].upper()] += 1
    for group in ("common", "orphan"):
        for stage in STAGES:
            passed, ended, active = (found[group, stage, x] for x in ("TRUE", "FALSE", ""))
            yield group, stage, passed, ended, active


def main(path: str) -> None:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        counts = list(count(csv.DictReader(file)))
    sys.stdout.write(HEADING)
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["group", "stage", "passed", "ended", "active"])
    table.writerows(counts)


if __name__ == "__main__":
    main(sys.argv[1])
