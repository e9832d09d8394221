"""Handling without chores: reading handles what only informs, and doing what was asked handles that."""

from __future__ import annotations

from pathlib import Path

from teams_cli.messages import inboxes, messages
from teams_cli.teams.permission import Caller
from tests.support.cli import ALPHA, TIMEOUT, Cli, add_tasks, complete
from tests.support.waits import until_asleep


def read(cli: Cli, agent: str = "bob", *words: str) -> list[tuple[str, bool]]:
    """The texts of the messages that the agent is shown, each with whether the agent read it before."""
    found = cli.ok("read-messages", *words, agent=agent)
    return [(message["message"], "readBefore" in message) for message in found]


def handled(cli: Cli, agent: str = "bob") -> list[str]:
    return [found["id"] for found in cli.ok("read-messages", "--all", agent=agent) if "handledAt" in found]


def test_what_only_informs_is_handled_by_reading(cli: Cli) -> None:
    cli.ok("send-message", "bob", "by the way", "--fyi", agent="lea")
    cli.ok("send-message", "bob", "do it", agent="lea")
    assert handled(cli) == []
    assert read(cli, "bob", "--peek") == [("by the way", False), ("do it", False)]
    first, second = cli.ok("read-messages", agent="bob")
    assert first["fyi"] is True and first["handledAt"] == first["readAt"]
    assert "handledAt" not in second
    assert read(cli) == [("do it", True)]
    assert handled(cli) == ["msg-1"]


def test_a_decision_handles_the_request_for_it(cli: Cli) -> None:
    cli.ok("propose-plan", "so", agent="bob")
    cli.ok("approve-plan", "1", agent="lea")
    assert read(cli, "lea") == [] and handled(cli, "lea") == ["msg-1"]
    cli.ok("request-shutdown", "mia", agent="lea")
    cli.ok("reject-shutdown", "--reason", "busy", agent="mia")
    assert read(cli, "mia") == [] and len(handled(cli, "mia")) == 1


def test_at_most_twenty_and_how_many_more(cli: Cli) -> None:
    for number in range(22):
        cli.ok("send-message", "bob", f"text {number}", agent="lea")
    first = cli("read-messages", agent="bob").stdout
    assert "| text 19\n" in first and "text 20" not in first and first.endswith("2 more: teams read-messages\n")
    answer = cli("read-messages", "--json", agent="bob")
    assert [m["message"] for m in answer.json if "readBefore" not in m] == ["text 20", "text 21"]
    assert len(answer.json) == 20 and answer.stderr == "teams: 2 more: teams read-messages --limit 22\n"
    assert len(cli.ok("read-messages", "--limit", "22", agent="bob")) == 22


def test_ack_without_ids_is_for_all_that_was_shown(cli: Cli) -> None:
    for text in ("a", "b"):
        cli.ok("send-message", "bob", text, agent="lea")
    assert cli.ok("ack", agent="bob") == {"handled": []}
    cli.ok("read-messages", agent="bob")
    cli.ok("send-message", "bob", "c", agent="lea")
    assert cli.ok("ack", agent="bob") == {"handled": ["msg-1", "msg-2"]}
    assert read(cli) == [("c", False)]


def test_several_recipients_all_or_none(cli: Cli) -> None:
    sent = cli.ok("send-message", "bob,mia", "both", agent="lea")
    assert (sent["to"], sent["recipients"], sent["type"]) == ("all", ["bob", "mia"], "plain")
    cli.ok("send-message", "bob", "mia", "again", "--uid", "u1", agent="lea")
    assert cli("send-message", "bob", "mia", "again", "--uid", "u1", agent="lea").stdout == "msg-2: sent to bob, mia\n"
    assert cli.refused("send-message", "bob", "again", "--uid", "u1", agent="lea") == (11, "uid_taken")
    assert cli.refused("send-message", "bob,nobody", "text", agent="lea") == (10, "agent_not_found")
    assert cli.refused("send-message", "nobody", "bob", "text", agent="lea") == (10, "agent_not_found")
    assert cli.refused("send-message", "bob", "an", "unquoted", "text", agent="lea") == (2, "wrong_usage")
    assert cli.refused("send-message", "only a text", agent="lea") == (2, "wrong_usage")
    for name in ("bob", "mia"):
        assert read(cli, name) == [("both", False), ("again", False)]


def test_to_the_owners_of_tasks(cli: Cli) -> None:
    add_tasks(cli, "one", "two", "three")
    cli.ok("claim-task", "1", agent="bob")
    complete(cli, "mia", "2")
    sent = cli.ok("send-message", "--to-owners-of", "1,task-2,#1", "the interface changed", agent="lea")
    assert sent["recipients"] == ["bob", "mia"]
    assert cli.ok("send-message", "--to-owners-of", "1,2", "mine too", agent="bob")["to"] == "mia"
    assert cli.refused("send-message", "--to-owners-of", "3", "x", agent="lea") == (11, "wrong_state")
    assert cli.refused("send-message", "--to-owners-of", "1", "x", agent="bob") == (11, "nobody_there")
    assert cli.refused("send-message", "--to-owners-of", "9", "x", agent="lea") == (10, "task_not_found")


def test_replying_to_the_message_answers_the_question(cli: Cli) -> None:
    """The asker gets the answer where it waits, and no message besides."""
    cli.ok("set", "broadcast", "agents", agent="lea")
    asking = cli.start("ask-others", "which port?", "--to", "bob", "--json", agent="lea")
    cli.ok("wait", "--message", "--timeout", str(TIMEOUT), agent="bob")
    answer = cli.ok("reply", "1", "8080", agent="bob")
    about = {"question": "ask-1", "from": "bob", "to": "lea", "message": "8080", "replyTo": "msg-1"}
    assert {**about, "status": "complete"}.items() <= answer.items()
    assert b"8080" in asking.communicate(timeout=TIMEOUT)[0]
    assert read(cli) == [] and handled(cli) == ["msg-1"] and read(cli, "lea") == []


