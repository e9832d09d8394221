"""Shadow agents: a copy of each agent asked, with its whole history, answers a question while the agent works on.

A process of its own collects the answers of one question: a front end, started by whoever asks and outliving it. Agents
that can't be copied are asked through their inbox.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from threading import Thread

from teams_cli import (
    answering,
    config,
    harness,
    launching,
    logs,
    messages,
    processes,
    questions,
    sessions,
    settings,
    teams,
    text,
)
from teams_cli.clock import seconds_since
from teams_cli.errors import TeamsError
from teams_cli.questions import Answer
from teams_cli.store import opening

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

    from teams_cli.config import Config
    from teams_cli.harness import Profile
    from teams_cli.questions import Question
    from teams_cli.sessions import Session
    from teams_cli.store.contract import Store
    from teams_cli.teams import Member

MARK = "TEAMS_SHADOW"
_SHORT = 500
_TO_BEGIN = 30.0
"""How many seconds a client that was started may take to begin its session."""
_LOOK_AGAIN = 0.2
_PRINTED = 8 << 20
"""Bytes of what a copy prints that are looked at."""
_DRAINED = 0.5
"""Seconds in which what a process has printed comes through the pipe."""
_DEPTHS = {
    "low": "Response depth: LOW. Suggest a simple, minimal solution with basic means, in a few sentences.",
    "medium": "Response depth: MEDIUM. Suggest a balanced solution: good practice, not over-engineered, concise.",
    "high": "Response depth: HIGH. Suggest a thorough, comprehensive solution: architecture, tools, examples.",
}


def main() -> None:
    """Collect the answers to the question that the command line names."""
    store = opening.from_environment(os.environ)
    collect(store, os.environ["TEAMS_TEAM"], sys.argv[1], config.load(store.root))


def start(store: Store, question: Question, environ: dict[str, str]) -> None:
    """Start collecting, in a process that outlives the one who asks."""
    own = {**store.variables, "TEAMS_TEAM": question.team_name}
    clean = {key: value for key, value in environ.items() if not key.startswith(("TEAMS_", "OPENCODE_AGENT"))}
    log = logs.path_of(store, question.team_name, question.id)
    os.makedirs(os.path.dirname(log), 0o700, exist_ok=True)
    processes.start_own("teams_cli.shadows", [question.id], {**clean, **own}, log)


def collect(store: Store, team_name: str, key: str, user: Config) -> None:
    """Have all who were asked answer, at most `max_shadows` at once; each answer is recorded as it comes."""
    question = questions.load(store, team_name, key)
    team = teams.load(store, team_name)
    at_once = int(settings.value(team, "max_shadows"))
    with ThreadPoolExecutor(at_once) as pool:
        for name in question.to:
            member = team.member(name)
            if member is not None:
                pool.submit(_ask, store, question, member, user)


def _ask(store: Store, question: Question, member: Member, user: Config) -> None:
    """Have one member's shadow answer, or ask the member itself; whatever goes wrong is its answer."""
    try:
        shadow = _shadow(store, question, member, user)
        if shadow is None:
            _ask_itself(store, question, member, user)
            return
        content, failed = shadow.run(_left(store, question))
    except Exception as error:
        traceback.print_exc()
        content, failed = f"the shadow failed: {error}", True
    try:
        _record(store, question, member.agent_id, content, failed)
    except TeamsError as error:  # it answered by itself meanwhile
        sys.stderr.write(f"{member.agent_id}: {error.message}\n")


def _left(store: Store, question: Question) -> float:
    """The seconds until the question's time is over."""
    return max(0.1, -seconds_since(question.expires_at, store.now()))


def _shadow(store: Store, question: Question, member: Member, user: Config) -> Shadow | None:
    session = sessions.find(store, question.team_name, member.agent_id)
    profile = harness.find(session.harness, user) if session else None
    fork = _fork(store, question, member, profile) if profile and profile.fork else None
    here = member.answer_host in (None, store.host or None)
    return fork or (Command(store, question, member, session) if member.answer and here else None)


