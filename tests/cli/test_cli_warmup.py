"""``weitzman warmup`` leaves nothing to compile."""

from __future__ import annotations

import ast
import subprocess
import sys

CODE = """
import pkgutil
from importlib import import_module
import weitzman._kernels
from weitzman.cli import main
from weitzman.engine.solver import compiled_code
for module in pkgutil.iter_modules(weitzman._kernels.__path__):
    if module.name != "lanes_plain":
        import_module(f"weitzman._kernels.{module.name}")
assert main(["warmup"]) == 0
found = compiled_code()
print(found.missing)
print(len(found.ready))
print(found.folder)
"""


def test_everything_is_ready():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CODE], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    counted, kept, missing, ready, folder = done.stdout.splitlines()
    assert counted.split()[1:5] == ["functions", "ready", "after", counted.split()[4]]
    assert int(counted.split()[0]) == int(ready) >= 20
    modules = {name.split(".")[-2] for name in ast.literal_eval(missing)}
    assert modules <= {"leaves"}  # small
    assert kept == f"kept in {folder}"
