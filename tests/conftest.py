"""Settings shared by all tests."""

import gc
import os
import sys
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# the first call of a kernel compiles it, which no deadline should count
settings.register_profile(
    "weitzman", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", parent=settings.get_profile("weitzman"), max_examples=2000)
# the same examples at every run of CI, so that a failure belongs to a change
settings.register_profile("ci", parent=settings.get_profile("weitzman"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "weitzman")

# files whose tests take more than a few seconds: other processes, browsers, everything compiled
SLOW = {
    "bounds/test_lazy.py", "bounds/test_truncate.py", "engine/test_same_bits.py",
    "files/test_fuzz.py", "kernels/test_kernel_cache.py", "kernels/test_plain_kernels.py",
    "policy/test_interpreters.py", "policy/test_journal_faults.py",
    "policy/test_journal_trouble.py", "policy/test_search_machine.py",
    "backtest/test_backtest_benchmark.py", "show/test_explore_safety.py", "test_benchmarks.py",
    "test_docs.py", "test_examples.py", "test_outputs.py", "test_site.py", "tune/test_tune_ray.py",
}  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow ones: ``-m "not slow"`` leaves them out."""
    here = Path(__file__).parent
    for item in items:
        path = item.path.relative_to(here)
        if path.as_posix() in SLOW or "browser" in path.parts:
            item.add_marker(pytest.mark.slow)


def pytest_runtest_teardown() -> None:
    """Examples leave their pictures open, and matplotlib warns of too many."""
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def quiet_optuna():
    """Optuna without its messages about every trial."""
    logging = pytest.importorskip("optuna").logging
    before = logging.get_verbosity()
    logging.set_verbosity(logging.WARNING)
    yield
    logging.set_verbosity(before)


@pytest.fixture
def ray_session(_ray_session):
    """Ray, which leaves files open: they are let go of here, not in the middle of another test."""
    yield _ray_session
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


@pytest.fixture(scope="session")
def _ray_session():
    """Ray on this machine, started once for all tests that need it."""
    ray = pytest.importorskip("ray", reason="RAY IS NOT INSTALLED: its driver is not tested")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield ray
    ray.shutdown()
