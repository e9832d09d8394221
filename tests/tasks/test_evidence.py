"""Files that are handed in with a task: kept unchanged, shown to whoever asks, and limited in number."""

from __future__ import annotations

from base64 import b64decode, b64encode
from hashlib import sha256
from pathlib import Path

import pytest

from teams_cli.tasks import evidence
from tests.support.cli import ALPHA, Cli, in_progress

REPORT = b"3 of 3 passed\nall of them\n"
PICTURE = bytes(range(256))


@pytest.fixture
def cli(cli: Cli, tmp_path: Path) -> Cli:
    """A team in which bob handed in a report and a picture, and both original files are gone."""
    in_progress(cli, "bob", "t")
    for name, content in (("report.txt", REPORT), ("picture.png", PICTURE)):
        (tmp_path / name).write_bytes(content)
        for _ in range(2):  # repeated, as after a lost answer
            cli.ok("update-task", "1", "--evidence", str(tmp_path / name), agent="bob")
        (tmp_path / name).unlink()
    return cli


def test_evidence_is_shown_as_it_was(cli: Cli, tmp_path: Path) -> None:
    listed = cli.ok("get-evidence", "1", agent="lea")
    assert [(one["name"], one["size"], one["by"]) for one in listed] == [
        ("report.txt", len(REPORT), "bob"),
        ("picture.png", len(PICTURE), "bob"),
    ]
    assert listed[0]["sha256"] == sha256(REPORT).hexdigest()
    assert cli.ok("get-evidence", "1", "report.txt", agent="lea")["text"].encode() == REPORT
    assert b64decode(cli.ok("get-evidence", "1", "evidence-2", agent="lea")["base64"]) == PICTURE
    assert "teams get-evidence task-1 evidence-2" in cli("show-task", "1", agent="lea").stdout
    assert "  3 of 3 passed\n  all of them\n" in cli("get-evidence", "1", "1", agent="lea").stdout
    copy = tmp_path / "copy.png"
    assert cli.ok("get-evidence", "1", "picture.png", "--out", str(copy), agent="lea")["path"] == str(copy)
    assert copy.read_bytes() == PICTURE


def test_a_copy_that_was_changed_is_not_shown(cli: Cli) -> None:
    store = cli.store()
    for content in (b64encode(b"4 of 3 passed").decode(), "abc"):
        copy, revision = store.get(ALPHA, evidence.COPY, "evidence-1")
        store.replace(ALPHA, evidence.COPY, "evidence-1", copy.having(content=content), revision)
        assert cli.refused("get-evidence", "1", "report.txt", agent="lea") == (15, "damaged_record")


def test_a_task_has_a_limited_number_of_files(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("1")
    more = ["--evidence", str(file)] * (evidence.MOST_FILES - 2)
    assert cli.refused("update-task", "1", *more, "--evidence", str(file), agent="bob") == (11, "conflict")
    assert len(cli.ok("update-task", "1", *more, agent="bob")["evidence"]) == evidence.MOST_FILES
    file.write_text("2")
    assert cli.refused("update-task", "1", "--evidence", str(file), agent="bob") == (11, "conflict")
