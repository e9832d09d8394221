"""What `teams serve` costs: until it answers, and how many requests a second it answers."""

from __future__ import annotations

import http.client
import json
import statistics
import threading
import time
from pathlib import Path
from typing import Any

from tests.support.cli import make_team
from tests.support.serving import serving

_CLIENTS = 4
_KINDS: dict[str, tuple[str, str, Any]] = {
    "GET list-agents": ("GET", "/api/list-agents", None),
    "GET board": ("GET", "/api/board", None),
    "POST send-message": ("POST", "/api/send-message?as=bob", {"to": "mia", "text": "hello"}),
}


def bench_serving(root: Path, rounds: int) -> None:
    """The start is timed until the first answer; requests are made on connections that stay open."""
    cli = make_team(root, "bob", "mia")
    starts = []
    for _ in range(max(3, rounds // 4)):
        begin = time.perf_counter()
        with serving(cli) as server:
            server.get("/api/list-agents")
            starts.append(time.perf_counter() - begin)
            server.end()
    print(f"\nteams serve: {min(starts) * 1000:.0f} ms until the first answer (median {_median(starts):.0f})")
    print(f"{'':24}{'median ms':>12}{'a second':>12}{f'by {_CLIENTS} clients':>16}")
    with serving(cli) as server:
        for name, kind in _KINDS.items():
            times = _ask(server.port, server.token, kind, 50 * rounds // 7)
            together = _by_several(server.port, server.token, kind, 30 * rounds // 7)
            print(f"{name:24}{_median(times):>12.2f}{1 / statistics.mean(times):>12.0f}{together:>16.0f}")


def _median(seconds: list[float]) -> float:
    """In milliseconds."""
    return statistics.median(seconds) * 1000


def _by_several(port: int, token: str, kind: tuple[str, str, Any], each: int) -> float:
    """How many requests a second are answered, of clients that make so many each."""
    clients = [threading.Thread(target=_ask, args=(port, token, kind, each)) for _ in range(_CLIENTS)]
    begin = time.perf_counter()
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    return _CLIENTS * each / (time.perf_counter() - begin)


def _ask(port: int, token: str, kind: tuple[str, str, Any], count: int) -> list[float]:
    """How long each of so many requests took on one connection."""
    method, path, body = kind
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    connection = http.client.HTTPConnection("127.0.0.1", port)
    taken = []
    for _ in range(count):
        begin = time.perf_counter()
        connection.request(method, path, data, headers)
        response = connection.getresponse()
        response.read()
        assert response.status == 200
        taken.append(time.perf_counter() - begin)
    connection.close()
    return taken
