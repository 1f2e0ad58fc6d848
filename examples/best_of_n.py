"""Best-of-N with refinement: draw a new answer, refine an existing one, or stop?

A language model answers, a verifier scores the answer from 0 to 1, and the best answer is kept.
A new answer costs 2 thousand tokens, refining one 0.8, and a score of 1 is worth 100 thousand.
There is no real log here: `simulator` says how scores come about, and a log is drawn from it.
docs/how-to/best-of-n.md explains every step.
"""

import numpy as np

import weitzman
from weitzman import chains, strategies

SCORES = np.arange(11) / 10
DRAW, REFINE, WORTH = 2.0, 0.8, 100.0
ANSWERS, REFINEMENTS = 64, 30  # at most


def simulator():
    """The law of a new answer's score, and of the next score after each score.

    Most new answers are poor. Refining moves the score by a few tenths, up or down: poor answers
    are mostly stuck, middling ones improve two times out of three when they change, and good ones
    are as likely to get worse as to improve.
    """
    first = np.array([16, 14, 12, 11, 10, 9, 8, 7, 6, 4, 3]) / 100
    step = np.zeros((11, 11))
    for s in range(11):
        up, down = (0.17, 0.08) if s < 3 else (0.4, 0.15) if s < 8 else (0.2, 0.2)
        step[s, s] += 1 - up - down
        for by, p in ((1, 0.6), (2, 0.3), (3, 0.1)):
            step[s, min(10, s + by)] += up * p
        for by, p in ((1, 0.5), (2, 0.3), (4, 0.2)):
            step[s, max(0, s - by)] += down * p
    return first, step


def a_log(rng, answers=2000, refinements=8):
    """Scores of answers that were each refined the same number of times."""
    first, step = simulator()
    log = np.empty((answers, 1 + refinements), int)
    log[:, 0] = rng.choice(11, size=answers, p=first)
    for t in range(refinements):
        for s in range(11):
            here = log[:, t] == s
            log[here, t + 1] = rng.choice(11, size=here.sum(), p=step[s])
    return log


def counted(log, smooth=0.5):
    """The laws by counting, with a little extra weight around the same score."""
    first = np.bincount(log[:, 0], minlength=11) + smooth
    step = np.zeros((11, 11))
    np.add.at(step, (log[:, :-1].ravel(), log[:, 1:].ravel()), 1.0)
    near = np.abs(np.subtract.outer(np.arange(11), np.arange(11))) <= 2
    step += smooth * near
    return first / first.sum(), step / step.sum(axis=1, keepdims=True)


def answers(first, step, *, count=ANSWERS, refinements=REFINEMENTS):
    """A number of answers, each a draw and then refinements in a line."""
    return weitzman.line(
        (first, step),
        length=1 + refinements,
        rewards=WORTH * SCORES,
        cost=[DRAW] + [REFINE] * refinements,
        count=count,
        states=[f"{s:.1f}" for s in SCORES],
    )


def main() -> None:
    """Print what the page docs/how-to/best-of-n.md explains."""
    model = weitzman.solve(answers(*counted(a_log(np.random.default_rng(0)))))
    new = model.index(0)
    print(f"index of a new answer {new:.1f}; after a new answer with score ...")
    for s, name in enumerate(model.forest.states(0)):
        refine, here = model.index(1, name), WORTH * SCORES[s]
        what = "stop" if here >= max(refine, new) else "refine" if refine > new else "draw anew"
        print(f"  {name}: index of refining it {refine:5.1f}, so {what}")

    truth = answers(*simulator())
    at, index = model.index_columns()
    learned = weitzman.evaluate(weitzman.Policy.of(truth, at, index))
    best = weitzman.solve(truth)
    exact = weitzman.evaluate(best)

    first, step = simulator()
    mean_best = [SCORES @ np.diff(first.cumsum() ** n, prepend=0) for n in range(1, 200)]
    plain = max(range(1, 65), key=lambda n: WORTH * mean_best[n - 1] - DRAW * n)
    stopping = weitzman.evaluate(weitzman.solve(answers(first, step, refinements=0)))
    one = strategies.best_line(truth)

    print("\nstrategy                               payoff   score   tokens")
    rows = [
        ("optimal, laws known", exact.value, exact.reward, exact.spend),
        ("the same, laws learned from the log", learned.value, learned.reward, learned.spend),
        ("new answers only, stopping in time", stopping.value, stopping.reward, stopping.spend),
        (
            f"plain best-of-{plain}",
            WORTH * mean_best[plain - 1] - DRAW * plain,
            WORTH * mean_best[plain - 1],
            DRAW * plain,
        ),
    ]
    for name, value, reward, spend in rows:
        print(f"{name:36} {value:8.2f} {reward / WORTH:7.3f} {spend:8.1f}")
    print(f"{'refine one answer, stopping in time':36} {one.followed:8.2f}")
    print(f"{f'refine one answer {len(one.order) - 1} times':36} {one.value:8.2f}")
    same = next(n for n, x in enumerate(mean_best, 1) if x >= exact.reward / WORTH)
    print(
        f"\nplain best-of-{same}, {DRAW * same:g} thousand tokens, has the optimal policy's score"
    )

    endless = chains.solve_line(chains.Chain(step, WORTH * SCORES), REFINE)
    longer = weitzman.solve(answers(first, step, refinements=200))
    assert np.allclose(longer.indices(1), endless.index, rtol=0, atol=1e-6)
    assert (
        longer.value - best.value < 0.04
    )  # thirty refinements are nearly as good as endlessly many
    assert learned.value > 0.99 * exact.value
    assert exact.value > max(stopping.value, one.followed, rows[3][1]) + 10


if __name__ == "__main__":
    main()
