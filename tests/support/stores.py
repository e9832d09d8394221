"""Empty stores of files, each in a directory of its own that is removed with the store."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from typing import TYPE_CHECKING

from teams_cli.store.files.engine import FileStore

if TYPE_CHECKING:
    from tests.conftest import FakeClock

_MEMORY = "/dev/shm"


def new_store(clock: FakeClock | None = None) -> FileStore:
    """Return an empty store of files, in memory if the system has a directory for that."""
    directory = tempfile.mkdtemp(prefix="teams-store-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None)
    store = FileStore(f"{directory}/root", clock)
    weakref.finalize(store, shutil.rmtree, directory, ignore_errors=True)
    return store
