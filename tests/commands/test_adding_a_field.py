"""Adding a field of tasks takes six files: record, options, words, lists of tasks, and the board."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.conftest import Edits, changed_program
from tests.support.mcp_client import call, client_of, within
from tests.support.serving import serving

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
        (
            '        "priority": task["priority"],\n',
            '        "priority": task["priority"],\n        "estimate": task.get("estimate"),\n',
        ),
    ],
    "workflows/model.py": [
        (
            '    priority: Priority = "normal"\n    run:',
            '    priority: Priority = "normal"\n    estimate: Annotated[int, Field(ge=0)] | None = None\n    run:',
        )
    ],
    "commands/updates.py": [
        ('        option("--blocked-by", "Add this', OPTION + '        option("--blocked-by", "Add this')
    ],
    "extensions/http/board/task_dialog.js": [
        ("    ['Priority', task.priority],\n", "    ['Priority', task.priority],\n    ['Estimate', task.estimate],\n")
    ],
    "extensions/http/board/task_forms.js": [
        (
            "task.priority ?? 'normal' }),\n",
            "task.priority ?? 'normal' }),\n  field({ name: 'estimate', label: 'Hours' }),\n",
        )
    ],
}


@pytest.mark.slow
def test_a_new_field_is_in_every_interface(tmp_path: Path) -> None:
    cli = changed_program(tmp_path, {}, FILES)
    assert cli.ok("create-task", "t", "--estimate", "5", "--for", "bob")["estimate"] == 5
    assert "estimate: 5\n" in cli("show-task", "1").stdout
    assert "estimate" not in cli.ok("create-task", "u")
    changed = cli.ok("update-task", "1", "--estimate", "8")
    assert changed["estimate"] == 8 and changed["notes"][-1]["changed"] == ["estimate"]
    assert "estimate: 8" in cli.ok("read-messages", agent="bob")[-1]["message"]
    assert cli.refused("update-task", "1", "--estimate", "long") == (2, "wrong_usage")
    listed = cli.ok("create-task", "--from", "-", stdin=b"[{title: listed, estimate: 3}]")
    assert listed[0]["estimate"] == 3
    assert "estimate" in cli("create-task", "--from", "-", stdin=b"[{title: t, hours: 3}]").stderr
    assert "How many hours it may take." in cli("create-task", "--help").stdout

    async def over_mcp() -> None:
        async with client_of(cli, "lea") as client:
            assert (await call(client, "create_task", title="t", estimate=5))["estimate"] == 5
            assert (await call(client, "update_task", task=1, estimate=7))["estimate"] == 7

    within(over_mcp)
    with serving(cli) as server:
        described = server.ask("GET", "/openapi.json").json["components"]["schemas"]["Task"]["properties"]
        assert "estimate" in described
        assert server.get("/api/board/rows")["rows"]["tasks"]["task-1"]["estimate"] == 7
        assert server.post("/api/update-task", {"task": "1", "estimate": "8"})["estimate"] == 8  # as a form sends it
        assert b"task.estimate" in server.ask("GET", "/task_dialog.js").body
