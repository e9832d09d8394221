"""Errors of the operating system at the Nth call: a full disk, a broken disk, a missing permission."""

from __future__ import annotations

import os
from typing import Any


class Fault:
    """Within `with`, the *nth* system call fails once. `happened` has the name of the call that failed."""

    calls: tuple[str, ...] = ("mkdir", "open", "write", "fsync", "rename", "link", "unlink", "listdir", "read", "fstat")

    def __init__(self, nth: int, number: int) -> None:
        self.nth = nth
        self.number = number
        self.happened = ""
        self._real = {name: getattr(os, name) for name in self.calls}

    def __enter__(self) -> Fault:
        for name in self._real:
            setattr(os, name, self._failing(name))
        return self

    def __exit__(self, *_: object) -> None:
        for name, function in self._real.items():
            setattr(os, name, function)

    def _failing(self, name: str) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            self.nth -= 1
            if self.nth == 0:
                self.happened = name
                self.strike()
            return self._real[name](*arguments, **options)

        return call

    def strike(self) -> None:
        """Raise the error at that call."""
        raise OSError(self.number, os.strerror(self.number))


class Signal(Fault):
    """Within `with`, the process gets a signal before the *nth* system call, which stops or ends it.

    Opened files are read at once, so a signal before `open` also stands for one before the read.
    """

    calls = ("mkdir", "open", "write", "rename", "link", "unlink")

    def strike(self) -> None:
        os.kill(os.getpid(), self.number)
