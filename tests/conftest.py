"""Settings shared by all tests."""

import gc
import os
import sys
import warnings

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


def pytest_runtest_teardown() -> None:
    """Examples leave their pictures open, and matplotlib warns of too many."""
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


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
