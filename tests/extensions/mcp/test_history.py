"""What of a long history an answer has: the newest."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import add_tasks, make_team
from tests.support.mcp_client import client_of, within


def test_the_oldest_is_left_out(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root", "bob")
    add_tasks(cli, *(f"number {number} {'long ' * 30}" for number in range(1, 71)))

    async def test() -> None:
        async with client_of(cli, "bob") as client:
            found = (await client.call_tool("history", {})).structured_content
            assert found["more"] >= 21 and found["result"][-1]["task"] == "task-70", found

    within(test)
