"""Most tests of the engine run twice: as the size decides, and with everything compiled."""

from __future__ import annotations

import pytest

from weitzman._kernels import jit

BOTH = {
    "test_edges_of_numbers", "test_endless_forest", "test_evaluation", "test_prizes",
    "test_stated_errors", "test_solver", "test_time", "test_many_states",
}  # fmt: skip


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.module.__name__.rpartition(".")[2] in BOTH:
        metafunc.fixturenames.append("_compiled")
        ways = {"ids": ["by size", "compiled"], "indirect": True, "scope": "module"}
        both = [False, pytest.param(True, marks=pytest.mark.slow)]
        metafunc.parametrize("_compiled", both, **ways)


@pytest.fixture(scope="module", autouse=True)
def _compiled(request: pytest.FixtureRequest):
    jit.compile_always(getattr(request, "param", False))
    yield
    jit.compile_always(False)
