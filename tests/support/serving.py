"""`teams serve` as a real process, and an HTTP client for it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from tests.support.cli import TIMEOUT, Cli
from tests.support.lacking import skip_without


class Reply:
    """A response that was read to its end."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        assert self.headers["content-type"] == "application/json", self
        return json.loads(self.body)

    @property
    def refusal(self) -> tuple[int, str]:
        """Return the status and the code of a refusal. The refusal must have a hint."""
        assert list(self.json) == ["error"], self
        error = self.json["error"]
        assert sorted(error) == ["code", "hint", "message"] and error["message"], self
        return self.status, error["code"]

    def __repr__(self) -> str:
        return f"{self.status} {self.headers}\n{self.body!r}"


class Server:
    """A server on a free port, and requests to it."""

    def __init__(self, cli: Cli, *words: str, port: int = 0) -> None:
        skip_without("http")
        self.process = cli.start("serve", "--json", "--port", str(port), *words, agent="", team="")
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        said = json.loads(line)
        assert sorted(said) == ["pid", "token", "url"]
        self.url, self.token, self.pid = said["url"], said["token"], said["pid"]
        self.said = ""
        """What it had to say to the person, once it has ended."""
        self.port = int(self.url.rpartition(":")[2])

    def connect(self) -> socket.socket:
        """Open a bare connection."""
        return socket.create_connection(("127.0.0.1", self.port), TIMEOUT)

    def send(self, path: str, body: Any) -> socket.socket:
        """Send a change and don't wait for the answer; return the connection, which serves no other request."""
        data = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Type: application/json\r\n"
        head += f"Authorization: Bearer {self.token}\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
        connection = self.connect()
        connection.sendall(head.encode() + data)
        return connection

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """Send one request on a connection of its own, with the token unless another `Authorization` is given.

        Underscores in the names of headers stand for dashes; a header with an empty value is left out.
        """
        said = {"Authorization": f"Bearer {self.token}"}
        if body is not None:
            said["Content-Type"] = "application/json"
        said.update((name.replace("_", "-"), value) for name, value in headers.items())
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)) as connection:
            connection.request(method, path, data, {name: value for name, value in said.items() if value})
            response = connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            return Reply(response.status, headers, response.read())

    def get(self, path: str, **headers: str) -> Any:
        """Return the document at an address, read without the token."""
        reply = self.ask("GET", path, Authorization="", **headers)
        assert reply.status == 200, reply
        return reply.json

    def post(self, path: str, body: Any = None) -> Any:
        """Return the answer to a change."""
        reply = self.ask("POST", path, {} if body is None else body)
        assert reply.status == 200, reply
        return reply.json

    def memory(self) -> int:
        """Return the memory of the process in bytes."""
        with open(f"/proc/{self.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def end(self, how: int = signal.SIGTERM) -> int:
        """End the server; return its exit status."""
        self.process.send_signal(how)
        try:
            self.said = self.process.communicate(timeout=TIMEOUT)[1].decode()
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        return int(self.process.returncode)


@contextmanager
def serving(cli: Cli, *words: str, port: int = 0) -> Iterator[Server]:
    """Run a server for the length of a `with` block."""
    server = Server(cli, *words, port=port)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.end(signal.SIGKILL)


class Events:
    """An open stream of events."""

    def __init__(self, server: Server, seen: int | str | None = None, query: str = "") -> None:
        self.connection = server.connect()
        last = "" if seen is None else f"Last-Event-ID: {seen}\r\n"
        head = f"GET /api/events{query} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n{last}\r\n"
        self.connection.sendall(head.encode())
        self.response = http.client.HTTPResponse(self.connection)
        self.response.begin()
        self.status = self.response.status

    def __enter__(self) -> Events:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.response.close()
        self.connection.close()

    def next(self) -> dict[str, str]:
        """Return the next event: `id`, `event`, `data`."""
        found: dict[str, str] = {}
        while True:
            line = self.response.readline().decode()
            assert line, "the stream ended"
            if line == "\n" and "data" in found:
                return found
            name, _, value = line.rstrip("\n").partition(": ")
            if name in ("id", "event", "data"):
                found[name] = value

    def whats(self, count: int) -> list[str]:
        """Return the kinds of the next *count* events."""
        return [json.loads(self.next()["data"])["what"] for _ in range(count)]


def received(connection: socket.socket) -> bytes:
    """Return all bytes until the other end closes the connection."""
    data = b""
    try:
        while part := connection.recv(65536):
            data += part
    except ConnectionResetError:
        pass
    finally:
        connection.close()
    return data
