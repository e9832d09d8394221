"""What the MCP server costs: its start, a warm call, and the tools that models read with every request."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import ListToolsResult

from tests.support.cli import ALPHA, Cli
from tests.support.mcp_client import Line

MOST_MS = 2.0
MOST_BYTES = 3_000


def bench_mcp(root: Path, teams: list[str], rounds: int, show: Callable[..., None]) -> None:
    """The table; *root* has a team with a leader `lea`, a member `a0`, and tasks enough to claim two a round.

    The limit is on what the server takes, from a line written to the line read; the client of the SDK adds its own.
    """
    print(f"\nteams mcp, {rounds} calls, ms")
    show("", "best", "median", "limit")
    with Line(Cli(root, team=ALPHA), "a0", [*teams, "mcp"]) as line:
        line.hello()
        _calls_on(line, rounds, show)
    anyio.run(_bench, root, teams, rounds, show)


CALLS: dict[str, Callable[[int], dict[str, Any]]] = {
    "list_agents": lambda n: {},
    "send_to_agent": lambda n: {"target": "lea", "message": "hello"},
    "claim_task": lambda n: {"task": str(n + 1)},
}


def _calls_on(line: Line, rounds: int, show: Callable[..., None]) -> None:
    for tool, arguments in CALLS.items():
        taken = []
        for n in range(rounds):
            started = time.perf_counter()
            asked = line.use(tool, **arguments(n))
            while (answer := line.read()).get("id") != asked:
                continue
            taken.append(time.perf_counter() - started)
            assert not answer["result"].get("isError"), answer
        median = statistics.median(taken) * 1000
        limit = f"<= {MOST_MS:g} {_kept(median <= MOST_MS)}" if tool != "list_agents" else "-"
        show(tool, min(taken) * 1000, median, limit)


async def _bench(root: Path, teams: list[str], rounds: int, show: Callable[..., None]) -> None:
    starts = []
    for agent, role in (("lea", "leader"), ("a0", "member")):
        started = time.perf_counter()
        async with Client(stdio_client(_server(root, teams, agent)), mode="legacy") as client:
            starts.append(time.perf_counter() - started)
            size = _bytes(await client.list_tools())
            show(f"tools of a {role}, bytes", size, "-", f"<= {MOST_BYTES} {_kept(size <= MOST_BYTES)}")
            if role == "member":
                await _calls(client, rounds, show)
    show("start, until it has answered", min(starts) * 1000, statistics.median(starts) * 1000, "-")


async def _calls(client: Client, rounds: int, show: Callable[..., None]) -> None:
    for tool, arguments in CALLS.items():
        taken = [await _timed(client, tool, arguments(rounds + n)) for n in range(rounds)]
        show(f"{tool}, client of the SDK", min(taken) * 1000, statistics.median(taken) * 1000, "-")


async def _timed(client: Client, tool: str, arguments: dict[str, Any]) -> float:
    started = time.perf_counter()
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    return time.perf_counter() - started


def _server(root: Path, teams: list[str], agent: str) -> StdioServerParameters:
    environ = {**os.environ, "TEAMS_HOME": str(root), "TEAMS_TEAM": ALPHA, "TEAMS_AGENT_ID": agent}
    return StdioServerParameters(command=teams[0], args=[*teams[1:], "mcp"], env=environ)


def _bytes(listed: ListToolsResult) -> int:
    return len(ListToolsResult(tools=listed.tools).model_dump_json(by_alias=True, exclude_none=True))


def _kept(ok: bool) -> str:
    return "ok" if ok else "MISSED"
