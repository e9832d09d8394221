"""Names that can't be: refused, and naming nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from teams_cli.cli.main import run
from tests.support.cli import Cli, make_team, tree

BAD_NAMES = {
    "empty": "",
    "blank": "  ",
    "dot": ".",
    "traversal": "../../evil",
    "backslash": "..\\evil",
    "newline at the end": "bob\n",
    "newline inside": "bo\nb",
    "escape": "bo\x1b[31mb",
    "Cyrillic look-alike": "b\u043eb",
    "superscript digits": "bob\u00b2",
    "zero-width space": "bo\u200bb",
    "right-to-left override": "bo\u202eb",
    "65 characters": "a" * 65,
    "leading hyphen": "-bob",
    "hidden": ".bob",
    "dollar": "$HOME",
    "device": "NUL",
    "reserved human": "human",
    "reserved all": "ALL",
}


def test_a_bad_name_names_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No team, agent or role is called that; where nothing was, nothing is made."""
    none, root = tmp_path / "none", tmp_path / "root"
    make_team(root)
    before = tree(root)
    for name in BAD_NAMES.values():
        monkeypatch.setenv("TEAMS_HOME", str(none))
        assert run(["spawn-team", "--as", "lea", "--", name]) == 2
        assert name in ("human", "") or run(["spawn-team", "alpha", "--as=" + name]) == 2
        monkeypatch.setenv("TEAMS_HOME", str(root))
        assert run(["spawn-team", "--as", "lea", "--", name]) == 2
        assert not name or run(["join-team", "alpha", "--as=" + name]) == 2
        assert run(["define-role", "--as", "lea", "--team", "alpha", "--", name]) == 2
        assert run(["show-team", "--", name]) in ((0,) if name == "" else (10, 2))
        sent = run(["send-message", "--as", "lea", "--team", "alpha", "--", name, "hi"]) if name != "human" else 2
        assert sent in (2, 10)
        assert tree(root) == before, repr(name)
    assert [path.name for path in tmp_path.iterdir()] == ["root"]
    said = capsys.readouterr().err
    assert "\x1b" not in said and "\u202e" not in said


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    for name in (b"b\xffb", b"\xed\xa0\x80"):  # invalid UTF-8, a surrogate
        cli = Cli(tmp_path / "root", agent="lea")
        assert cli.refused(b"spawn-team", name) == (2, "invalid_value")
        assert tree(tmp_path / "root") is None


def test_names_that_differ_only_in_case(tmp_path: Path) -> None:
    """They would be one file on some systems, and one person's mistake on all."""
    cli = make_team(tmp_path / "root", "bob")
    assert cli.refused("spawn-team", "ALPHA", agent="zoe") == (11, "already_exists")
    assert cli.refused("join-team", agent="Bob") == (11, "already_exists")
    cli.ok("define-role", "security", agent="lea")
    assert cli.refused("define-role", "Security", agent="lea") == (11, "already_exists")
    assert cli.refused("define-role", "Team-Member", agent="lea")[0] in (2, 11)
