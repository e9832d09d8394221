"""The commands of pages, notes, reviews, landings, settings and whole teams over connections that break after any
number of bytes: what was answered for is there, once, and nothing that was done is refused. TESTS_CUTS says how many
break.
"""

from __future__ import annotations

import os
import random
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from teams_cli.agents import sessions
from teams_cli.agents.sessions import SESSION
from teams_cli.cli.parse import parse
from teams_cli.commands.call import Call
from teams_cli.environment import SANDBOX
from teams_cli.errors import Busy
from teams_cli.extensions.postgres.engine import PostgresStore
from teams_cli.messages import inboxes
from teams_cli.messages.messages import MESSAGE
from teams_cli.store.contract import Store
from teams_cli.store.files.engine import FileStore
from teams_cli.tasks import landings, tasks
from teams_cli.teams import config, pages, teams
from teams_cli.teams.permission import Caller
from tests.conftest import new_address, server
from tests.support.cli import ALPHA, TIMEOUT, make_team
from tests.support.postgres import schema_of
from tests.support.wire import Wire

pytestmark = pytest.mark.slow

WORKERS, LONGEST = 6, 1_000_000
CUTS = int(os.environ.get("TESTS_CUTS", "60"))
GLOBAL = ("store", "root", "agent", "team", "as_json")
SETTINGS = (
    "staleAfterSeconds",
    "checkTimeout",
    "ack_timeout",
    "max_broadcasts_per_agent",
    "budget",
    "max_resumes_per_hour",
)


@pytest.fixture
def wire() -> Iterator[Wire]:
    made = Wire(f"{server().directory}/.s.PGSQL.5432")
    yield made
    made.close()


def git(where: Path, *words: str) -> None:
    who = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    subprocess.run(["git", "-C", str(where), *who, *words], check=True, capture_output=True, timeout=TIMEOUT)


class Worker(threading.Thread):
    """One member over a wire that breaks, in a worktree of its own; it notes what was answered for."""

    def __init__(self, nth: int, store: Store, wire: Wire, place: Path) -> None:
        super().__init__(daemon=True)
        self.name, self.setting = f"a{nth}", SETTINGS[nth]
        self.store, self.wire, self.place = store, wire, place
        self.chance = random.Random(nth)
        self.turn = self.unknown = 0
        self.board = ""
        self.pages: dict[tuple[str, int], str] = {}
        self.noted: list[str] = []
        self.replied: dict[str, int] = {}
        self.begun: list[int] = []
        self.values: list[int] = []
        self.claimed: list[tuple[str, int]] = []
        self.reviewed: dict[str, str] = {}
        self.landings: dict[str, str] = {}
        self.teams: dict[str, dict[str, Any]] = {}
        self.failure: Exception | None = None

    @property
    def count(self) -> int:
        """How many changes were answered for."""
        told = (self.pages, self.noted, self.replied, self.begun, self.values, self.claimed, self.reviewed)
        return sum(map(len, told)) + len(self.landings) + sum(len(known) for known in self.teams.values())

    def run(self) -> None:
        ways = (self.share, self.note, self.reply, self.restart, self.set, self.review, self.land, self.lead)
        try:
            while self.wire.cuts < CUTS:
                self.turn += 1
                try:
                    self.chance.choice(ways)(f"{self.name}-{self.turn}")
                except Busy:  # also where it is not known whether it was done
                    self.unknown += 1
        except Exception as failure:
            self.failure = failure

    def say(self, *words: str, by: str = "", team: str = ALPHA) -> Any:
        """What the command answers."""
        found = parse(list(words))
        assert found, words
        values = {name: value for name, value in found[1].items() if name not in GLOBAL}
        own = config.load(str(self.place), {})
        caller = Caller(by or self.name, config=own)
        environ = {SANDBOX: "1"}  # nothing is started beside it
        return found[0].answer(Call(self.store, own, caller, team, environ=environ, directory=str(self.place)), values)

    def share(self, word: str) -> None:
        key = self.chance.choice(["common", self.name])
        page = self.say("share", key, word)
        self.pages[key, page["version"]] = word

    def note(self, word: str) -> None:
        if len(self.noted) % 30 == 0:  # a task takes a hundred notes
            self.board = str(self.say("create-task", f"board {word}", by="lea")["id"])
        appends = self.chance.random() < 0.5
        self.say(*(["update-task", self.board, "--append", word] if appends else ["note", self.board, word]), by="lea")
        self.noted.append(word)

    def reply(self, word: str) -> None:
        asked = self.say("send-message", self.name, f"{word}?", by="lea")
        self.say("reply", asked["id"], word)
        self.replied[word] = asked["number"]

    def restart(self, word: str) -> None:
        self.begun.append(self.say("restart-agent", f"kid-{self.name}", by="lea")["number"])

    def set(self, word: str) -> None:
        value = 1000 + self.turn
        self.values.append(value)  # the last of them may have been set or not
        self.say("set", self.setting, str(value), by="lea")

    def review(self, word: str) -> None:
        key = self.claim(word, "--review-by", "mia")
        self.say("update-task", key, "--status", "completed", "--result", word)
        accepted = self.chance.random() < 0.5
        self.say("review-task", key, *(["--accept"] if accepted else ["--reject", word]), by="mia")
        self.reviewed[key] = "completed" if accepted else "in_progress"

    def claim(self, word: str, *more: str) -> str:
        key = str(self.say("create-task", word, *more, by="lea")["id"])
        self.claimed.append((key, self.say("claim-task", key)["claim"]))
        return key

    def land(self, word: str) -> None:
        key = self.claim(word)
        self.landings[self.say("land", key)["id"]] = key

    def lead(self, word: str) -> None:
        """A team from its beginning to its copy elsewhere."""
        team, ann = f"t-{word}", f"ann-{word}"
        self.say("spawn-team", team, by=ann)
        known: dict[str, Any] = {"made": True}
        self.teams[team] = known
        self.say("join-team", team, by="ben", team=team)
        known["sent"] = self.say("send-message", "ben", word, by=ann, team=team)["number"]
        self.say("hand-over", "ben", by=ann, team=team)
        known["leader"] = "ben"
        self.say("close-team", by="ben", team=team)
        known["state"] = "closed"
        self.say("copy-team", "--to", str(self.place.parent / "copies" / team), by="ben", team=team)
        known["copied"] = True


