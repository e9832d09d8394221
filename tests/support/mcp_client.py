"""MCP clients for tests: the official one over real pipes, and one that writes any bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.support.cli import COMMAND, TIMEOUT, Cli
from tests.support.lacking import skip_without

ERAS = ("legacy", "auto")
"""The versions of the protocol: the one with a handshake, and the newest that the client library knows."""


@asynccontextmanager
async def client_of(
    cli: Cli, agent: str, *words: str, era: str = "legacy", heard: list[Any] | None = None, **environ: str
) -> AsyncIterator[Client]:
    """The official client, connected to `teams mcp` as that agent; what the server sends unasked goes to *heard*."""

    async def hear(message: Any) -> None:
        if heard is not None:
            heard.append(message)

    server = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "mcp", *words], env=cli.environ(agent, **environ), cwd=os.getcwd()
    )
    async with Client(stdio_client(server, errlog=sys.__stderr__), mode=era, message_handler=hear) as client:
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    """What the tool answers, which is no error; the text says the same as the data."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


async def refusal(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The error that the tool answers: code, message, hint."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result
    error: dict[str, Any] = result.structured_content["error"]
    assert set(error) == {"code", "message", "hint"} and error["message"], error
    return error


async def names(client: Client) -> list[str]:
    """The tools that are offered."""
    return [tool.name for tool in (await client.list_tools()).tools]


async def until(ready: Callable[[], Any], what: str = "") -> Any:
    """Wait until *ready* gives something, and give that."""
    with anyio.fail_after(TIMEOUT):
        while not (found := ready()):
            await anyio.sleep(0.01)
    return found


def within(test: Callable[[], Awaitable[None]]) -> None:
    """Run an asynchronous test to its end. It fails if it takes too long."""
    skip_without("mcp")

    async def bounded() -> None:
        with anyio.fail_after(TIMEOUT):
            await test()

    anyio.run(bounded)


class Line:
    """A bare connection that sends and receives lines, each a JSON document."""

    def __init__(self, cli: Cli, agent: str, command: list[str] | None = None) -> None:
        skip_without("mcp")
        self.process = subprocess.Popen(
            command or [*COMMAND, "mcp"],
            env=cli.environ(agent),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.number = 0

    def write(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, method: str, params: dict[str, Any] | None = None) -> int:
        """Send a request; return its id."""
        self.number += 1
        document = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params or {}}
        self.write(json.dumps(document).encode() + b"\n")
        return self.number

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}}).encode() + b"\n")

    def use(self, tool: str, **arguments: Any) -> int:
        """Call a tool; return the id of the request."""
        return self.send("tools/call", {"name": tool, "arguments": arguments})

    def ask(self, tool: str, **arguments: Any) -> Any:
        """Call a tool; return the answer, which must be the next line."""
        self.use(tool, **arguments)
        return self.read()["result"]["structuredContent"]

    def read(self) -> Any:
        """Return the next line from the server."""
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def hello(self, name: str = "line") -> Any:
        """Make the handshake as a client called *name*; return the server's description of itself."""
        info = {"name": name, "version": "1"}
        self.send("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info})
        answer = self.read()
        self.notify("notifications/initialized")
        return answer["result"]

    def end(self) -> tuple[list[Any], str]:
        """Close standard input; return the last lines of the server, which must be JSON, and its standard error."""
        out, err = self.process.communicate(timeout=TIMEOUT)
        return [json.loads(line) for line in out.splitlines()], err.decode()

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


async def read(client: Any, uri: str) -> Any:
    """The JSON of a resource."""
    (content,) = (await client.read_resource(uri)).contents
    return json.loads(content.text)
