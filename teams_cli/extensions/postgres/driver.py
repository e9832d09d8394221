"""The client library, `psycopg2`: its part in C, which is all that we use of it.

To import the rest takes a command longer than everything that it does itself: `re`, `json` and `decimal` for types
that no table of ours has, and `ssl` for callbacks that OpenSSL before 1.1 needed; where there is no `ssl`, that part
leaves them to libpq, which sets none with a later one. Who asks `psycopg2` for more gets all of it.
"""

from __future__ import annotations

import os
import sys

try:
    from _frozen_importlib import module_from_spec
except ImportError:  # an interpreter that imports in another way
    module_from_spec = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

__all__ = ["IDLE", "connect", "library"]
IDLE = 0
"""The state of a connection without a transaction, as libpq counts them."""
_NAME = "psycopg2"


def _part_in_c() -> ModuleType | None:
    """That part without the rest; None where the rest is there or needed, or another thread may be importing it."""
    spec = None if {_NAME, "ssl", "threading"} & sys.modules.keys() else _spec()
    if spec is None or module_from_spec is None:
        return None
    sys.modules[_NAME] = package = module_from_spec(spec)
    sys.modules["ssl"] = None  # type: ignore[assignment]
    usual = sys.getdlopenflags()
    sys.setdlopenflags(os.RTLD_LAZY)  # of some thousand functions of the libraries that it brings, few are called
    try:
        from psycopg2 import _psycopg
    except ImportError:
        del sys.modules[_NAME]
        return None
    finally:
        sys.setdlopenflags(usual)
        del sys.modules["ssl"]
    _run_when_asked(package, spec)
    return _psycopg


def _spec() -> ModuleSpec | None:
    """Where the library is; None where it is not to be found."""
    return next(filter(None, (finder.find_spec(_NAME, None) for finder in sys.meta_path)), None)


def _run_when_asked(package: Any, spec: ModuleSpec) -> None:
    """Have the package run when anything is asked of it; who imports another part asks where those are."""
    places = package.__path__
    del package.__path__

    def run(name: str) -> object:
        del package.__getattr__
        package.__path__ = places
        spec.loader.exec_module(package)  # type: ignore[union-attr]
        return getattr(package, name)

    package.__getattr__ = run


if not TYPE_CHECKING:
    library = _part_in_c()
if TYPE_CHECKING or library is None:
    from psycopg2 import _psycopg as library


def connect(options: Mapping[str, object]) -> library.connection:
    """A connection by the options that libpq knows."""
    said = {name: str(value).replace("\\", r"\\").replace("'", r"\'") for name, value in options.items()}
    dsn = " ".join(f"{name}='{value}'" for name, value in said.items())
    link: library.connection = library._connect(dsn)  # type: ignore[no-untyped-call]
    return link
