"""A field of tasks touches six files at most: the record, its options, its words, and the board. All else derives."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import teams_cli
from teams_cli import extensions
from tests.support.cli import ALPHA, Cli, make_team
from tests.support.mcp_client import call, client_of, within
from tests.support.serving import serving

Edits = list[tuple[str, str]]
OPTION = """        option("--estimate", "How many hours it may take.", type=int, metavar="HOURS", seldom=True),
"""
FILES: dict[str, Edits] = {
    "tasks/tasks.py": [
        (
            '    priority: Priority = "normal"\n',
            '    priority: Priority = "normal"\n    estimate: Count | None = None\n',
        ),
        (
            'EDITABLE = ("title", "description", "priority", "check", "review_by")',
            'EDITABLE = ("title", "description", "priority", "check", "review_by", "estimate")',
        ),
    ],
    "commands/tasks.py": [
        ('        option("--blocked-by", "A task', OPTION + '        option("--blocked-by", "A task'),
    ],
    "commands/updates.py": [
        ('        option("--blocked-by", "Add this', OPTION + '        option("--blocked-by", "Add this'),
    ],
    "cli/show/tasks.py": [
        (
            '        "priority": task["priority"],\n',
            '        "priority": task["priority"],\n        "estimate": task.get("estimate"),\n',
        ),
    ],
    "extensions/http/board/task_dialog.js": [
        ("    ['Priority', task.priority],\n", "    ['Priority', task.priority],\n    ['Estimate', task.estimate],\n"),
    ],
    "extensions/http/board/task_forms.js": [
        (
            "task.priority ?? 'normal' }),\n",
            "task.priority ?? 'normal' }),\n  field({ name: 'estimate', label: 'Hours' }),\n",
        ),
    ],
}


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """A team, and the program in which six files were edited."""
    assert len(FILES) <= 6
    package = tmp_path / "program" / "teams_cli"
    shutil.copytree(Path(teams_cli.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for path, edits in FILES.items():
        if path.startswith("extensions/http") and "http" not in extensions.every():
            continue
        text = (package / path).read_text()
        for old, new in edits:
            assert text.count(old) == 1, f"{path}: {old!r} is there {text.count(old)} times"
            text = text.replace(old, new)
        (package / path).write_text(text)
    made = make_team(tmp_path / "root", "bob")
    return Cli(made.root, "lea", ALPHA, PYTHONPATH=str(package.parent), PYTHONSAFEPATH="1")


def test_the_command_line_has_it(cli: Cli) -> None:
    assert cli.ok("create-task", "t", "--estimate", "5")["estimate"] == 5
    assert "estimate: 5\n" in cli("show-task", "1").stdout
    assert "estimate" not in cli.ok("create-task", "u")
    changed = cli.ok("update-task", "1", "--estimate", "8")
    assert changed["estimate"] == 8 and changed["notes"][-1]["changed"] == ["estimate"]
    assert cli.refused("update-task", "1", "--estimate", "long") == (2, "wrong_usage")
    assert "How many hours it may take." in cli("create-task", "--help").stdout


def test_whoever_the_task_concerns_is_told_when_it_changes(cli: Cli) -> None:
    cli.ok("create-task", "t", "--estimate", "5", "--for", "bob")
    cli.ok("update-task", "1", "--estimate", "8")
    assert "estimate: 8" in cli.ok("read-messages", agent="bob")[-1]["message"]


@pytest.mark.slow
def test_the_mcp_server_has_it(cli: Cli) -> None:
    async def test() -> None:
        async with client_of(cli, "lea") as client:
            assert (await call(client, "create_task", title="t", estimate=5))["estimate"] == 5
            assert (await call(client, "update_task", task=1, estimate=8))["estimate"] == 8

    within(test)


@pytest.mark.slow
def test_the_http_api_and_the_board_have_it(cli: Cli) -> None:
    with serving(cli) as server:
        assert server.post("/api/create-task", {"title": "t", "estimate": 5})["estimate"] == 5
        described = server.ask("GET", "/openapi.json").json["components"]["schemas"]["Task"]["properties"]
        assert "estimate" in described
        assert server.get("/api/board/rows")["rows"]["tasks"]["task-1"]["estimate"] == 5
        assert server.post("/api/update-task", {"task": "1", "estimate": "8"})["estimate"] == 8  # as a form sends it
        assert b"task.estimate" in server.ask("GET", "/task_dialog.js").body
