"""`copy-team` copies a whole team to another store and back, byte for byte."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from teams_cli import copying
from teams_cli.errors import Conflict
from teams_cli.messages.messages import MESSAGE, Message
from teams_cli.store import opening
from teams_cli.store.files.engine import FileStore
from teams_cli.teams.permission import Caller
from tests.conftest import new_address, server
from tests.support.cli import ALPHA, Cli, add_tasks, complete, make_team, tree
from tests.support.postgres import schema_of
from tests.support.waits import until

pytestmark = pytest.mark.slow

AT = "2030-01-01T00:00:00.000Z"
NOT_OF_THE_TEAM = ("tmp/", "logs/", "README", ".lock", "wakers/", ".seen")


def worked(root: Path) -> Cli:
    """A team in files in which tasks, messages, plans and roles were changed."""
    cli = make_team(root, "bob", "mia")
    add_tasks(cli, "one", "two \u0000 é\U0001f600", "three")
    complete(cli, "bob", "1", "--result", 'a "\\u0000" \\ b')
    cli.ok("create-task", "four", "--blocked-by", "3", agent="lea")
    for n in range(5):
        cli.ok("send-message", "bob", f"m{n}", "--uid", f"u{n}", agent="lea")
    cli.ok("broadcast-message", "all of you", agent="lea")
    cli.ok("read-messages", agent="bob")
    cli.ok("ack", "2", "3", agent="bob")  # the first message told lea that task-1 is completed
    cli.ok("announce", "busy", agent="mia")
    cli.ok("propose-plan", "a plan", agent="bob")
    cli.ok("define-role", "expert", "--skill", "x", agent="lea")
    path = root / f"tasks/{ALPHA}/task-2.json"
    later = {"x-later": {"z": 1, "a": [1.50, 1e3]}}  # as by another version, or by hand
    path.write_text(json.dumps({**json.loads(path.read_text()), **later}, indent=4))
    return cli


def content(root: Path) -> dict[str, bytes]:
    """The team's files by relative path, with their bytes."""
    files = {path: data for path, data in tree(root).items() if isinstance(data, bytes)}
    return {path: data for path, data in files.items() if not any(part in path for part in NOT_OF_THE_TEAM)}


def test_a_large_team_is_copied_in_parts(tmp_path: Path) -> None:
    cli, address = make_team(tmp_path / "root", "bob"), new_address()
    store = cli.store()
    for number in range(1, 1204):
        to = ["bob", "lea"] if number % 7 == 0 else ["bob"]
        message = Message(from_="lea", to=to[0], message="é" * (number % 90 + 1), timestamp=AT)
        sent = message if len(to) == 1 else message.having(recipients=to)
        store.append(ALPHA, MESSAGE, to, sent, f"u{number}")
    store.put_history(ALPHA, [{"at": AT, "by": "lea", "what": f"thing {n}"} for n in range(1_300)])
    before = content(cli.root)
    done = cli.ok("copy-team", ALPHA, "--to", address, agent="lea")["copied"]
    assert (done["message"], done["history"]) == (1203, 1302)
    back = Cli(tmp_path / "back", agent="lea", team=ALPHA)
    assert back("copy-team", "--to", "files", "--store", address).status == 0
    assert content(back.root) == before
    assert len(back.ok("read-messages", "--limit", "2000", agent="bob")) == 1203


def test_a_copied_team_works_only_in_its_new_place_and_can_be_copied_back(tmp_path: Path) -> None:
    cli, address = worked(tmp_path / "root"), new_address()
    cli.ok("copy-team", ALPHA, "--to", address, agent="lea")
    assert cli.refused("send-message", "bob", "hi", agent="lea") == (11, "wrong_state")
    before = content(cli.root)
    answer = cli("copy-team", "--to", new_address(), "--json", agent="lea")  # to a third place
    assert (answer.status, answer.error["code"]) == (11, "wrong_state") and "restore-team" in answer.error["hint"]
    assert content(cli.root) == before
    there = Cli(cli.root, team=ALPHA, TEAMS_STORE=address)
    assert there.ok("create-task", "five", agent="lea")["id"] == "task-5"
    assert there.ok("send-message", "bob", "hi", agent="lea")["number"] == 9
    assert there.ok("send-message", "bob", "m3", "--uid", "u3", agent="lea")["number"] == 5
    assert [m["message"] for m in there.ok("read-messages", agent="bob")] == ["m2", "m3", "m4", "hi"]
    there.ok("copy-team", "--to", "files", agent="lea")
    assert [task["title"] for task in cli.ok("get-tasks")][-1] == "five"
    assert cli.ok("send-message", "bob", "again", agent="lea")["number"] == 10
    assert cli.refused("copy-team", ALPHA, "--to", str(cli.root), agent="lea") == (2, "invalid_value")


