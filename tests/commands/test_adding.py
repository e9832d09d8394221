"""A command is its work, its declaration, its words and a row in two tables. All else derives from these."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import teams_cli
from tests.support.cli import ALPHA, Cli, add_tasks, make_team
from tests.support.mcp_client import call, client_of, names, refusal, within
from tests.support.serving import serving

OPERATION = '''"""Hurrying: a task is put before the others."""

from teams_cli.store.retrying import update
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

from teams_cli.commands.declaration import Command, argument, table
from teams_cli.commands.task_documents import to_document
from teams_cli.tasks import hurrying
from teams_cli.tasks.tasks import Task


def _hurry(call, task):
    return to_document(call, hurrying.hurry(call.store, call.team, call.caller, task))


COMMANDS = table(
    "Tasks",
    Command(
        "hurry-task",
        _hurry,
        argument("ID", "The task.", name="task"),
        doc=hurrying.hurry,
        example="hurry-task 7",
        want="put one before all others",
        words="hurrying:hurried",
        answers=Task,
        repeatable=True,
        daily=True,
    ),
)
'''
WORDS = '''"""Hurrying in words."""


def hurried(task):
    return [f"{task['id']}: comes first now"]
'''
FILES = {
    "tasks/hurrying.py": OPERATION,
    "commands/hurrying.py": DECLARATION,
    "cli/show/hurrying.py": WORDS,
}


ROWS = {
    "commands/__init__.py": ('    ("updates", "update-task note"),\n', '    ("hurrying", "hurry-task"),\n'),
    "teams/rights.py": ('    "heartbeat": EVERYBODY,\n', '    "hurry-task": LEADERS,\n'),
}
"""The row that is added to each table, behind which other."""


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """A team, and the program with one more command: three files are added to it, and a row to two tables."""
    package = tmp_path / "program" / "teams_cli"
    shutil.copytree(Path(teams_cli.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for path, text in FILES.items():
        assert not (package / path).exists()
        (package / path).write_text(text)
    for path, (before, row) in ROWS.items():
        text = (package / path).read_text()
        assert text.count(before) == 1
        (package / path).write_text(text.replace(before, before + row))
    made = make_team(tmp_path / "root", "bob")
    add_tasks(made, "t", "u")
    return Cli(made.root, "lea", ALPHA, PYTHONPATH=str(package.parent), PYTHONSAFEPATH="1")


@pytest.mark.slow
def test_the_command_line_has_it(cli: Cli) -> None:
    assert cli("hurry-task", "2").stdout == "task-2: comes first now\n"
    assert cli.ok("hurry-task", "2")["priority"] == "high"
    assert cli.ok("claim-task", "--next", agent="bob")["id"] == "task-2"
    assert "\n  hurry-task ID: put one before all others\n" in cli("help").stdout
    assert "There is none of that id" in cli("help", "hurry-task").stdout
    assert "hurry-task" in cli("hury-task").stderr
    assert cli.refused("hurry-task", "9") == (10, "task_not_found")


def test_the_roles_know_it(cli: Cli) -> None:
    denied = cli("hurry-task", "2", agent="bob")
    assert denied.status == 13 and "Allowed to: team-leader, human." in denied.stderr
    cli.ok("define-role", "scout", "--allow", "hurry-task")
    cli.ok("join-team", "--role", "scout", agent="sue")
    assert cli.ok("hurry-task", "2", agent="sue")["priority"] == "high"
    cli.ok("close-team", "--force")
    assert cli.refused("hurry-task", "2") == (11, "wrong_state")


@pytest.mark.slow
def test_the_mcp_server_has_it(cli: Cli) -> None:
    async def test() -> None:
        async with client_of(cli, "lea", "--tools", "daily") as client:
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}["hurry_task"]
            assert listed.description == "Put a task before the others." and listed.input_schema["required"] == ["task"]
            assert listed.annotations and listed.annotations.idempotent_hint
            assert (await call(client, "hurry_task", task=2))["priority"] == "high"
        async with client_of(cli, "bob", "--tools", "daily") as client:
            assert "hurry_task" not in await names(client)
            assert (await refusal(client, "hurry_task", task=2))["code"] == "not_allowed"

    within(test)


@pytest.mark.slow
def test_the_http_api_has_it(cli: Cli) -> None:
    with serving(cli) as server:
        described = server.ask("GET", "/openapi.json").json["paths"]["/api/hurry-task"]["post"]
        answer = described["responses"]["200"]["content"]["application/json"]["schema"]
        assert answer == {"$ref": "#/components/schemas/Task"}
        assert server.post("/api/hurry-task", {"task": "2"})["priority"] == "high"
