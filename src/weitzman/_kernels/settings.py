"""How kernels are compiled."""

from __future__ import annotations

JIT = {"nogil": True, "fastmath": {"contract"}, "error_model": "numpy"}
ENTRY = {**JIT, "cache": True}  # called from Python