def test_what_commands_answer_for_is_there_once(wire: Wire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = new_address()
    monkeypatch.setenv("TEAMS_STORE", address)
    names = [f"a{n}" for n in range(WORKERS)]
    store = prepared(tmp_path, names)
    far = f"postgresql://teams@127.0.0.1:{wire.port}/postgres?sslmode=disable&schema={schema_of(address)}"
    wire.fray(random.Random(12), LONGEST)
    workers = [
        Worker(n, PostgresStore(far, str(tmp_path / f"root-{n}"), patience=60), wire, tmp_path / name)
        for n, name in enumerate(names)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.failure for worker in workers] == [None] * WORKERS
    Call(store, config.load(str(tmp_path), {}), Caller("lea"), ALPHA).settle()
    check_words(store, workers)
    check_tasks(store, workers)
    for worker in workers:
        for team, known in worker.teams.items():
            check_team(store, tmp_path / "copies" / team, team, known)
    done = sum(worker.count for worker in workers)
    print(f"{wire.cuts} cuts, {done} acknowledged changes: 0 lost, 0 made twice, 0 numbers given twice")


def prepared(place: Path, names: list[str]) -> Store:
    """A team, a repository with a worktree for each member, and an agent at work for each."""
    cli = make_team(place / "root", *names, "mia", *(f"kid-{name}" for name in names))
    main = place / "main"
    main.mkdir()
    git(main, "init", "-q", "-b", "trunk")
    git(main, "commit", "-q", "--allow-empty", "-m", "first")
    store = cli.store()
    for name in names:
        git(main, "worktree", "add", "-q", "-b", f"{name}s", str(place / name))
        git(place / name, "commit", "-q", "--allow-empty", "-m", name)
        kid = sessions.of_client(f"kid-{name}", "shell", name, "/", teams.now(store))
        store.create(ALPHA, SESSION, kid.agent, kid.kept_by(os.getpid(), store.host).having(state="running"))
    return store


def check_words(store: Store, workers: list[Worker]) -> None:
    """Pages, notes, replies, restarts and settings."""
    told = [entry for worker in workers for entry in worker.pages]
    assert len(told) == len(set(told)), "a version was given twice"
    newest = {page.key: page for page in pages.all_of(store, ALPHA, [])}
    for worker in workers:
        for (key, version), said in worker.pages.items():
            assert newest[key].version > version or (newest[key].version, newest[key].text) == (version, said)
        assert team_setting(store, worker.setting) in [None, *worker.values]
    log = {message.number: message for message in store.read(ALPHA, MESSAGE, None, 0, [])}
    assert sorted(log) == list(range(1, len(log) + 1))
    said_of = Counter(message.message for message in log.values() if message.from_.startswith("a"))
    assert not [body for body, times in said_of.items() if times > 1 and "-" in body], "a reply was stored twice"
    for worker in workers:
        inbox = inboxes.load(store, ALPHA, worker.name)
        for body, number in worker.replied.items():
            assert said_of[body] == 1 and inboxes.is_handled(inbox, number), body
        kid = sessions.get(store, ALPHA, f"kid-{worker.name}")
        assert kid.interjected >= max(worker.begun, default=0)
        assert all(log[number].to == kid.agent for number in worker.begun)


def team_setting(store: Store, key: str) -> Any:
    return teams.get(store, ALPHA).settings.get(key)


def check_tasks(store: Store, workers: list[Worker]) -> None:
    """Notes on tasks, claims, reviews and landings."""
    found = {task.id: task for task in tasks.all_of(store, ALPHA, [])}
    noted = Counter(note.added for task in found.values() for note in task.notes if note.what == "note")
    noted += Counter(word for task in found.values() for word in (task.description or "").split())
    for worker in workers:
        assert {word: noted[word] for word in worker.noted} == dict.fromkeys(worker.noted, 1)
        assert {key: found[key].status for key in worker.reviewed} == worker.reviewed
        assert {key: landings.get(store, ALPHA, key).task for key in worker.landings} == worker.landings
    claimed = [claim for worker in workers for claim in worker.claimed]
    assert len(set(claimed)) == len(claimed)
    queued = Counter(landing.task for landing in landings.all_of(store, ALPHA, []))
    assert max(queued.values(), default=1) == 1, "a landing was queued twice"


def check_team(store: Store, copy: Path, team: str, known: dict[str, Any]) -> None:
    """A team that a worker made, as far as that was answered for."""
    here = teams.get(store, team)
    assert here.leader in (known.get("leader"), "ben") or "leader" not in known
    assert here.state == known.get("state", here.state)
    log = store.read(team, MESSAGE, None, 0, [])
    assert "sent" not in known or known["sent"] in [message.number for message in log]
    if known.get("copied"):
        there = FileStore(str(copy))
        assert (teams.get(there, team).leader, teams.get(there, team).state) == ("ben", "closed")
        assert there.read(team, MESSAGE, None, 0, []) == log