def test_refused_copies_change_nothing(tmp_path: Path) -> None:
    cli, address, taken = worked(tmp_path / "root"), new_address(), new_address()
    assert cli.refused("copy-team", ALPHA, "--to", address, agent="bob") == (13, "not_allowed")
    Cli(tmp_path / "other", agent="eve", TEAMS_STORE=taken).ok("spawn-team", ALPHA.upper())
    assert cli.refused("copy-team", ALPHA, "--to", taken, agent="lea") == (11, "already_exists")
    cli.ok("claim-task", "2", agent="mia")
    assert cli.refused("copy-team", ALPHA, "--to", address, agent="lea") == (11, "conflict")
    cli.ok("release-task", "2", agent="mia")
    cli.ok("run-agent", "sleep 60", "--detach", "--agent-id", "ann", agent="lea")
    answer = cli("copy-team", ALPHA, "--to", address, "--json", agent="lea")
    assert answer.status == 11 and "ann" in answer.error["message"]
    cli.ok("stop-agent", "ann", agent="lea")
    (cli.root / f"tasks/{ALPHA}/task-3.json").write_text('{"id": 3}')
    answer = cli("copy-team", ALPHA, "--to", address, "--json", agent="lea")
    assert answer.status == 15 and "task-3" in answer.error["message"]
    assert opening.open_store(str(tmp_path), address).teams() == []
    assert cli.ok("show-team", ALPHA)["state"] == "active"


def test_a_copy_that_was_killed_is_taken_up_again(tmp_path: Path) -> None:
    """It is killed while it waits for the table of the history, which comes after the records."""
    cli, address = worked(tmp_path / "root"), new_address()
    before = content(cli.root)
    there = Cli(tmp_path / "there", agent="eve", TEAMS_STORE=address)
    there.ok("spawn-team", "other")
    link = psycopg2.connect(server().address())
    with link.cursor() as cursor:
        cursor.execute(f'LOCK TABLE "{schema_of(address)}".history IN EXCLUSIVE MODE')
    process: subprocess.Popen[bytes] = cli.start("copy-team", ALPHA, "--to", address, agent="lea")
    until(lambda: server().psql("SELECT count(*) FROM pg_locks WHERE NOT granted").stdout != "0\n")
    process.kill()
    process.communicate()
    link.close()
    assert [team["name"] for team in there.ok("discover-teams")] == ["other"]
    assert cli.ok("copy-team", ALPHA, "--to", address, agent="lea")["copied"]["message"] == 8
    back = Cli(tmp_path / "back", agent="lea", team=ALPHA)
    assert back("copy-team", "--to", "files", "--store", address).status == 0
    assert content(back.root) == before


def test_a_copy_does_not_replace_what_was_done_since_the_team_was_opened_again(tmp_path: Path) -> None:
    """Whether the restored team is open or closed."""
    cli, address = worked(tmp_path / "root"), new_address()
    cli.ok("copy-team", ALPHA, "--to", address, agent="lea")
    restored = cli("restore-team", ALPHA, agent="lea")
    assert restored.status == 0 and "if it is open there, two agents can own one task" in restored.stderr
    cli.ok("create-task", "written here since", agent="lea")
    there = Cli(cli.root, team=ALPHA, TEAMS_STORE=address)
    there.ok("create-task", "written there", agent="lea")
    for _ in range(2):
        answer = there("copy-team", "--to", "files", "--json", agent="lea")
        assert (answer.status, answer.error["code"]) == (11, "already_exists")
        assert "written here since" in [task["title"] for task in cli.ok("get-tasks")]
        cli("close-team", agent="lea")


class Interrupted(FileStore):
    """A store in files that calls *meanwhile* before the first task is put into it."""

    def __init__(self, root: Path, meanwhile: Callable[[], object]) -> None:
        super().__init__(str(root))
        self.meanwhile = meanwhile

    def put(self, team: str, kind: Any, *record: Any) -> None:
        if kind.name == "task":
            meanwhile, self.meanwhile = self.meanwhile, lambda: None
            meanwhile()
        super().put(team, kind, *record)


def test_of_two_copies_at_once_the_later_one_wins(tmp_path: Path) -> None:
    """The earlier one is refused, and leaves alone what the later one copied."""
    cli, there = worked(tmp_path / "root"), Cli(tmp_path / "there", team=ALPHA)

    def copied_and_at_work() -> None:
        cli.ok("copy-team", ALPHA, "--to", str(there.root), agent="lea")
        there.ok("claim-task", "3", agent="mia")

    with pytest.raises(Conflict, match="another copy of alpha was begun"):
        copying.copy(cli.store(), Interrupted(there.root, copied_and_at_work), ALPHA, Caller("lea"))
    assert there.ok("show-task", "3")["owner"] == "mia"
