"""Editing: rules of the team, descriptions, notes, and many tasks from one file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from teams_cli.workflows.roster import ListedTask
from tests.support.cli import Cli, add_tasks, complete
from tests.tasks.conftest import told


def test_the_rules_are_said_once(cli: Cli) -> None:
    """Members are told new rules, and new members are told them on joining and in their first brief."""
    rules = "Write tests first.\nCommit small."
    assert cli.ok("set", "rules", "-", agent="lea", stdin=rules.encode())["value"] == rules
    for name in ("bob", "mia"):
        assert told(cli, name) == [f"lea set the rules of the team:\n{rules}"]
    assert told(cli, "lea") == []
    joined = cli("join-team", agent="cat")
    assert "rules of the team:\n| Write tests first.\n| Commit small.\n" in joined.stdout
    assert cli.ok("join-team", agent="dan")["rules"] == rules
    assert cli.ok("brief", agent="cat")["rules"] == rules
    assert "rules" not in cli.ok("brief", agent="cat") and told(cli, "cat") == []
    assert cli.refused("set", "rules", " ", agent="lea") == (2, "invalid_value")
    cli.ok("set", "rules", rules, agent="lea")
    assert told(cli, "bob") == []
    cli.ok("set", "rules", "", agent="lea")
    assert told(cli, "bob") == ["lea removed the rules of the team"]
    assert "rules" not in cli.ok("join-team", agent="eve")


def test_an_owner_is_told_what_another_edited(cli: Cli) -> None:
    add_tasks(cli, "first", "second", description="Write the parser.\nIt reads a file.\nIt has tests.")
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("update-task", "1", "--description", "Write the lexer.\nIt reads a file.\nIt has tests.", agent="lea")
    appended = cli("update-task", "1", "--append", "and this", agent="lea")
    assert "description changed (bob is notified)" in appended.stdout
    cli.ok("update-task", "1", "--title", "better", "--priority", "high", "--reason", "urgent", agent="human")
    cli.ok("update-task", "1", "--blocked-by", "2", agent="lea")
    cli.ok("update-task", "1", "--append", "my own", agent="bob")
    assert told(cli, "bob") == [
        "lea edited task-1 (first): description: - Write the parser.\n+ Write the lexer.",
        "lea edited task-1 (first): added: and this",
        'human edited task-1 (better): title: "better"; priority: high (because: urgent)',
        "lea edited task-1 (better): waits for: task-2",
    ]
    edits = [note for note in cli.ok("show-task", "1")["notes"] if note["what"] == "edited"]
    assert [(note["by"], note["changed"], note.get("added")) for note in edits[1:3]] == [
        ("lea", ["description"], "and this"),
        ("human", ["title", "priority"], None),
    ]
    assert cli.refused("update-task", "1", "--append", "x", agent="mia") == (13, "not_allowed")
    assert cli.refused("update-task", "1", "--append", " ", agent="bob") == (2, "invalid_value")


def test_notes_of_anybody_stay_with_the_task(cli: Cli) -> None:
    add_tasks(cli, "t")
    cli.ok("note", "1", "nobody has it yet", agent="mia")
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("note", "1", "-", agent="human", stdin=b"mind the gap")
    assert told(cli, "bob") == ["human noted on task-1 (t): mind the gap"]
    cli.ok("note", "1", "mine", agent="bob")
    assert told(cli, "bob") == []
    notes = [(note["by"], note["added"]) for note in cli.ok("show-task", "1")["notes"] if note["what"] == "note"]
    assert notes == [("mia", "nobody has it yet"), ("human", "mind the gap"), ("bob", "mine")]
    shown = cli("show-task", "1", agent="mia").stdout
    assert "mind the gap" in shown and "mine" in shown
    assert any(entry.get("added") == "mine" for entry in cli.ok("history"))
    assert cli.refused("note", "1", "x" * 9000, agent="bob") == (2, "invalid_value")
    assert cli.refused("note", "9", "x", agent="bob") == (10, "task_not_found")
    assert cli.refused("note", "1", "x", agent="stranger") == (13, "not_allowed")


MANY = [
    {"id": "last", "title": "put together", "blockedBy": ["lexer", "parser", "task-1"]},
    {"id": "lexer", "title": "write the lexer", "priority": "high", "description": "all of it"},
    {"id": "parser", "title": "write the parser", "blockedBy": ["lexer"], "planRequired": True},
]


def test_many_tasks_from_one_text(cli: Cli, tmp_path: Path) -> None:
    """A list of tasks is YAML or JSON, in a file or standard input; blockers may come after their tasks."""
    add_tasks(cli, "there already")
    made = cli.ok("create-task", "--from", "-", agent="lea", stdin=json.dumps(MANY).encode())
    assert [(task["id"], task["title"], task["blockedBy"]) for task in made] == [
        ("task-2", "write the lexer", []),
        ("task-3", "write the parser", ["task-2"]),
        ("task-4", "put together", ["task-2", "task-3", "task-1"]),
    ]
    assert (made[0]["priority"], made[0]["description"]) == ("high", "all of it")
    assert [task.get("planRequired") for task in made] == [None, True, None]
    file = tmp_path / "plan.md"
    file.write_text("---\ntasks:\n- {id: a, title: first}\n- {id: b, title: second, blockedBy: [a]}\n---\nWords.\n")
    told = cli("create-task", "--from", str(file), agent="lea").stdout
    made = "task-5: pending: first\ntask-6: pending, blocked by task-5: second\n"
    assert told == f"{made}next: teams wait --needed --timeout 540\n"


def test_a_list_of_tasks_may_leave_out_what_goes_without_saying(cli: Cli) -> None:
    text = "- write the lexer\n- {id: null, title: write the parser, blockedBy: [1], touches: null}\n"
    text += "- {id: 9, title: join, blockedBy: 2 1, touches: x.py}\n"
    made = cli.ok("create-task", "--from", "-", agent="lea", stdin=text.encode())
    assert [(task["title"], task["blockedBy"]) for task in made] == [
        ("write the lexer", []),
        ("write the parser", ["task-1"]),
        ("join", ["task-2", "task-1"]),
    ]
    assert made[2]["touches"] == ["x.py"]
    text = "".join(f"- {{check-in: {n}}}\n" for n in range(3))
    refused = cli("create-task", "--from", "-", agent="lea", stdin=text.encode()).stderr
    assert "task 1: title is missing; task 1: check-in is not a key here; task 2: title" in refused
    colon = b"- title: a\n  description: so: it\n"
    assert "below `description: |`" in cli("create-task", "--from", "-", agent="lea", stdin=colon).stderr
    twice = b"- title: a\n  check: a\n  check: b\n"
    assert "the key check stands twice" in cli("create-task", "--from", "-", agent="lea", stdin=twice).stderr


def test_a_blocker_is_not_in_after_too(cli: Cli) -> None:
    """Otherwise its result would be shown twice to the owner."""
    add_tasks(cli, "one")
    both = ("--blocked-by", "1", "--after", "1")
    for created in (
        cli.ok("create-task", "two", *both, agent="lea"),
        cli.ok("create-task", "x", *both, "--for", "bob", agent="lea"),
    ):
        assert (created["blockedBy"], created.get("after")) == (["task-1"], None)
    cli.ok("create-task", "three", "--after", "1", agent="lea")
    changed = cli.ok("update-task", "4", "--blocked-by", "1", agent="lea")
    assert (changed["blockedBy"], changed.get("after")) == (["task-1"], None)


def test_a_new_task_can_block_one_that_exists(cli: Cli) -> None:
    """So can a task of a list, which can also block another one of the list. The owner of a blocked one hears it."""
    cli.ok("create-task", "docs", agent="lea")
    cli.ok("create-task", "release", agent="lea")
    cli.ok("claim-task", "1", agent="bob")
    assert cli.ok("create-task", "a name", "--blocks", "1,2", agent="lea")["id"] == "task-3"
    text = "[{id: a, title: tests, blocks: [b, 2]}, {id: b, title: fix, blocks: 2}, {title: c, blocks: [2], for: mia}]"
    made = cli.ok("create-task", "--from", "-", agent="lea", stdin=text.encode())
    assert [(task["title"], task["blockedBy"]) for task in made] == [("tests", []), ("fix", ["task-4"]), ("c", [])]
    assert cli.ok("show-task", "2")["blockedBy"] == ["task-3", "task-4", "task-5", "task-6"]
    assert "lea edited task-1 (docs): waits for: task-3" in cli("read-messages", agent="bob").stdout
    cli.ok("update-task", "1", "--unblock", "3", agent="lea")
    cli.ok("read-messages", agent="bob")
    cli.ok("update-task", "1", "--status", "completed", agent="bob")
    for more, text, why in (
        (["--blocks", "1"], "", (11, "wrong_state")),
        (["--blocks", "9"], "", (10, "task_not_found")),
        (["--blocks", "4", "--after", "2"], "", (11, "dependency_cycle")),
        ([], "[{id: a, title: t, blockedBy: [2]}, {title: u, blockedBy: [a], blocks: [3]}]", (11, "dependency_cycle")),
        (
            [],
            "[{title: t, blockedBy: [6], blocks: [5]}, {title: u, after: [5], blocks: [6]}]",
            (11, "dependency_cycle"),
        ),
    ):
        words = ["--from", "-"] if text else ["more"]
        assert cli.refused("create-task", *words, *more, agent="lea", stdin=text.encode()) == why, more
    (cli.root / "config.json").write_text('{"permission": {"tool": {"update-task": {"team-leader": "deny"}}}}')
    assert cli("create-task", "more", "--blocks", "2", agent="lea").status == 13
    assert len(cli.ok("get-tasks")) == 6


def test_a_leader_hears_at_once_that_many_tasks_wait_for_one(cli: Cli) -> None:
    def made(count: int) -> str:
        text = "- {id: a, title: core}\n- {title: other}\n" + "- {title: t, blockedBy: [a]}\n" * count
        return cli("create-task", "--from", "-", agent="lea", stdin=text.encode()).stdout

    assert (
        "\n4 tasks wait for task-1 alone. If they can start now, and be completed after it: "
        "teams update-task task-3,task-4,task-5,task-6 --unblock task-1 --after task-1\nnext: " in made(4)
    )
    cli.ok("update-task", "3,4,5,6", "--unblock", "1", "--after", "1", agent="lea")
    assert "alone" not in made(3)
    assert "alone" not in cli("create-task", "t", "--blocked-by", "1", agent="lea").stdout


def test_a_leader_hears_at_once_that_a_task_waits_for_many(cli: Cli) -> None:
    add_tasks(cli, *"abcd")
    said = cli("create-task", "all of it", "--blocked-by", "1,2,3,4", agent="lea").stdout
    ids = "task-1,task-2,task-3,task-4"
    step = f"teams update-task task-5 --unblock {ids} --after {ids}"
    assert f"\ntask-5 waits for the last of 4 tasks. If it can start now, and be completed after them: {step}\n" in said
    assert "the last of" not in cli("create-task", "some of it", "--blocked-by", "1,2,3", agent="lea").stdout


def test_a_blocker_that_is_completed_is_not_moved_behind_the_tasks_it_blocked(cli: Cli) -> None:
    """Otherwise the text that comes with it holds up owners who are about to complete these tasks."""
    add_tasks(cli, "one")
    cli.ok("create-task", "two", "--blocked-by", "1", agent="lea")
    cli.ok("create-task", "three", "--blocked-by", "1", agent="lea")
    complete(cli, "bob", "1")
    move = ("update-task", "2,3", "--unblock", "1", "--after", "1", "--append", "Start before task-1 is on main.")
    assert cli.refused(*move, agent="lea") == (11, "wrong_state")
    answer = cli(*move, agent="lea").stderr
    assert "task-1 is completed already, so task-2 need not wait for it; nothing was changed" in answer
    assert all("description" not in cli.ok("show-task", key) for key in ("2", "3"))


def test_a_new_leader_is_shown_every_key_of_a_list_of_tasks(cli: Cli) -> None:
    example = cli("spawn-team", "beta", agent="lea").stdout.partition("<<'.'\n")[2].removesuffix(".\n")
    keys = {field.alias or name for name, field in ListedTask.model_fields.items()} - {"prompt", "attempts", "each"}
    assert {key for key in keys if f"{key}:" not in example} == set()
    made = cli.ok("create-task", "--from", "-", "--team", "beta", agent="lea", stdin=example.encode())
    assert [(task["title"], task["blockedBy"]) for task in made] == [("TITLE", []), ("TITLE", ["task-1"])]


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("[{id: a, title: t, blockedBy: [b]}, {id: b, title: u, blockedBy: [a]}]", (11, "dependency_cycle")),
        ("[{id: a, title: t}, {id: b, title: u, blockedBy: [task-9]}]", (10, "task_not_found")),
        ("[{id: a, title: t}, {id: a, title: u}]", (2, "invalid_value")),
        ("[{id: a, title: t, owner: bob}]", (2, "invalid_value")),
        ("[]", (2, "invalid_value")),
        ("\0", (2, "invalid_value")),
    ],
)
def test_all_or_none(cli: Cli, text: str, refused: tuple[int, str]) -> None:
    assert cli.refused("create-task", "--from", "-", agent="lea", stdin=text.encode()) == refused


def test_a_completion_names_who_changed_its_words_unseen(cli: Cli) -> None:
    """A changed priority, unlike a changed title, asks for no other work."""
    for change, editor in ((("--priority", "high"), None), (("--title", "another"), "lea")):
        task = cli.ok("create-task", "one", agent="lea")["id"]
        cli.ok("claim-task", task, agent="bob")
        cli.ok("update-task", task, *change, agent="lea")
        assert cli.ok("update-task", task, "--status", "completed", agent="bob").get("unseenEditBy") == editor


@pytest.mark.parametrize("option", ["--description", "--run", "--check"])
def test_a_list_of_tasks_takes_no_option_of_one_task(cli: Cli, option: str) -> None:
    words = ("create-task", "--from", "-", "--priority", "normal", option, "normal")
    assert cli.refused(*words, agent="lea", stdin=b"[{title: one}]") == (2, "wrong_usage")
