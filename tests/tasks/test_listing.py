"""Lists of tasks: what is shown of files that others wrote, or an older version."""

from __future__ import annotations

import json
from pathlib import Path
from zlib import crc32

from teams_cli.errors import TeamsError
from teams_cli.tasks import claims
from teams_cli.teams.permission import Caller
from teams_cli.views import board
from tests.support.cli import ALPHA, make_team

MARK = b',\n  "checksum": "'


def sealed(path: Path, old: bytes, new: bytes) -> None:
    """Change a file, with the checksum that makes it look like one of ours."""
    body = path.read_bytes().rpartition(MARK)[0]
    assert old in body
    body = body.replace(old, new)
    path.write_bytes(b'%s%s%08x"\n}\n' % (body, MARK, crc32(body)))


def test_what_lacks_a_part_within_is_named_beside_the_others(tmp_path: Path) -> None:
    """Whoever gave it the checksum: it is no task, and holds up none."""
    cli = make_team(tmp_path / "root", "bob")
    cli.ok("create-task", "a", agent="lea")
    cli.ok("create-task", "b", agent="lea")
    claims.claim(cli.store(), ALPHA, Caller("bob"), "1")
    cli.ok("update-task", "1", "--append", "more", agent="lea")
    sealed(cli.root / "tasks/alpha/task-1.json", b'"by": "lea",', b"")
    shown = cli("get-tasks", "--json", agent="lea")
    assert [row["id"] for row in json.loads(shown.stdout)] == ["task-2"]
    assert "task-1.json" in shown.stderr and "by: Field required" in shown.stderr


def test_what_an_older_version_did_not_write_is_shown_as_it_is_understood(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root", "bob")
    cli.ok("create-task", "a", agent="lea")
    cli.ok("create-task", "b", "--blocked-by", "1", agent="lea")
    path = cli.root / "tasks/alpha/task-1.json"
    path.write_text(
        json.dumps({"id": "task-1", "teamName": "alpha", "title": "a", "createdAt": "2030-01-01T00:00:00.000Z"})
    )
    first, second = cli.ok("get-tasks", agent="lea")
    assert (first["status"], first["blockedBy"], first["blocked"]) == ("pending", [], False)
    assert second["openBlockers"] == ["task-1"]
    assert cli.ok("show-task", "1", agent="lea")["title"] == "a"
    problems: list[TeamsError] = []
    assert board.frame(cli.store(), ALPHA, problems) and not problems


def test_an_empty_owner_is_none_that_was_asked_for(tmp_path: Path) -> None:
    """As from a variable of a shell that is not set."""
    cli = make_team(tmp_path / "root", "bob")
    cli.ok("create-task", "a", agent="lea")
    assert len(cli.ok("get-tasks", "--owner", "", agent="lea")) == 1
