"""Adding a command takes its work, its declaration and rows in two tables; all else is derived."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.conftest import changed_program
from tests.support.cli import add_tasks
from tests.support.mcp_client import call, client_of, names, within
from tests.support.serving import serving

OPERATION = '''"""Hurrying: a task is put before the others."""

from teams_cli.store.contract import update
from teams_cli.tasks.tasks import TASK, get
from teams_cli.teams.permission import require


def hurry(store, team_name, caller, word):
    """Put a task before the others.

    Raises:
        TaskNotFound: There is none of that id.
    """
    require(store, team_name, caller, "hurry-task", word)
    key = get(store, team_name, word).id
    return update(store, team_name, TASK, key, lambda task: task.having(priority="high"))[1]
'''
DECLARATION = '''"""The command that hurries."""

from teams_cli.commands.declaration import Command, argument, in_group
from teams_cli.commands.task_documents import to_document
from teams_cli.tasks import hurrying
from teams_cli.tasks.tasks import Task


def _hurry(call, task):
    return to_document(call, hurrying.hurry(call.store, call.team, call.caller, task))


def words_of_hurried(task):
    return [f"{task['id']}: comes first now"]


COMMANDS = in_group(
    "Tasks",
    Command(
        "hurry-task",
        _hurry,
        argument("ID", "The task.", name="task"),
        doc=hurrying.hurry,
        example="hurry-task 7",
        want="put one before all others",
        words=words_of_hurried,
        answers=Task,
        traits="repeatable daily",
    ),
)
'''
FILES = {"tasks/hurrying.py": OPERATION, "commands/hurrying.py": DECLARATION}


ROWS = {
    "commands/__init__.py": [
        (
            '    ("updates", "update-task note"),\n',
            '    ("updates", "update-task note"),\n    ("hurrying", "hurry-task"),\n',
        )
    ],
    "teams/roles.py": [('    "heartbeat": EVERYBODY,\n', '    "heartbeat": EVERYBODY,\n    "hurry-task": LEADERS,\n')],
}


@pytest.mark.slow
def test_a_new_command_is_in_every_interface(tmp_path: Path) -> None:
    cli = changed_program(tmp_path, FILES, ROWS)
    add_tasks(cli, "t", "u")
    assert cli("hurry-task", "2").stdout == "task-2: comes first now\n"
    assert cli.ok("claim-task", "--next", agent="bob")["id"] == "task-2"
    assert "\n  hurry-task ID: put one before all others\n" in cli("help").stdout
    assert "There is none of that id" in cli("help", "hurry-task").stdout
    assert "hurry-task" in cli("hury-task").stderr
    assert cli.refused("hurry-task", "9") == (10, "task_not_found")
    denied = cli("hurry-task", "2", agent="bob")
    assert denied.status == 13 and "Allowed to: team-leader, human." in denied.stderr
    cli.ok("define-role", "scout", "--allow", "hurry-task")
    cli.ok("join-team", "--role", "scout", agent="sue")
    assert cli.ok("hurry-task", "2", agent="sue")["priority"] == "high"

    async def over_mcp() -> None:
        async with client_of(cli, "lea", "--tools", "daily") as client:
            tool = {tool.name: tool for tool in (await client.list_tools()).tools}["hurry_task"]
            assert tool.description == "Put a task before the others." and tool.input_schema["required"] == ["task"]
            assert tool.annotations and tool.annotations.idempotent_hint
            assert (await call(client, "hurry_task", task=2))["priority"] == "high"
        async with client_of(cli, "bob", "--tools", "daily") as client:
            assert "hurry_task" not in await names(client)

    within(over_mcp)
    with serving(cli) as server:
        described = server.ask("GET", "/openapi.json").json["paths"]["/api/hurry-task"]["post"]
        answer = described["responses"]["200"]["content"]["application/json"]["schema"]
        assert answer == {"$ref": "#/components/schemas/Task"}
        assert server.post("/api/hurry-task", {"task": "2"})["priority"] == "high"
    cli.ok("close-team", "--force")
    assert cli.refused("hurry-task", "2") == (11, "wrong_state")
