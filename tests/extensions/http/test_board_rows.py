"""The board as rows over HTTP: first all rows, then only the changed ones."""

from __future__ import annotations

from typing import Any

import pytest

from teams_cli.messages.messages import MESSAGE, Message
from teams_cli.store.documents import encode
from teams_cli.tasks.tasks import Task
from teams_cli.teams import teams
from tests.support.cli import ALPHA, Cli, add_tasks, complete
from tests.support.serving import Server, serving


def test_only_what_changed_is_told_again(cli: Cli, server: Server) -> None:
    add_tasks(cli, "One", "Two", "Three")
    first = server.get("/api/board/rows")
    assert first["whole"] and list(first["rows"]["tasks"]) == ["task-1", "task-2", "task-3"]
    assert [first["rows"]["tasks"]["task-1"][key] for key in ("status", "moves")] == ["pending", ["cancelled"]]
    second = server.get(f"/api/board/rows?after={first['version']}")
    assert not second["rows"].keys() & {"tasks", "agents", "mail"}
    cli.ok("claim-task", "2", agent="bob")
    cli.ok("send-message", "human", "Which engine?", agent="bob")
    changed = server.get(f"/api/board/rows?after={second['version']}")
    assert changed["whole"] is False and list(changed["rows"]["tasks"]) == ["task-2"]
    assert (changed["rows"]["tasks"]["task-2"]["owner"], changed["rows"]["facts"]["course"]["inProgress"]) == ("bob", 1)
    assert list(changed["rows"]["mail"]) == ["msg-1"]
    assert [message["message"] for message in changed["messages"]] == ["Which engine?"]
    cli.ok("ack", "1", agent="human")
    last = server.get(f"/api/board/rows?after={changed['version']}&messages=1")
    assert (last["rows"]["mail"], last["messages"]) == ({"msg-1": None}, [])


@pytest.mark.slow
def test_a_page_that_comes_back_to_another_server_gets_the_whole(cli: Cli) -> None:
    add_tasks(cli, "One")
    with serving(cli) as server:
        version = server.get("/api/board/rows")["version"]
    with serving(cli) as server:
        for strange in (version, "x", "-", "0-0", f"{version}9999", "%00"):
            assert server.get(f"/api/board/rows?after={strange}")["whole"] is True


def test_a_failed_task_says_why_and_what_it_holds_up(cli: Cli, server: Server) -> None:
    """A failed or cancelled task that still blocks others stays on the board, however many tasks finished since."""
    add_tasks(cli, "One")
    add_tasks(cli, "Two", blocked_by=["task-1"])
    add_tasks(cli, "Three", blocked_by=["task-2"])
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("update-task", "1", "--status", "failed", "--result", "line\n\nthe disk is full\n", agent="bob")
    tasks = server.get("/api/board/rows")["rows"]["tasks"]
    assert (tasks["task-1"]["reason"], tasks["task-1"]["waiting"]) == ("line\nthe disk is full", 2)
    assert (tasks["task-2"]["blockers"], tasks["task-2"]["heldUp"]) == ({"task-1": "failed"}, True)
    assert (tasks["task-3"]["blockers"], tasks["task-3"]["heldUp"]) == ({"task-2": "pending"}, True)
    assert [span[::3] for span in tasks["task-1"]["work"]] == [["bob", "failed"]]
    cli.ok("update-task", "2", "--status", "cancelled", "--reason", "too late", agent="human")
    assert [row["reason"] for row in cli.ok("watch", "--once")["failed"]] == ["too late", "line\nthe disk is full"]
    add_tasks(cli, "Done since", "Done since")
    for number in ("4", "5"):
        complete(cli, "bob", number)
    shown = list(server.get("/api/board/rows?finished=1")["rows"]["tasks"])
    assert shown == ["task-1", "task-2", "task-3", "task-5"]


def test_a_task_shows_its_check_review_and_work(cli: Cli, server: Server) -> None:
    """The row of a task has its check without the output, its review, and the spans of work on it."""
    words = ("--check", "echo much", "--check-in", str(cli.root), "--review-by", "human")
    cli.ok("create-task", "One", *words, agent="lea")
    complete(cli, "bob", "1")
    rows = server.get("/api/board/rows")["rows"]
    task = rows["tasks"]["task-1"]
    assert (task["status"], task["checked"]["status"], "output" in task["checked"]) == ("in_review", 0, False)
    assert [span[::3] for span in task["work"]] == [["bob", "in_review"]]
    assert "landings" not in rows and rows["facts"]["course"]["inReview"] == 1
    (waits,) = [row for row in cli.ok("watch", "--once")["waiting"] if row["kind"] == "review"]
    assert (waits["id"], waits["from"]) == ("task-1", "bob")
    cli.ok("review-task", "1", "--reject", "no", agent="human")
    rejected = server.get("/api/board/rows")["rows"]["tasks"]["task-1"]
    assert (rejected["reviewed"]["reason"], len(rejected["work"])) == ("no", 2)


def test_messages_are_paged_and_long_ones_cut(cli: Cli, server: Server) -> None:
    store = cli.store()
    for number in range(1, 251):
        text = f"{number} " + "x" * (5000 if number == 7 else 1)
        store.append(ALPHA, MESSAGE, ["bob"], _letter(store, text), None)
    assert [m["number"] for m in server.get("/api/board/rows")["messages"]] == list(range(51, 251))
    before = server.get("/api/board/messages?before=51&limit=50")
    assert [m["number"] for m in before] == list(range(1, 51))
    assert (len(before[6]["message"]), before[6]["length"]) == (3000, 5002)
    assert len(server.get("/api/board/messages?before=8&limit=1&whole=1")[0]["message"]) == 5002
    assert server.get("/api/board/messages?before=1") == []
    assert len(server.get("/api/board/messages")) == 200


def _letter(store: Any, text: str) -> Message:
    return Message(from_="mia", to="bob", message=text, timestamp=teams.now(store))


def large_team(cli: Cli, tasks: int, letters: int) -> None:
    """Add so many tasks and messages to the team, as files that are not synced to disk one by one."""
    store = cli.store()
    now = teams.now(store)
    for number in range(1, tasks + 1):
        draft = Task(id=f"task-{number}", team_name=ALPHA, title=f"Task {number}", created_at=now, description="x" * 99)
        (cli.root / "tasks" / ALPHA / f"task-{number}.json").write_bytes(encode(draft))
    for number in range(1, letters + 1):
        letter = _letter(store, f"Message {number} of many").having(id=f"msg-{number}", number=number)
        path = cli.root / "teams" / ALPHA / "messages" / str(number // 1000) / f"{number}.bob.{number:x}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode(letter))
