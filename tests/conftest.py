"""Settings shared by all tests."""

import gc
import os
import subprocess
import sys
import warnings

# Many processes start: they keep the bytecode of the package, and leave the cores to the workers.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

# the first call of a kernel compiles it, which no deadline should count
settings.register_profile(
    "weitzman", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
# the same examples at every run of CI, so that a failure belongs to a change
settings.register_profile("ci", parent=settings.get_profile("weitzman"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "weitzman")

# 50 tries fifty times the random examples, also where a test states how many
TIMES = int(os.environ.get("WEITZMAN_EXAMPLES", "1"))

WARMUP = pytest.StashKey[subprocess.Popen[bytes]]()

# files whose tests take more than a few seconds: other processes, timers, whole searches
SLOW = {
    "backtest/test_backtest_benchmark.py", "backtest/test_backtest_samplers.py",
    "bounds/test_lazy.py", "bounds/test_lazy_search.py", "bounds/test_truncate.py",
    "cli/test_cli_shell.py", "cli/test_cli_terminal.py",
    "cli/test_cli_warmup.py", "engine/test_edges_of_numbers.py",
    "engine/test_evaluation_of_large_trees.py", "engine/test_interruption.py",
    "engine/test_local_cluster.py", "engine/test_bitwise_identical.py", "files/test_fuzz.py",
    "kernels/test_kernel_cache.py", "kernels/test_plain_kernels.py", "learn/test_log_fuzz.py",
    "learn/test_noise.py", "policy/test_faulty_disk.py", "policy/test_interpreters.py",
    "policy/test_journal_faults.py", "policy/test_journal_trouble.py",
    "policy/test_search_machine.py", "questions/test_sweeps.py", "show/test_explore_safety.py",
    "show/test_plot.py", "show/test_report.py", "show/test_report_ranges.py",
    "strategies/test_approximation.py", "test_benchmarks.py", "test_docs.py", "test_examples.py",
    "test_notebooks.py", "test_outputs.py", "test_site.py", "tune/test_fading_hope.py",
    "tune/test_first_runs_at_once.py", "tune/test_shared_search.py", "tune/test_shared_study.py",
    "tune/test_tune_conformance.py", "tune/test_tune_ray.py",
}  # fmt: skip

# files that share what takes long to start, one after the other on one worker
RAY = ("tune/test_tune_ray.py", "tune/test_tune_conformance.py", "learn/test_log_sources.py")
TOGETHER = dict.fromkeys(RAY, "ray")


def _file(nodeid: str) -> str:
    """The file of a test, from the folder of the tests on."""
    return nodeid.partition("::")[0].partition("tests/")[2]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow ones, which ``-m "not slow"`` leaves out, and begin with them."""
    for item in items:
        if _takes_long(item):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: not _takes_long(item))
    if TIMES > 1:
        for test in {_property(item) for item in items} - {None}:
            _try_more(test)


def _property(item: pytest.Item):
    """What Hypothesis calls for a test, or the class of a machine; None for another test."""
    if hasattr(getattr(item, "cls", None), "settings"):
        return item.cls
    function = getattr(item, "function", None)
    return function if getattr(function, "is_hypothesis_test", False) else None


def _try_more(test) -> None:
    name = "settings" if isinstance(test, type) else "_hypothesis_internal_use_settings"
    stated = getattr(test, name, None) or settings.default
    setattr(test, name, settings(stated, max_examples=TIMES * stated.max_examples))


def _takes_long(item: pytest.Item) -> bool:
    file = _file(item.nodeid)
    return file in SLOW or file.startswith("show/browser/")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Whole files go to workers, in the order above: none is left with a long one at the end."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return TOGETHER.get(_file(nodeid), super()._split_scope(nodeid))

    config.option.loadscopereorder = False
    return Scheduling(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config):
    """Compile all kernels once, while workers collect tests, instead of once in each worker."""
    if config.args == config.getini("testpaths") and not config.option.markexpr:
        command = [sys.executable, "-m", "weitzman", "warmup"]
        config.stash[WARMUP] = subprocess.Popen(command, stdout=subprocess.DEVNULL)


def pytest_unconfigure(config):
    if WARMUP in config.stash:
        config.stash[WARMUP].wait()


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