def _fork(store: Store, question: Question, member: Member, profile: Profile) -> Fork | None:
    """The copy of a session. One that just starts can be copied in a moment, and would hear of its inbox much later."""
    give_up = time.monotonic() + min(_TO_BEGIN, _left(store, question) / 2)
    while session := sessions.find(store, question.team_name, member.agent_id):
        fork = Fork(store, question, member, session, profile)
        elsewhere = session.host not in ("", store.host)  # where the client keeps its session
        if session.turns and fork.possible and not elsewhere:
            return fork
        if session.ended or elsewhere or time.monotonic() > give_up:
            break
        time.sleep(_LOOK_AGAIN)
    return None


class Shadow:
    """One copy of an agent: a process that is given the question and prints the answer."""

    def __init__(self, store: Store, question: Question, member: Member) -> None:
        self.store = store
        self.question = question
        self.member = member
        self.mark = f"{question.id}.{member.agent_id}.{os.getpid()}"

    def run(self, patience: float) -> tuple[str, bool]:
        """What it answered, or why it did not; and whether it failed. Ends with all it started."""
        try:
            done = self._process(patience)
        except subprocess.TimeoutExpired:
            processes.end_marked(self.mark, (("KILL", 2.0),))
            return f"the shadow did not answer within {self.question.timeout:g} seconds", True
        except OSError as error:
            return f"the shadow can't be started: {error.strerror}", True
        finally:
            processes.end_marked(self.mark, (("KILL", 2.0),))
        return self.answer_in(done)

    def answer_in(self, done: subprocess.CompletedProcess[str]) -> tuple[str, bool]:
        if done.returncode != 0:
            return f"the shadow failed with exit status {done.returncode}: {done.stderr.strip()[-_SHORT:]}", True
        answer = done.stdout.strip()
        return (answer, False) if answer else ("the shadow said nothing", True)

    def _process(self, patience: float) -> subprocess.CompletedProcess[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        """What the copy is started with: its agent's place, but none of its rights."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("TEAMS_")}
        return {**kept, MARK: "1", processes.MARK: self.mark}


class Command(Shadow):
    """A command that the agent named to answer in its place: the question as JSON on its standard input."""

    def __init__(self, store: Store, question: Question, member: Member, session: Session | None) -> None:
        super().__init__(store, question, member)
        self.directory = session.directory if session else store.root
        self.turns = session.turns if session else 0

    def _process(self, patience: float) -> subprocess.CompletedProcess[str]:
        asked = {"id": self.question.id, "from": self.question.from_, "question": self.question.question}
        asked.update(agent=self.member.agent_id, depth=self.question.depth, team=self.question.team_name)
        with tempfile.NamedTemporaryFile("w", prefix="teams-", suffix=".log", errors="replace") as log:
            log.write(logs.transcript(self.store, self.question.team_name, self.member.agent_id, self.turns))
            log.flush()
            environment = {**self.environment(), "TEAMS_TRANSCRIPT": log.name}
            return _run(
                ["sh", "-c", self.member.answer or ""], json.dumps(asked), environment, self.directory, patience
            )


class Fork(Shadow):
    """The client's own copy of its session, with the whole history, no tools, and the question as the next turn."""

    def __init__(self, store: Store, question: Question, member: Member, session: Session, profile: Profile) -> None:
        super().__init__(store, question, member)
        self.session = session
        self.profile = profile
        self.variables = harness.environment(profile, os.environ, {MARK: "1", processes.MARK: self.mark})
        self.session_id = self._session_id()
        self.file = harness.session_file(profile, self.session_id, self.variables) if self.session_id else None

    @property
    def possible(self) -> bool:
        """Whether the client has said and written down by now what the copy is made of."""
        return bool(self.session_id) and (self.profile.session_file is None or self.file is not None)

    def _process(self, patience: float) -> subprocess.CompletedProcess[str]:
        values = {"session_id": self.session_id, "session_file": self.file or "", "profiles": harness.DIRECTORY}
        words = harness.fill(self.profile.fork or [], {**values, "agent": self.member.agent_id})
        given = instruction(self.question, self.member)
        return _run(words, given, self.variables, self.session.directory, patience)

    def _session_id(self) -> str:
        """The client's session; one that makes its ids itself says it in the turn that is going on. Empty before."""
        if self.session.session_known:
            return self.session.session_id
        name, turn = self.member.agent_id, self.session.turns
        printed = logs.of_turn(self.store, self.question.team_name, name, turn, "out")
        return harness.session_id_in(self.profile, printed) or ""

    def answer_in(self, done: subprocess.CompletedProcess[str]) -> tuple[str, bool]:
        if harness.has_failed(self.profile, done.returncode, done.stdout):
            return f"the shadow failed with exit status {done.returncode}: {done.stderr.strip()[-_SHORT:]}", True
        answer = harness.output_in(self.profile, done.stdout).strip()
        return (answer, False) if answer else ("the shadow said nothing", True)


def _run(
    words: list[str], given: str, environment: dict[str, str], directory: str, patience: float
) -> subprocess.CompletedProcess[str]:
    """Run the copy to its end. What it leaves in the background is not waited for, though it holds the pipes."""
    with tempfile.TemporaryFile() as source:
        source.write(given.encode(errors="replace"))
        source.seek(0)
        process = subprocess.Popen(
            words,
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=directory,
            start_new_session=True,
        )
    assert process.stdout is not None and process.stderr is not None
    out, err = _Beginning(process.stdout), _Beginning(process.stderr)
    status = process.wait(patience)
    return subprocess.CompletedProcess(words, status, out.text(), err.text())


class _Beginning(Thread):
    """Reads all that comes through a pipe, and keeps the beginning."""

    def __init__(self, pipe: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self.pipe = pipe
        self.kept = bytearray()
        self.start()

    def run(self) -> None:
        while data := os.read(self.pipe.fileno(), 1 << 16):
            self.kept += data[: _PRINTED - len(self.kept)]

    def text(self) -> str:
        """What came until the process ended."""
        self.join(_DRAINED)
        return bytes(self.kept).decode(errors="replace")


def instruction(question: Question, member: Member) -> str:
    """What a copy of an agent is told: who it is, that it only answers, and the question."""
    known = f"You are {member.agent_id}{f', {member.agent_type}' if member.agent_type else ''}"
    return (
        f"{known}, and {question.from_} asks you something while you work. This is a copy of you, made to answer: keep "
        "your identity and your view, use what you know from your work so far, use no tools, answer in one message, "
        f"and do not go on with your task.\n\n{_DEPTHS[question.depth]}\n\n"
        f"Question from {question.from_}:\n\n{question.question}\n\nYour answer:"
    )


def _record(store: Store, question: Question, name: str, content: str, failed: bool) -> None:
    """Record the answer, and let the agent know what was said in its name; that wakes nobody."""
    content = _cut(content)
    given = Answer(responder=name, content=content, at=teams.now(store), failed=failed or None)
    answering.record(store, question.team_name, question.id, given)
    if failed:
        return
    said = content if len(content) <= _SHORT else content[:_SHORT] + "..."
    told = (
        f'While you were working, {question.from_} asked: "{question.question}"\nYour shadow answered: "{said}"\n'
        "(For your information; nothing is to be done.)"
    )
    messages.notify(store, question.team_name, name, told, f"{question.id}-told~{name}", "info")


def _cut(content: str) -> str:
    """The answer, not longer than an answer may be; what was cut off is said."""
    data = content.encode(errors="replace")
    if len(data) <= text.MAX_MESSAGE:
        return content
    note = f"\n[cut: the answer has {len(data)} bytes]"
    return data[: text.MAX_MESSAGE - len(note)].decode(errors="ignore") + note


def _ask_itself(store: Store, question: Question, member: Member, user: Config) -> None:
    """Put the question into the inbox of an agent that can't be copied, and resume it if it is idle."""
    body = f"{question.question}\n(Answer within {question.timeout:g} seconds: teams answer {question.id} TEXT)"
    uid = f"{question.id}-asked~{member.agent_id}"
    messages.notify(store, question.team_name, member.agent_id, body, uid, "question", question.from_)
    team = teams.load(store, question.team_name)
    launching.wake(store, team, user, [member.agent_id], question.from_, os.environ)


if __name__ == "__main__":
    main()
