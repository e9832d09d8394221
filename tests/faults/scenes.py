"""A scene for every command that changes something: the state before, the caller, and the words of the command."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from teams_cli import closing
from teams_cli.agents.sessions import SESSION, Session
from teams_cli.clock import rfc3339
from teams_cli.membership import joining, shutdowns
from teams_cli.messages import messages
from teams_cli.questions import asking
from teams_cli.store.contract import Store, update
from teams_cli.store.files.engine import FileStore
from teams_cli.tasks import claims, plans
from teams_cli.tasks.changes import Edit, change_task
from teams_cli.teams import presence, settings
from teams_cli.teams.permission import Caller
from tests.support.cli import ALPHA, Cli, add_tasks, lapse, make_team

LEA, BOB, MIA, MAX = Caller("lea"), Caller("bob"), Caller("mia"), Caller("max")


class Scene(NamedTuple):
    """A command with its caller and what is prepared for it. TOP stands for the parent directory of the root.

    Changes to the keys in *later* may be made by the next command: the claim of an agent that is no member expires,
    answered messages become handled, and an agent that joined or completed a task, but could not be shown the next one,
    gets it when it repeats the command.
    """

    agent: str
    words: str
    prepare: Callable[[Store], object] = lambda store: None
    later: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        return self.words.partition(" ")[0]

    def typed(self, top: str) -> list[str]:
        """Return the words of the command for a root in the directory *top*."""
        return self.words.replace("TOP", top).split()


def claimed(store: Store) -> None:
    claims.claim(store, ALPHA, BOB, "1")


def both_claimed(store: Store) -> None:
    claims.claim(store, ALPHA, BOB, "1")
    claims.claim(store, ALPHA, MIA, "2")


def expired(store: Store) -> None:
    claimed(store)
    lapse(store)


def in_review(store: Store) -> None:
    change_task(store, ALPHA, LEA, "1", Edit(review_by="mia"))
    claimed(store)
    change_task(store, ALPHA, BOB, "1", Edit(status="completed", result="done"))


def to_be_reviewed(store: Store) -> None:
    change_task(store, ALPHA, LEA, "1", Edit(review_by="mia"))
    claimed(store)


def one_left(store: Store) -> None:
    claims.claim(store, ALPHA, MIA, "1")


def proposed(store: Store) -> None:
    plans.propose(store, ALPHA, BOB, "the plan")


def mail(store: Store) -> None:
    messages.send(store, ALPHA, LEA, "bob", "hello")


def asked_to_leave(store: Store) -> None:
    claimed(store)
    shutdowns.request(store, ALPHA, LEA, ["bob"], None)


def asked(store: Store) -> None:
    settings.change(store, ALPHA, LEA, "broadcast", "agents")
    asking.ask(store, ALPHA, BOB, "which?", ["mia"], 3000)


def asked_the_human(store: Store) -> None:
    settings.change(store, ALPHA, LEA, "broadcast", "human")
    asking.ask(store, ALPHA, BOB, "which?", [], 3000)


def about_to_ask(store: Store) -> None:
    settings.change(store, ALPHA, LEA, "broadcast", "human")


def closed(store: Store) -> None:
    closing.close(store, ALPHA, LEA)


def left(store: Store) -> None:
    joining.leave(store, ALPHA, BOB)


def idle(store: Store, state: str = "done") -> None:
    """Make an agent that was started and is idle."""
    joining.join(store, ALPHA, Caller("kid"), started_by="lea")
    now = rfc3339(store.now())
    kid = Session(
        agent="kid",
        caller="lea",
        run="run",
        harness="shell",
        prompt="true",
        description="true",
        directory="/",
        state=state,  # type: ignore[arg-type]
        outcome="completed",
        turns=1,
        session_id="none",
        created_at=now,
        started_at=now,
        ended_at=now,
    )
    store.create(ALPHA, SESSION, "kid", kid)


def paused(store: Store) -> None:
    idle(store, "paused")


def working(store: Store) -> None:
    """Make an agent whose keeper is this process."""
    idle(store)
    kid = store.get(ALPHA, SESSION, "kid")[0].kept_by(os.getpid(), store.host).having(state="running", outcome=None)
    update(store, ALPHA, SESSION, "kid", lambda found: kid)


def damaged(store: Store) -> None:
    mail(store)
    next(Path(store.root, f"teams/{ALPHA}/messages/0").glob("1.bob.*.json")).write_text("{")


def roster(store: Store) -> None:
    """Write a roster beside the root, whose agents are not started."""
    said = f"name: {ALPHA}\nmembers: [{{name: new, role: team-member}}]\nrules: [be short]\npages: {{api: text}}\n"
    said += "tasks: [{id: t, title: three}]\n"
    Path(store.root).with_name("roster.yaml").write_text(said)


def listed(store: Store) -> None:
    """Write a file with tasks beside the root."""
    said = "- {id: a, title: three, for: bob}\n- {id: b, title: four, blockedBy: [a]}\n"
    Path(store.root).with_name("list.yaml").write_text(said)


SCENES = {
    "a new team": Scene("lea", "spawn-team beta"),
    "coming back": Scene("bob", "join-team", left),
    "leaving": Scene("bob", "leave-team", claimed, later=("task-1",)),
    "handing over": Scene("lea", "hand-over bob"),
    "closing": Scene("lea", "close-team"),
    "opening again": Scene("lea", "restore-team", closed),
    "removing": Scene("lea", "prune --older-than 0 --yes", closed),
    "copying": Scene("lea", "copy-team --to TOP/other"),
    "a role": Scene("lea", "define-role scout --extends team-member --skill search"),
    "rules": Scene("lea", "set rules short"),
    "a default": Scene("human", "set --user broadcast agents"),
    "a task": Scene("lea", "create-task three --blocked-by 1"),
    "many tasks": Scene("lea", "create-task --from list.yaml", listed),
    "the next claim": Scene("bob", "claim-task --next", one_left),
    "a claim that was over": Scene("mia", "claim-task 1", expired),
    "giving back": Scene("bob", "release-task 1 --reason tired", claimed),
    "a note": Scene("mia", "note 1 look", claimed),
    "a heartbeat": Scene("bob", "heartbeat --note running", claimed),
    "a message with a uid": Scene("lea", "send-message bob hi --uid one"),
    "a broadcast": Scene("lea", "broadcast-message all"),
    "an announcement": Scene("bob", "announce reading"),
    "reading": Scene("bob", "read-messages", mail),
    "a reply": Scene("bob", "reply 1 yes", mail, later=("inbox of bob",)),
    "handling": Scene("bob", "ack 1", mail),
    "attention": Scene("bob", "attend", mail, later=("inbox of bob",)),
    "a question": Scene("bob", "ask-others which? --no-wait", about_to_ask),
    "an answer": Scene("mia", "answer 1 this", asked),
    "skipping": Scene("human", "skip-question 1", asked_the_human),
    "pausing": Scene("lea", "pause-agent kid", idle),
    "going on": Scene("lea", "resume-agent kid", paused),
    "stopping": Scene("lea", "stop-agent kid", idle),
    "a plan for a task": Scene("bob", "propose-plan more --task 1", claimed),
    "approving": Scene("lea", "approve-plan 1 --note go", proposed, later=("inbox of lea",)),
    "rejecting": Scene("lea", "reject-plan 1 no", proposed, later=("inbox of lea",)),
    "asking to shut down": Scene("lea", "request-shutdown bob", claimed),
    "shutting down": Scene("bob", "approve-shutdown", asked_to_leave, later=("task-1", "shutdown-1", "inbox of bob")),
    "refusing to shut down": Scene("bob", "reject-shutdown --reason busy", asked_to_leave, later=("inbox of bob",)),
    "an agreement": Scene("bob", "agree 1,2 --text both", both_claimed),
    "a page": Scene("bob", "share api text"),
    "the team of a repository": Scene("lea", "up --file roster.yaml", roster),
    "accepting": Scene("mia", "review-task 1 --accept", in_review, later=("inbox of mia",)),
    "sending back": Scene("mia", "review-task 1 --reject no", in_review, later=("inbox of mia",)),
    "a brief": Scene("bob", "brief", mail),
    "joining and a task": Scene("zed", "join-team --claim --wait 0", one_left, later=("task-2",)),
    "completing and the next task": Scene(
        "bob", "update-task 1 --status completed --result done --next --wait 0", claimed, later=("task-2",)
    ),
    "waiting for a task": Scene("bob", "wait --claim --timeout 0", one_left),
    "beginning again once": Scene("lea", "restart-agent kid --uid one", working),
    "handing in": Scene("bob", "update-task 1 --status completed --result done", to_be_reviewed),
    "handing over with more": Scene("max", "update-task 1 --owner mia --force --priority high --append more", claimed),
    "mending": Scene("lea", "doctor --fix", damaged),
}

ELSEWHERE = {
    "down": "stops, gives back and closes by the operations of these: tests/runs/test_rosters.py",
    "on": "changes nothing",
    "export": "changes nothing",
    "import": "makes tasks by the operations of these: tests/extensions/exchange",
    "run-agent": "starts a process: tests/faults/test_launching.py",
    "spawn": "starts a process: tests/faults/test_launching.py",
    "interject": "resumes a process: tests/agents",
    "land": "changes a repository: tests/extensions/landing/test_faults.py",
    "set-up-roles": "in PostgreSQL alone: tests/extensions/postgres/test_logins.py",
    "run": "makes its changes by the operations of these: tests/runs",
    "human": "at a terminal; answers as `answer` does",
    "respond-to-broadcast": "changes nothing",
    "watch": "changes nothing",
    "version": "changes nothing",
    "list-workflows": "changes nothing",
    "check-workflow": "changes nothing",
    "worktree": "changes a repository: tests/agents/test_worktrees.py",
    "mcp": "serves these",
    "serve": "serves these",
    "hook": "reads as `read-messages` does: tests/hooks",
    "install": "changes a client's settings: tests/clients/test_install.py",
    "uninstall": "changes a client's settings: tests/clients/test_install.py",
    "here": "says where a directory belongs: tests/agents/test_terminals.py",
    "open": "at a terminal: tests/agents/test_terminals.py",
    "attach": "at a terminal: tests/extensions/terminals/test_windows.py",
}


def prepared(root: Path, scene: Scene) -> Cli:
    """Make a team with a leader, three members (one of them a task-manager), two tasks, and what the scene needs."""
    cli = make_team(root, "bob", "mia", "max", roles={"max": "task-manager"})
    add_tasks(cli, "one", "two")
    store = FileStore(str(root))
    for caller in (LEA, BOB, MIA, MAX):
        presence.announce(store, ALPHA, caller, "here")
    scene.prepare(store)
    return cli
