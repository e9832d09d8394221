"""Importing tasks from files of other tools, and exporting a team.

The files of task-master 0.43.1 and Backlog.md 1.52.0 were written by these programs; that of beads 1.3.0 was
written by hand, after the fields and the types of relations in its source.
"""

from __future__ import annotations

import csv
import io
import json
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import COMMAND, Cli, tree

FILES = Path(__file__).parent / "files"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A copy of the files of all tools."""
    return Path(shutil.copytree(FILES, tmp_path / "there"))


def by_key(cli: Cli) -> dict[str, dict[str, Any]]:
    """The tasks of the team by their ids in the tool."""
    return {task["source"]["id"]: task for task in cli.ok("get-tasks")}


def waits(found: dict[str, dict[str, Any]]) -> dict[str, set[str]]:
    """The blockers of each task, in the ids of the tool."""
    keys = {task["id"]: key for key, task in found.items()}
    return {key: {keys[other] for other in task["blockedBy"]} for key, task in found.items()}


def left(done: dict[str, Any]) -> dict[str, list[str]]:
    return {one["what"]: one["of"] for one in done["left"]}


def test_beads(cli: Cli, place: Path) -> None:
    """An epic is blocked by its parts; items that are no work, and fields that tasks lack, are listed as left out."""
    done = cli.ok("import", "beads", str(place / "beads"))
    found = by_key(cli)
    assert waits(found) == {
        "shop-a1": {"shop-a1.1", "shop-a1.2"},
        "shop-a1.1": set(),
        "shop-a1.2": {"shop-a1.1"},
        "shop-b2": {"shop-a1"},
    }
    assert [found[key]["status"] for key in ("shop-a1.1", "shop-a1.2")] == ["completed", "pending"]
    assert [found[key]["priority"] for key in ("shop-a1", "shop-a1.1", "shop-b2")] == ["normal", "high", "low"]
    parser = cli.ok("show-task", found["shop-a1.1"]["id"])
    assert parser["result"] == "Done in 1f2e3d." and "foreign" not in parser["source"]
    for part in ("Reads one record", "## Design\nWith the csv", "## Acceptance criteria\nAn empty", "Labels: parser"):
        assert part in parser["description"]
    (note,) = cli.ok("show-task", found["shop-a1.2"]["id"])["notes"]
    assert note["added"] == "bea, 2026-11-03: Half of it is there."
    assert left(done) == {
        "assignee": ["shop-a1.1"],
        "deferral": ["shop-b2"],
        "estimate": ["shop-a1.2"],
        "no task: pinned": ["shop-c3"],
        "relation discovered-from": ["shop-b2"],
        "status deferred: pending here": ["shop-b2"],
        "status in_progress: pending here": ["shop-a1.2"],
    }
    assert "healthy" in cli("doctor").stdout


def test_task_master(cli: Cli, place: Path) -> None:
    """Subtasks become tasks that wait for what their parent waits for; each tag has numbers of its own."""
    cli.ok("import", "task-master", str(place / "task-master"))
    found = by_key(cli)
    assert waits(found) == {
        "master:1": set(),
        "master:2": {"master:1", "master:2.1", "master:2.2"},
        "master:2.1": {"master:1"},
        "master:2.2": {"master:1", "master:2.1"},
        "master:3": {"master:2"},
        "ideas:1": set(),
    }
    assert found["master:1"]["status"] == "completed" and found["master:3"]["priority"] == "low"
    assert found["master:1"]["description"] == "Reads one record a line.\n\n## Details\nUse csv."


def test_backlog(cli: Cli, place: Path) -> None:
    """Sections are imported without the tool's marks, comments as notes, and the final summary as the result."""
    done = cli.ok("import", "backlog", str(place / "backlog"))
    found = by_key(cli)
    assert waits(found) == {"TASK-1": {"TASK-1.1"}, "TASK-1.1": set(), "TASK-2": {"TASK-1"}, "TASK-3": {"TASK-2"}}
    assert found["TASK-1"]["description"] == (
        "Reads one record a line.\n\n## Acceptance Criteria\n- [x] #1 empty input gives nothing\n"
        "- [ ] #2 a bad line is named\n\n## References\nhttps://example.org/spec\n\nLabels: parser, core"
    )
    assert found["TASK-3"]["result"] == "Published as 1.0." and "## Milestone\nv1" in found["TASK-3"]["description"]
    (note,) = cli.ok("show-task", found["TASK-2"]["id"])["notes"]
    assert note["added"] == "ann, 2026-11-28: Half of it is there."
    assert left(done)["no task: draft"] == ["DRAFT-1"] and left(done)["due date"] == ["TASK-1.1"]


