"""`teams search`: what is found where, of whom, and since when."""

from __future__ import annotations

import shutil

import pytest

from teams_cli.messages.messages import MESSAGE, Message
from tests.support.cli import ALPHA, Cli, add_tasks


@pytest.fixture
def cli(cli: Cli) -> Cli:
    """A team with the word `zebra` once in each place, in the history, and in two notices to the leader."""
    add_tasks(cli, "Feed the zebra", description="Twice a day.")
    add_tasks(cli, "Clean the cage", "Count the visitors")
    for number in ("2", "3"):
        cli.ok("claim-task", number, agent="bob")
    cli.ok("update-task", "2", "--status", "completed", "--result", "All zebras\nare clean.", agent="bob")
    cli.ok("release-task", "3", "--reason", "A Zebra bit me", agent="bob")
    cli.ok("send-message", "bob", "Where is the ZEBRA-crossing?", agent="mia")
    return cli


TOLD = ("messages", "msg-1", "system")
BACK = ("messages", "msg-2", "system")


def found(cli: Cli, *words: str) -> list[tuple[str, str, str]]:
    return [(hit["in"], hit["id"], hit["from"]) for hit in cli.ok("search", *words, agent="")]


def test_everything_is_searched_the_newest_first(cli: Cli) -> None:
    everywhere = [
        ("messages", "msg-3", "mia"),
        BACK,
        ("notes", "task-3", "bob"),
        TOLD,
        ("results", "task-2", "bob"),
        ("tasks", "task-1", "lea"),
    ]
    assert found(cli, "zebra") == everywhere
    assert found(cli, "zEB") == everywhere
    assert [at for at in cli.ok("search", "zebra")] == sorted(cli.ok("search", "zebra"), key=lambda hit: hit["at"])[
        ::-1
    ]
    assert found(cli, "ebra") == []


def test_all_words_are_in_one_text(cli: Cli) -> None:
    assert found(cli, "zebra", "clean") == found(cli, "clean zebra") == [TOLD, ("results", "task-2", "bob")]
    assert found(cli, "zebra", "visitors") == [BACK]
    assert found(cli, "zebra", "cage") == [TOLD]
    assert found(cli, "visitors", "hay") == []
    assert found(cli, "zebra", "twice") == [("tasks", "task-1", "lea")]


def test_a_search_can_be_limited_by_place_sender_and_time(cli: Cli) -> None:
    for words, expected in (
        ("--in tasks", [("tasks", "task-1", "lea")]),
        ("--in notes --in results", [("notes", "task-3", "bob"), ("results", "task-2", "bob")]),
        ("--from system", [BACK, TOLD]),
        ("--from mia --in tasks", []),
        ("--since 2199-01-01", []),
        ("--limit 1", [("messages", "msg-3", "mia")]),
    ):
        assert found(cli, "zebra", *words.split()) == expected
    cli.ok("note", "1", "It eats hay", agent="mia")
    assert found(cli, "hay") == found(cli, "hay", "--in", "notes", "--from", "mia") == [("notes", "task-1", "mia")]
    hits = cli.ok("search", "zebra", "--in", "history", "--from", "lea", "--since", "1d")
    assert [(hit["from"], hit["text"]) for hit in hits] == [("lea", "lea: task created task-1 Feed the zebra")]
    for refused in (["?!"], ["x", "--limit", "0"], ["x", "--since", "soon"], ["x", "--in", "nix"], []):
        assert cli.refused("search", *refused)[0] == 2


def test_the_text_around_the_words_is_shown(cli: Cli) -> None:
    cli.ok("send-message", "bob", "x " * 500 + "the needle\nis here" + " y" * 500, agent="mia")
    text = cli.ok("search", "needle")[0]["text"]
    assert text.startswith("…x x") and "the needle is here y" in text and text.endswith("y…") and len(text) < 250
    shown = cli("search", "visitors", "hay").stdout + cli("search", "zebras").stdout
    assert shown.startswith("nothing was found\n") and "All zebras are clean. (Clean the cage)" in shown


@pytest.mark.slow
def test_the_index_is_derived(cli: Cli) -> None:
    """The same is found if the index is removed, damaged or out of date."""
    store = cli.store()
    for number in range(4, 1003):
        text = "a needle" if number in (17, 1001) else "hay"
        message = Message(from_="mia", to="bob", message=text, timestamp="2026-01-01T00:00:00Z")
        store.append(ALPHA, MESSAGE, ["bob"], message, None)
    expected = [("messages", "msg-1001", "mia"), ("messages", "msg-17", "mia")]
    index = cli.root / "index" / ALPHA / "0"
    assert found(cli, "needle") == expected and index.exists()
    assert index.stat().st_mode & 0o777 == 0o600
    for damage in (b"", b"x" * 5000, index.read_bytes()[:1500], b"# 0 0\n17 needle\n"):
        index.write_bytes(damage)
        assert found(cli, "needle") == expected
    shutil.rmtree(cli.root / "index")
    (cli.root / "index").write_text("in the way")
    assert found(cli, "needle") == expected
