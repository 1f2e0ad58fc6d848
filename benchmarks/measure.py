"""Clocks, memory, child processes, and the description of the machine."""

from __future__ import annotations

import gc
import json
import os
import platform
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba
import numpy as np

import weitzman

ROOT = Path(__file__).resolve().parents[1]
GB = 10**9


@dataclass(slots=True)
class Table:
    """What a case reports."""

    head: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    title: str = ""

    def markdown(self) -> str:
        """The table as Markdown, columns aligned for reading as plain text."""
        cells = [list(self.head), *map(list, self.rows)]
        width = [max(len(row[j]) for row in cells) for j in range(len(self.head))]
        lines = [" | ".join(c.ljust(w) for c, w in zip(row, width, strict=True)) for row in cells]
        lines.insert(1, " | ".join("-" * w for w in width))
        text = "\n".join(f"| {line} |" for line in lines)
        above = f"**{self.title}**\n\n" if self.title else ""
        return above + text + "".join(f"\n\n{note}" for note in self.notes)


def race(
    tasks: Mapping[str, Callable[[], object]],
    repeats: int,
    *,
    clock: Callable[[], float] = time.perf_counter,
    free: int = 1,
) -> dict[str, float]:
    """Least time of each task in seconds; the tasks take turns, after some turns for free.

    The clock is the one on the wall. ``time.process_time`` counts the processor instead, which
    other work on the machine disturbs less.
    """
    best = dict.fromkeys(tasks, float("inf"))
    gc.collect()
    gc.disable()
    try:
        for turn in range(free + repeats):
            for name, task in tasks.items():
                start = clock()
                task()
                if turn >= free:
                    best[name] = min(best[name], clock() - start)
    finally:
        gc.enable()
    return best


def put(path: Path, name: str, text: str) -> None:
    """Replace what stands between the marks of a section of a page."""
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    page = path.read_text("utf-8")
    if start not in page or end not in page:
        raise ValueError(f"{path} has no section between {start} and {end}.")
    between = re.compile(f"(?<={re.escape(start)}).*?(?={re.escape(end)})", re.DOTALL)
    path.write_text(between.sub(lambda _: f"\n\n{text}\n\n", page), "utf-8")


def aim(ratio: float, most: float) -> str:
    """A ratio beside what it should be at most."""
    return f"{ratio:.2f} (aim {most:g}: {'met' if ratio <= most else 'missed'})"


def seconds(t: float) -> str:
    """A time with three digits and a fitting unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if t >= size:
            return f"{t / size:.3g} {unit}"
    return f"{t * 1e9:.3g} ns"


# -- memory ----------------------------------------------------------------------------------------


def resident() -> int:
    """Bytes of memory that this process holds now."""
    return _status("VmRSS")


def peak_during(task: Callable[[], object]) -> tuple[int, int]:
    """Bytes held before a task, and how many more at its highest. Linux only.

    The mark of the kernel is set back first, so that building the instance does not count; unlike
    ``getrusage``, it also does not carry over what the parent process held when it forked.
    """
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before = resident()
    result = task()
    more = _status("VmHWM") - before
    del result
    return before, more


def peak_of(process: int) -> int:
    """Bytes of memory that another process held at its highest."""
    return _status("VmHWM", str(process))


def _status(key: str, process: str = "self") -> int:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {key} in /proc/{process}/status")


# -- child processes -------------------------------------------------------------------------------


def child(
    arguments: Sequence[str],
    *,
    python: str = sys.executable,
    limit_s: float | None = None,
    limit_gb: float | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own that finds this package, under limits."""
    source = str(Path(weitzman.__file__).parents[1])
    path = os.pathsep.join([str(ROOT), source, os.environ.get("PYTHONPATH", "")])

    def limit() -> None:
        if limit_gb is not None:
            most = int(limit_gb * GB)
            resource.setrlimit(resource.RLIMIT_AS, (most, most))

    return subprocess.run(
        [python, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, **(env or {})},
        timeout=limit_s,
        preexec_fn=limit,
        check=False,
    )


class ChildFailed(RuntimeError):
    """A child process ended in another way than it should."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code, self.told = done.returncode, done.stderr[-2000:]
        super().__init__(f"{done.args} ended with {self.code}:\n{self.told}")

    @property
    def by_memory(self) -> bool:
        """Whether it ran out of memory; libraries in C then often die of a signal."""
        return self.code < 0 or re.search("MemoryError|allocat|bad_alloc", self.told) is not None


def child_json(arguments: Sequence[str], **options: Any) -> dict[str, Any]:
    """What a child process printed last, read as JSON."""
    done = child(arguments, **options)
    if done.returncode != 0:
        raise ChildFailed(done)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


# -- the machine -----------------------------------------------------------------------------------


def machine() -> dict[str, str]:
    """What a reader must know to compare the figures with others."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]  # type: ignore[call-overload]
    return {
        "CPU": f"{_cpu()}, {os.cpu_count()} cores",
        "Memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "OS": f"{_system()}, {platform.machine()}",
        "Python": platform.python_version(),
        "NumPy": f"{np.__version__} ({blas['name']} {blas['version']}, one thread)",
        "Numba": f"{numba.__version__}, for {llvmlite.binding.get_host_cpu_name()}",
        "weitzman": _version("weitzman"),
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "from source"


def _cpu() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or "unknown"
    known = dict(
        (part.strip() for part in line.split(":", 1)) for line in text.splitlines() if ":" in line
    )
    model, family = known.get("model name", "unknown"), known.get("cpu family", "?")
    vector = "AVX-512" if "avx512f" in text else "AVX2" if "avx2" in text else "no AVX2"
    return f"{model} (family {family}, model {known.get('model', '?')}, {vector})"


def _system() -> str:
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        name = platform.system()
    return name
