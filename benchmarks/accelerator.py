"""Many solves of one shape as one batch: what an accelerator would bring.

``python -m benchmarks.accelerator prepare FILE`` fits a model of learning curves, solves
the line of a new run at some prices with the engine, times that, and writes what the second step
needs.
``python benchmarks/accelerator.py measure FILE`` needs NumPy and PyTorch only. It computes the
value of the same line for thousands of prices in one batch, checks the values that the engine
found, and prints the time of one solve.

The batch follows the Bellman recursion on a grid that holds every reward. The best reward so far is
always a reward, so that the values at the points of the grid are exact up to rounding: no
interpolation enters, and no certificate is needed for them. Indices lie between points.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

PRICES = np.geomspace(100.0, 10_000.0, 8)


def prepare(path: str) -> None:
    """Write the line, the prices and the engine's values, and print the engine's time."""
    from weitzman import learn, solve

    model = learn.fit(learn.sample().of_task("letter"), price=1000)
    line = model.lines()
    laws = [line.laws[k] for k in line.law]
    rewards = [line.rewards[k].ravel() for k in line.reward]
    costs = [line.costs[k].ravel() for k in line.cost]
    grid = np.unique(np.concatenate(rewards))
    held = grid[[len(grid) // 4, len(grid) // 2, 3 * len(grid) // 4]]
    value, spent = np.empty((len(PRICES), len(held))), 0.0
    for i, price in enumerate(PRICES):
        for j, best in enumerate(held):
            dearer: dict[str | int, Any] = {r: c * 1000 / price for r, c in enumerate(costs)}
            forest = line.changed(outside=best, cost=dearer)
            before = time.process_time()
            value[i, j] = solve(forest, threads=1, exact=True).value
            spent += time.process_time() - before
    print(
        f"engine: {spent / value.size * 1e3:.2f} ms a solve on one core, {len(laws)} boxes, "
        f"{max(len(r) for r in rewards)} states, grid of {len(grid)}"
    )
    arrays: dict[str, Any] = {"grid": grid, "held": held, "value": value}
    for r, (law, reward, cost) in enumerate(zip(laws, rewards, costs, strict=True)):
        arrays |= {f"law{r}": law, f"reward{r}": reward, f"cost{r}": cost}
    np.savez_compressed(path, boxes=len(laws), **arrays)


def _values(data: Any, prices: Any, torch: Any) -> Any:
    """The value of the line for each price and each best reward so far on the grid."""
    device = prices.device
    grid = torch.as_tensor(data["grid"], device=device)
    here = torch.arange(len(grid), device=device)
    after = None  # (price, state, best so far)
    for r in reversed(range(int(data["boxes"]))):
        law = torch.as_tensor(data[f"law{r}"], device=device)
        cost = torch.as_tensor(data[f"cost{r}"], device=device)
        found = torch.as_tensor(np.searchsorted(data["grid"], data[f"reward{r}"]), device=device)
        best = torch.maximum(here, found[:, None])  # (state, best before)
        if after is None:
            going = (law @ grid[best]).expand(len(prices), -1, -1)
        else:
            going = law @ after.gather(2, best.expand(len(prices), -1, -1))
        paid = cost * 1000 / prices[:, None]
        after = torch.maximum(going - paid[:, :, None], grid)
    return after[:, 0]


def measure(path: str) -> None:
    """Check the batch against the engine, then time it."""
    import torch

    data = np.load(path)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    few = _values(data, torch.as_tensor(PRICES, device=device), torch).cpu().numpy()
    at = np.searchsorted(data["grid"], data["held"])
    error = np.abs(few[:, at] - data["value"]).max()
    assert error < 1e-9 * np.abs(data["value"]).max(), error
    print(f"values agree to {error:.1e} of {np.abs(data['value']).max():.3g}")
    for count in (64, 256, 1024, 4096):
        prices = torch.as_tensor(np.geomspace(100.0, 10_000.0, count), device=device)
        times = []
        for _ in range(6):
            if device == "cuda":
                torch.cuda.synchronize()
            start = time.perf_counter()
            total = float(_values(data, prices, torch)[:, 0].sum())
            times.append(time.perf_counter() - start)
        name = torch.cuda.get_device_name() if device == "cuda" else "processor"
        print(
            f"{name}: {count} prices, {min(times[1:]) / count * 1e6:.1f} us each (sum {total:.6g})"
        )


if __name__ == "__main__":
    {"prepare": prepare, "measure": measure}[sys.argv[1]](sys.argv[2])
