"""The process that forks for each command; see `tests.support.forks`. It loads little that the program does not
load.
"""

from __future__ import annotations

import gc
import json
import os
import select
import socket
import sys
import time
from contextlib import suppress


def exactly(connection: socket.socket, size: int) -> bytes:
    """Return the next *size* bytes from the connection."""
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise EOFError("the process that forks is gone")
        data += piece
    return data


def _serve(listener: socket.socket) -> list[str]:
    """Fork for each request, and run its command in the child. Return when the process that started this one has
    ended.
    """
    children: dict[int, tuple[int, socket.socket]] = {}
    while True:
        ready = select.select([0, listener, *children], [], [])[0]
        for handle in children.keys() & set(ready):
            pid, connection = children.pop(handle)
            status = os.waitpid(pid, 0)[1]
            with connection, suppress(BrokenPipeError):  # nobody waits for a command that took too long
                connection.sendall(status.to_bytes(4, "little"))
            os.close(handle)
        if listener in ready:
            connection, _ = listener.accept()
            descriptors = socket.recv_fds(connection, 1, 3)[1]
            size = int.from_bytes(exactly(connection, 4), "little")
            words, environ, directory = json.loads(exactly(connection, size))
            pid = os.fork()
            if pid == 0:
                for other in [listener, connection, *(other for _, other in children.values())]:
                    other.close()
                for handle in children:
                    os.close(handle)
                _become(descriptors, environ, directory)
                return list(words)
            for descriptor in descriptors:
                os.close(descriptor)
            connection.sendall(pid.to_bytes(4, "little"))
            children[os.pidfd_open(pid)] = pid, connection
        if 0 in ready:
            os._exit(0)


def _become(descriptors: list[int], environ: dict[str, str], directory: str) -> None:
    """Take over the pipes, the environment and the directory of the command."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(directory)
    time.tzset()


def main() -> None:
    """Load the modules that the command line names, then fork for each requested command."""
    import importlib

    for name in sys.argv[2:]:
        importlib.import_module(name)
    entry = importlib.import_module("teams_cli.__main__")
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        words = _serve(listener)
    sys.argv = [entry.__file__ or "", *words]
    entry.main()


if __name__ == "__main__":
    main()