def test_a_second_import_changes_only_what_changed_in_the_source(cli: Cli, place: Path) -> None:
    """A second import keeps what was changed in the team, and does not touch tasks that are the same."""
    cli.ok("import", "beads", str(place / "beads"))
    before = tree(cli.root / "tasks")
    assert cli.ok("import", "beads", str(place / "beads"))["unchanged"] == 4
    assert tree(cli.root / "tasks") == before
    cli.ok("update-task", "3", "--title", "Read all orders")
    file = place / "beads" / ".beads" / "issues.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    rows[0].update(title="Read orders", priority=1)
    rows[2].update(status="closed", closed_at="2026-11-05T09:00:00Z", close_reason="Tested.")
    rows[3].update(dependencies=[])
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = cli.ok("import", "beads", str(file))
    assert done["created"] == [] and done["kept"] == {"task-3": ["title"]}
    assert done["changed"] == {"task-2": ["status"], "task-3": ["priority"], "task-4": ["blockedBy"]}
    found = by_key(cli)
    assert (found["shop-a1"]["title"], found["shop-a1"]["priority"]) == ("Read all orders", "high")
    assert (found["shop-a1.2"]["status"], found["shop-a1.2"]["result"]) == ("completed", "Tested.")
    assert found["shop-b2"]["blockedBy"] == []
    assert cli.ok("import", "beads", str(file))["changed"] == {}


def test_circular_dependencies_are_cut(cli: Cli, tmp_path: Path) -> None:
    """Circular dependencies and blockers that were not imported are left out, and both are listed."""
    rows = [{"id": key, "title": key, "dependencies": [{"depends_on_id": other}]} for key, other in ("ab", "ba", "cx")]
    file = tmp_path / "issues.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    done = cli.ok("import", "beads", str(file))
    assert left(done) == {"would wait for itself": ["b (a)"], "waits for an item that was not imported": ["c (x)"]}
    assert waits(by_key(cli)) == {"a": {"b"}, "b": set(), "c": set()}


def test_everything_is_exported(cli: Cli, place: Path, tmp_path: Path) -> None:
    """JSON Lines contain every record, and CSV the tasks; in Markdown, texts of users can't become headings."""
    cli.ok("import", "beads", str(place / "beads"))
    cli.ok("send-message", "bob", "# No heading\nof ours")
    cli.ok("create-task", "long", "--description", "word " * 10_000)
    for format in ("jsonl", "csv", "markdown"):
        cli.ok("export", "--format", format, "--out", str(tmp_path / format))
    rows = [json.loads(line) for line in (tmp_path / "jsonl").read_text().splitlines()]
    assert {"team", "task", "message", "history"} <= {row["kind"] for row in rows}
    tasks = [{key: value for key, value in row.items() if key != "kind"} for row in rows if row["kind"] == "task"]
    shown = [cli.ok("show-task", task["id"]) for task in tasks]
    assert tasks == [{key: one[key] for key in task} for task, one in zip(tasks, shown, strict=True)]
    table = list(csv.DictReader(io.StringIO((tmp_path / "csv").read_text())))
    assert [row["title"] for row in table] == [task["title"] for task in tasks]
    assert table[0]["description"] == tasks[0]["description"].replace("\n", "\\n")
    text = (tmp_path / "markdown").read_text()
    assert "### task-1: Write the parser" in text and "\n> # No heading\n> of ours\n" in text
    assert cli("export", "--format", "csv").stdout == (tmp_path / "csv").read_text()
    assert cli("export", agent="bob").status == 13


