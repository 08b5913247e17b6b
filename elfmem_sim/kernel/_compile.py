"""How the package compiles a function: nopython, GIL released, cached on disk."""

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def _cache_directory() -> str:
    """Return a cache folder of its own for this state of the kernel's sources.

    numba notices a change in the file of the function that it caches, but not in the files of the
    functions that this one calls; a stale cache would silently run old code.
    """
    here = Path(__file__).parent
    digest = hashlib.sha256()
    for source in sorted(here.glob("*.py")):
        digest.update(source.read_bytes())
    base = here / "__pycache__"
    if not os.access(here if not base.exists() else base, os.W_OK):
        base = Path(tempfile.gettempdir()) / f"elfmem-sim-{getattr(os, 'getuid', int)()}"
    return str(base / f"kernel-{digest.hexdigest()[:16]}")


_CACHE_DIRECTORY = os.environ.get("NUMBA_CACHE_DIR") or _cache_directory()


def compiled(function: F) -> F:
    """Compile ``function`` with numba; the annotated signature stays visible to type checkers.

    ``fastmath`` stays off: results must not depend on what the compiler finds convenient.
    """
    return _compiled(function)


def borrowing(function: F) -> F:
    """Compile a function that makes no array and calls only such functions.

    Its callers hold all arrays, so numba need not count its references to them. The counters are
    atomic, and an agent is two dozen arrays: they took a third of a run.
    """
    return _compiled(function, _nrt=False)


def _compiled(function: F, **options: bool) -> F:
    config: Any = numba.config
    njit: Any = numba.njit  # its type stubs do not know all options
    before = config.CACHE_DIR
    config.CACHE_DIR = _CACHE_DIRECTORY
    try:
        decorated = njit(nogil=True, cache=True, error_model="numpy", **options)(function)
    finally:
        config.CACHE_DIR = before
    return cast(F, decorated)
