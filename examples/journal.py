"""A search that survives: the process may end at any moment, the journal knows everything."""

from pathlib import Path
from tempfile import TemporaryDirectory

import weitzman

site = weitzman.Builder()
site.add("survey", cost=1, outcomes={"good": 0.3, "bad": 0.7}, rewards={"good": None, "bad": None})
site.add(
    "drill", parent="survey", cost=5, count=3,
    outcomes={"good": {0: 0.4, 40: 0.6}, "bad": {0: 0.9, 40: 0.1}},
)  # fmt: skip
site.add("market", cost=2, outcomes={8: 0.5, 16: 0.5})
solution = weitzman.solve(site.build())

folder = TemporaryDirectory()
journal = Path(folder.name) / "run.db"
search = weitzman.Search(solution, journal=journal)
print(search.explain())
search.tell(search.ask(), "good")
box = search.ask()
print(f"{box} is being opened when the power fails")
search.close()

search = weitzman.Search.resume(journal)
assert search.ask() == box  # handed out, not answered: handed out again
search.tell(box, 0, cost=6.5)  # nothing there, and it cost more than planned
print(search.explain())
search.tell(search.ask(), 40)
print(search.explain())
print(f"best {search.best:g}, spent {search.spent:g}, payoff {search.payoff:g}")
search.close()
assert search.done
assert search.payoff == 40 - (1 + 6.5 + 5)
folder.cleanup()