def test_values_of_wrong_types_and_repeated_ids(cli: Cli, place: Path) -> None:
    """Unexpected values do not stop an import; a file of another tool is refused."""
    for source, path in (("beads", "backlog"), ("backlog", "beads"), ("task-master", "beads/.beads/issues.jsonl")):
        assert cli.refused("import", source, str(place / path)) == (2, "invalid_value")
    assert cli.refused("import", "beads", str(place / "beads"), agent="bob") == (13, "not_allowed")
    task = place / "there" / "backlog" / "tasks" / "task-1 - x.md"
    task.parent.mkdir(parents=True)
    task.write_text("---\nid: TASK-1\ntitle: 2024-01-02\nlabels: 2024-01-03\n---\n")
    issues = place / "issues.jsonl"
    rows = [{"id": "a", "title": 7, "priority": [1], "status": ["x"]}, {"id": "a", "title": "again"}, {"id": "x" * 256}]
    issues.write_text("\n".join(map(json.dumps, rows)))
    assert [one["title"] for one in cli.ok("import", "backlog", str(place / "there"))["created"]] == ["2024-01-02"]
    done = cli.ok("import", "beads", str(issues))
    assert [one["title"] for one in done["created"]] == ["7"]
    assert left(done)["its id is another's"] == ["a (again)"] and "its id has more than 255 characters" in left(done)


def test_texts_with_any_line_breaks_are_imported_whole(cli: Cli, place: Path) -> None:
    folder = place / "there" / "backlog" / "tasks"
    folder.mkdir(parents=True)
    body = "## Description\n\n<!-- a --> stays <!-- b -->\nas \u2028 this\n"
    text = f"---\nid: TASK-1\ntitle: one\n---\n\n{body}"
    (folder / "1.md").write_bytes(text.replace("\n", "\r\n").encode())
    (folder / "2.md").write_text("---\nid: TASK-2\ntitle: two\n--- ")
    cli.ok("import", "backlog", str(place / "there"))
    found = by_key(cli)
    shown = [cli.ok("show-task", found[key]["id"]).get("description") for key in ("TASK-1", "TASK-2")]
    assert shown == ["stays <!-- b -->\nas \u2028 this", None]
    issues = place / "issues.jsonl"
    row = {"id": "a", "title": "x", "description": "a\u0085b\u2028c", "comments": [{"text": "one"}, {"text": "two"}]}
    issues.write_text(json.dumps(row, ensure_ascii=False) + "\r\n")
    (made,) = cli.ok("import", "beads", str(issues))["created"]
    task = cli.ok("show-task", made["id"])
    assert task["description"] == "a\u0085b\u2028c" and [note["added"][-3:] for note in task["notes"]] == ["one", "two"]


def test_a_file_that_could_not_be_written_is_not_left(cli: Cli, tmp_path: Path) -> None:
    cli.ok("create-task", "long", "--description", "x" * 60_000)
    cli.ok("claim-task", "1", agent="bob")
    file, large = tmp_path / "out", tmp_path / "large"
    large.write_text("x" * 60_000)
    cli.ok("update-task", "1", "--evidence", str(large), agent="bob")
    for words in ("export", "get-evidence 1 large"):
        script = f"trap '' XFSZ; ulimit -f 8; exec {shlex.join(COMMAND)} {words} --out {file}"
        done = subprocess.run(["sh", "-c", script], env=cli.environ(agent="lea"), capture_output=True, text=True)
        assert done.returncode == 1 and "File too large" in done.stderr and "ulimit" in done.stderr, done
        assert not file.exists()
        assert cli(*words.split(), "--out", str(file), agent="lea").status == 0
        assert "x" * 60_000 in file.read_text()
        file.unlink()