def test_a_message_is_about_all_tasks_that_it_names(cli: Cli) -> None:
    """Also if it names one as `task 2`."""
    add_tasks(cli, "one", "two")
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("send-message", "bob", "do task 2 after task-1, please", agent="lea")
    cli.ok("send-message", "bob", "Please hurry with task 1", agent="mia")
    cli.ok("read-messages", agent="bob")
    cli.ok("update-task", "1", "--status", "completed", agent="bob")
    assert [m["id"] for m in cli.ok("read-messages", agent="bob")] == ["msg-1"]


def test_what_needs_no_answer_does_not_stay_open(cli: Cli) -> None:
    """Broadcasts, orders that were carried out and mail on completed tasks do not stay open; questions do."""
    add_tasks(cli, "one", "two")
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("broadcast-message", "commit often", agent="lea")
    cli.ok("send-message", "bob", "take port 80, please", agent="lea")
    cli.ok("send-message", "bob", "who has the key?", agent="mia")
    cli.ok("send-message", "mia", "task-1 is nearly done: wait for it", agent="bob")
    assert "reply msg-1" not in cli("read-messages", agent="bob").stdout
    cli.ok("read-messages", agent="mia")
    assert [m["id"] for m in cli.ok("read-messages", agent="bob")] == ["msg-2", "msg-3"]
    assert [m["id"] for m in cli.ok("read-messages", agent="mia")] == ["msg-4"]
    cli.ok("update-task", "1", "--status", "completed", "--result", "on port 80", agent="bob")
    assert [m["id"] for m in cli.ok("read-messages", agent="bob")] == ["msg-3"]
    assert cli.ok("brief", agent="mia")["unhandled"] == []
    cli.ok("send-message", "mia", "was task-1 hard?", agent="lea")
    assert "next: teams reply msg-6 TEXT" in cli("wait", "--timeout", "0", agent="mia").stdout


def test_many_open_messages_leave_room_for_a_new_one(cli: Cli) -> None:
    """A message that an answer marks as read is in this answer, however many older messages are open."""
    for number in range(300):
        messages.send(cli.store(), ALPHA, Caller("lea"), "bob", f"{number} {'x' * 80}")
    cli.ok("read-messages", "--limit", "300", agent="bob")
    cli.ok("send-message", "bob", "by the way", "--fyi", agent="lea")
    answer = cli("read-messages", "--limit", "500", agent="bob").stdout
    assert "| by the way\n" in answer
    (how_to_see_rest,) = (line for line in answer.split("\n") if line.startswith("  [cut"))
    command = how_to_see_rest.partition("teams ")[2].partition(" >")[0]
    assert len(cli(*command.split(), agent="bob").json) == 300


def test_news_is_shown_to_its_reader_only(tmp_path: Path) -> None:
    """In a secure team, nobody but the agent itself reads its mail or makes its news count as shown."""
    cli = Cli(tmp_path / "root", team=ALPHA)
    leader = cli.ok("spawn-team", ALPHA, "--secure", agent="lea")["token"]
    token = cli.ok("join-team", agent="bob")["token"]
    assert cli("send-message", "bob", "for you", "--fyi", agent="lea", TEAMS_TOKEN=leader).status == 0
    assert cli("create-task", "t", "--for", "bob", agent="lea", TEAMS_TOKEN=leader).status == 0
    for other_token in ("", leader):
        answer = cli("wait", "--message", "--timeout", "0", agent="bob", TEAMS_TOKEN=other_token)
        assert answer.status == 13 and "for you" not in answer.stdout
        for words in (["brief"], ["get-tasks"], ["wait", "--ready", "--timeout", "0"]):
            assert cli(*words, agent="bob", TEAMS_TOKEN=other_token).status == 0
    assert inboxes.load(cli.store(), ALPHA, "bob") == inboxes.Inbox(agent="bob")
    answer = cli("wait", "--message", "--timeout", "0", agent="bob", TEAMS_TOKEN=token)
    assert "| for you\n" in answer.stdout
    assert inboxes.unread(cli.store(), ALPHA, "bob") != [1]


def test_a_wait_ends_when_its_caller_leaves(cli: Cli) -> None:
    """No mail comes to a former member, and no task is ready for it."""
    waits = (["wait", "--message"], ["wait", "--ready"], ["read-messages", "--wait", "1000"])
    waiting = [cli.start(*words, agent="bob") for words in waits]
    for process in waiting:
        until_asleep(process)
    cli.ok("leave-team", agent="bob")
    for process in waiting:
        assert "bob left team" in process.communicate(timeout=TIMEOUT)[1].decode() and process.returncode == 13
    for words in waits:
        assert cli.refused(*words, agent="bob") == (13, "not_allowed")


def test_commands_in_a_message_stay_as_they_were_written(cli: Cli) -> None:
    """Those of the program name the team if another team is meant without that."""
    cli.ok("spawn-team", "beta", agent="lea")
    cli.ok("join-team", "beta", agent="bob")
    cli.ok("send-message", "bob", "shall I run teams close-team now?", agent="lea", team=ALPHA)
    reminder = cli("get-tasks", "--team", ALPHA, agent="bob", team="").stderr.strip()
    assert reminder == "msg-1 from lea: shall I run teams close-team now? (teams reply --team alpha msg-1 TEXT)"
