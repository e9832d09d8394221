"""Sockets of this machine. Each is a file, and only its user may connect to it."""

from __future__ import annotations

import os
import socket
from contextlib import contextmanager, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST_ADDRESS = 100
"""Number of bytes that every system takes as the address of a socket."""


def listen(path: str) -> socket.socket:
    """Return a socket that listens at *path*, in place of one that an ended process left there. If the path is long,
    the working directory is changed on a system without /proc.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    umask = os.umask(0o177)  # only this user may connect
    try:
        with _address(path) as address:
            with suppress(FileNotFoundError):
                os.remove(address)
            listener.bind(address)
    finally:
        os.umask(umask)
    listener.listen(1024)
    return listener


def connect(path: str, timeout: float | None = None) -> socket.socket:
    """Return a connection to the socket at *path*. Each step waits at most *timeout* seconds, or without limit if
    *timeout* is None. If the path is long, the working directory is changed on a system without /proc.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout)
        with _address(path) as address:
            connection.connect(address)
    except OSError:
        connection.close()
        raise
    return connection


def has_listener(path: str) -> bool:
    """Whether a process listens on the socket at *path*."""
    try:
        connect(path).close()
    except OSError:
        return False
    return True


@contextmanager
def _address(path: str) -> Iterator[str]:
    """Yield the address of the socket at *path*. It names the directory by a descriptor if the path is too long."""
    if os.path.isabs(path) and len(os.fsencode(path)) <= _LONGEST_ADDRESS:
        yield path
        return
    directory = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        address = os.path.basename(path)
        if os.path.isdir("/proc/self/fd"):
            address = f"/proc/self/fd/{directory}/{address}"
        else:
            os.fchdir(directory)
        yield address
    finally:
        os.close(directory)
