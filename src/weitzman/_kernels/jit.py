"""How kernels are compiled: every option of the compiler is set here.

A function that Python calls is a *kernel*, one that only kernels call a *helper*. Sums and products
are carried out as they are written, unless a helper takes `ANY_ORDER`. Division by zero gives an
infinity, as in NumPy, and no kernel holds the interpreter's lock.

Kernels and the compiler never run on the main thread, where a signal handler could raise in the
middle of them (see :mod:`.._common.interruption`).

Compiling takes seconds, so a kernel does small work as plain Python: the same source, not compiled.
The size of the work alone decides (`SMALL`). Kernels that work on vectors (:mod:`.lanes`) are
always compiled; small problems are solved without them. With ``NUMBA_DISABLE_JIT=1`` in the
environment nothing is compiled, for a debugger or for coverage.

Compiled code is kept on disk and used again while nothing that it was made from has changed. One
file holds one compiled kernel for one signature, with a checksum that covers all sources of the
kernels and the compiler. A file that is missing, of another version, garbled or cannot be read is
the same as none, and is replaced; where none can be written, every process compiles for itself and
says so once. Nothing is ever deleted.

Files are looked for in every folder of `folders`, and written to the first that takes them. A file
in the cache is code: it is used only if it, and the folder that holds it, belong to this user (or
the superuser) and nobody else can write to them.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache, partial, wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import llvmlite
import numba
import numpy as np
from numba import config, njit, typeof
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.extending import overload, typeof_impl

from .._common.interruption import interruptible

PLAIN = bool(config.DISABLE_JIT)
STRICT: frozenset[str] = frozenset()
ANY_ORDER = frozenset({"reassoc", "contract"})

# Work of at most so many numbers is done by plain Python, which takes a microsecond or so for each.
SMALL = 4_000
_limit = {"small": 0 if os.environ.get("WEITZMAN_COMPILE") == "always" else SMALL, "patience": 1}

_large: ContextVar[bool] = ContextVar("large", default=False)

kernels: list[Any] = []  # all that are compiled, once their modules are imported

Function = TypeVar("Function", bound=Callable[..., Any])
Work = Callable[..., float]


def compile_always(always: bool = True) -> None:
    """From here on compile whatever the size, or again by size."""
    _limit["small"] = 0 if always else SMALL


class CompiledCode(NamedTuple):
    """What this process has compiled or read, and the folder that keeps it (None: no folder)."""

    folder: Path | None
    ready: tuple[str, ...]
    missing: tuple[str, ...]


def compiled_code() -> CompiledCode:
    """The state of the kernels in this process."""
    names = {f"{k.py_func.__module__}.{k.py_func.__name__}": k for k in kernels}
    ready = tuple(name for name, kernel in names.items() if kernel.signatures)
    return CompiledCode(kept_in(), ready, tuple(sorted(names.keys() - set(ready))))


@contextmanager
def avoid_compiling(times: int) -> Iterator[None]:
    """Within, solve and evaluate in NumPy what is larger by this factor: pages do not wait."""
    before, _limit["patience"] = _limit["patience"], times
    try:
        yield
    finally:
        _limit["patience"] = before


def patience() -> int:
    """How much larger than usual a problem may be before anything is compiled for it."""
    return _limit["patience"]


@contextmanager
def large_work() -> Iterator[None]:
    """Within, every kernel is compiled: a large problem has small parts, too."""
    before = _large.set(True)
    try:
        yield
    finally:
        _large.reset(before)


def compiles_always() -> bool:
    """Whether everything is compiled whatever the size: as a variable of the environment says."""
    return _limit["small"] == 0


def numbers(*args: Any) -> float:
    """How many numbers there are in arrays, tuples of arrays, and so on."""
    found = 0.0
    for x in args:
        if isinstance(x, np.ndarray):
            found += x.size
        elif isinstance(x, tuple):
            found += numbers(*x)
    return found


def kernel(*, work: Work = numbers) -> Callable[[Function], Function]:
    """Compile a function that Python calls; what was compiled once is kept on disk.

    ``work`` says of how many steps a call is, about, from the same arguments.
    """
    return partial(_compiled, work)


def lane_kernel() -> Callable[[Function], Function]:
    """The same for a function that works on vectors: never plain."""
    return partial(_compiled, None)


def helper(rounding: frozenset[str] = STRICT) -> Callable[[Function], Function]:
    """A function that kernels call: compiled in compiled kernels, plain in plain ones."""
    if PLAIN:
        return lambda function: function

    def known(function: Function) -> Function:
        overload(function, jit_options=_options(rounding), strict=False)(lambda *_: function)
        return function

    return known


def lane_helper() -> Callable[[Function], Function]:
    """A function that only compiled kernels call."""
    if PLAIN:
        return lambda function: function
    return njit(no_cpython_wrapper=True, **_options(STRICT))


class Kernel:
    """A compiled function, called from any thread but run on none that handles signals."""

    __slots__ = ("_work", "dispatcher")

    def __init__(self, dispatcher: Any, work: Work | None) -> None:
        self.dispatcher, self._work = dispatcher, work

    def __call__(self, *args: Any) -> Any:
        work = self._work
        if work is not None and not _large.get() and work(*args) <= _limit["small"]:
            with np.errstate(all="ignore"):
                return self.dispatcher.py_func(*args)
        return interruptible(partial(self.dispatcher, *args))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dispatcher, name)


@typeof_impl.register(Kernel)
def _type_of_kernel(kernel: Kernel, _: Any) -> Any:
    """Inside compiled code a kernel is called directly."""
    return typeof(kernel.dispatcher)


def _compiled(work: Work | None, function: Function) -> Function:
    if PLAIN:
        return _as_numpy(function)
    dispatcher = njit(**_options(STRICT))(function)
    dispatcher._cache = KernelCache(function)
    kernels.append(Kernel(dispatcher, work))
    return kernels[-1]


def _options(rounding: frozenset[str]) -> dict[str, Any]:
    return {
        "nogil": True, "error_model": "numpy", "fastmath": set(rounding) or False,
        "no_cfunc_wrapper": True,
    }  # fmt: skip


def _as_numpy(function: Function) -> Function:
    """Plain Python with the arithmetic of a kernel: integers wrap, division by zero is no error."""

    @wraps(function)
    def plain(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*args)

    return plain  # type: ignore[return-value]


# -- loops where NumPy has an expression: those take seconds to compile, for their error messages --
#
# Whole numbers written in a kernel become ``np.int64`` before a helper gets them, since it would be
# compiled once more for each such number.


@helper()
def count_up(n: int) -> np.ndarray:
    """0, 1, ..., n - 1"""
    out = np.empty(n, np.int64)
    for i in range(n):
        out[i] = i
    return out


@helper()
def add_up(x: np.ndarray) -> float:
    """The sum of some numbers, from the first to the last: NumPy has an order of its own."""
    total = 0.0
    for i in range(x.size):
        total += x[i]
    return total


@helper()
def copy(source: np.ndarray, start: int, n: int, target: np.ndarray, at: int) -> None:
    """target[at:at + n] = source[start:start + n]"""
    for i in range(n):
        target[at + i] = source[start + i]


# -- compiled code on disk -----------------------------------------------------------------------

CACHE_VARIABLE = "WEITZMAN_CACHE_DIR"
_HERE = Path(__file__).parent
_STAMP = hashlib.sha256().digest_size
_OWN = f"weitzman-kernels-{sys.implementation.cache_tag}"

_state: dict[str, Path | None] = {}  # "folder": where files are written; None after a failure


def folders() -> Iterator[Path]:
    """Where compiled code may lie, the best place first."""
    for variable in (CACHE_VARIABLE, "NUMBA_CACHE_DIR"):
        if os.environ.get(variable):
            yield Path(os.environ[variable]) / _OWN
            return
    yield _HERE / "__pycache__" / _OWN
    with suppress(RuntimeError):  # no home
        yield _user_folder() / _OWN


def kept_in() -> Path | None:
    """The folder in which compiled code is kept."""
    with_files = (folder for folder in folders() if any(folder.glob("*.bin")))
    return _state.get("folder") or next(with_files, None)


def _user_folder() -> Path:
    """The folder of a user for what can be made again."""
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"]) / "weitzman" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "weitzman"
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "weitzman"


@cache
def _version() -> bytes:
    """What stands for the sources of all kernels and for what compiles them."""
    known = hashlib.sha256()
    for version in (sys.version, numba.__version__, llvmlite.__version__, np.__version__):
        known.update(version.encode())
    for path in sorted(_HERE.glob("*.py")):
        known.update(path.name.encode() + path.read_bytes())
    return known.digest()


class KernelCache(NullCache):
    """The files of one kernel, one for each signature."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"

    @property
    def cache_path(self) -> str | None:
        """Where files are written."""
        folder = _state.get("folder")
        return None if folder is None else str(folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel for a signature, or None."""
        target_context.refresh()
        file = self._file(sig, target_context.codegen())
        for folder in folders():
            with suppress(Exception):  # whatever is wrong with a file: compile
                data = (folder / file).read_bytes()
                stamp, content = data[:_STAMP], data[_STAMP:]
                if stamp == _stamp(content) and _is_safe(folder) and _is_safe(folder / file):
                    return CompileResult._rebuild(target_context, *pickle.loads(content))
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled kernel, where that is possible."""
        chosen = _state.get("folder")
        if "folder" in _state and chosen is None:
            return
        content = dumps(data._reduce())
        file, reason = self._file(sig, data.codegen), "there is no folder for it"
        for folder in folders() if chosen is None else [chosen]:
            try:
                folder.mkdir(mode=0o755, parents=True, exist_ok=True)
                if not _is_safe(folder):
                    raise PermissionError(0, "others can write to it, so it could hold their code")
                write(folder / file, _stamp(content) + content)
            except OSError as error:
                reason = f"{folder}: {error.strerror or error}"
            else:
                _state["folder"] = folder
                return
        _state["folder"] = None
        warnings.warn(
            f"compiled code cannot be kept ({reason}), so every process compiles for itself. Name "
            f"a folder that can be written to in {CACHE_VARIABLE}.",
            RuntimeWarning,
            stacklevel=2,
        )

    def _file(self, sig: Any, codegen: Any) -> str:
        key = repr((str(sig), codegen.magic_tuple(), numba.__version__)).encode()
        return f"{self._name}-{hashlib.sha256(key).hexdigest()[:16]}.bin"


def write(path: Path, content: bytes) -> None:
    """Write a file as a whole or not at all, closed to others."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with open(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def _stamp(content: bytes) -> bytes:
    """A checksum of compiled code and of all that it was made from."""
    return hashlib.sha256(_version() + content).digest()


def _is_safe(path: Path) -> bool:
    """Whether only this user and the superuser can change a file or folder."""
    if sys.platform == "win32":  # folders of a user are closed to others by default
        return True
    found = path.stat()
    return found.st_uid in (0, os.geteuid()) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
