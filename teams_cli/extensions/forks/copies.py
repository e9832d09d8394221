"""Copies of agents that answer a question: of a session, or what a command says."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from threading import Thread

from teams_cli import processes
from teams_cli.agents import logs, started_here
from teams_cli.clients import environments, known, output, profiles
from teams_cli.clients.profiles import Profile
from teams_cli.questions import asking

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import IO

    from teams_cli.agents.sessions import Session
    from teams_cli.questions.questions import Question
    from teams_cli.store.contract import Store
    from teams_cli.teams.teams import Member


SHADOW = "TEAMS_SHADOW"
SHORT = 500
_PRINTED = 8 << 20
"""Bytes of what a copy prints that are looked at."""
_DRAINED = 0.5
"""Seconds in which what a process has printed comes through the pipe."""


class Shadow:
    """One copy of an agent: a process that is given the question and prints the answer. Of one that *may be gone* it is
    not known whether there is still anything to copy: if it fails, the agent itself is asked.
    """

    may_be_gone = False

    def __init__(self, store: Store, question: Question, member: Member, environ: Mapping[str, str]) -> None:
        self.store = store
        self.environ = environ
        self.question = question
        self.member = member
        self.tag = f"{question.id}.{member.agent_id}.{os.getpid()}"

    def run(self, patience: float) -> tuple[str, bool]:
        """What it answered, or why it did not; and whether it failed. Ends with all it started."""
        try:
            done = self._process(patience)
        except subprocess.TimeoutExpired:
            return f"the shadow did not answer within {self.question.timeout:g} seconds", True
        except OSError as error:
            return f"the shadow can't be started: {error.strerror}", True
        finally:
            processes.end_descendants(self.tag, (("KILL", 2.0),))
        return self.answer_in(done)

    def answer_in(self, done: subprocess.CompletedProcess[str]) -> tuple[str, bool]:
        """The answer in what the process said, or why there is none; and whether it failed."""
        if self.has_failed(done):
            return f"the shadow failed with exit status {done.returncode}: {done.stderr.strip()[-SHORT:]}", True
        answer = self.said(done).strip()
        return (answer, False) if answer else ("the shadow said nothing", True)

    def has_failed(self, done: subprocess.CompletedProcess[str]) -> bool:
        """Whether the process could not answer."""
        return done.returncode != 0

    def said(self, done: subprocess.CompletedProcess[str]) -> str:
        """The answer in what it printed."""
        return done.stdout

    def _process(self, patience: float) -> subprocess.CompletedProcess[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        """What the copy is started with: its agent's place, but none of its rights."""
        return {**environments.unnamed(self.environ), SHADOW: "1", processes.TAG: self.tag}


class AnswerCommand(Shadow):
    """A command that the agent named to answer in its place: the question as JSON on its standard input."""

    def __init__(
        self, store: Store, question: Question, member: Member, environ: Mapping[str, str], session: Session | None
    ) -> None:
        super().__init__(store, question, member, environ)
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

    def __init__(
        self,
        store: Store,
        question: Question,
        member: Member,
        environ: Mapping[str, str],
        session: Session,
        profile: Profile,
        about: str,
    ) -> None:
        super().__init__(store, question, member, environ)
        self.about = about
        self.session = session
        self.profile = profile
        self.variables = profile.environment(environ, {SHADOW: "1", processes.TAG: self.tag})
        self.session_id = self._session_id()
        self.file = profiles.session_file(profile, self.session_id, self.variables) if self.session_id else None

    @property
    def possible(self) -> bool:
        """Whether the client has said and written down by now what the copy is made of."""
        return bool(self.session_id) and (self.profile.session_file is None or self.file is not None)

    def _process(self, patience: float) -> subprocess.CompletedProcess[str]:
        values = {"session_id": self.session_id, "session_file": self.file or "", "profiles": known.DIRECTORY}
        words = profiles.fill(self.profile.fork or [], {**values, "agent": self.member.agent_id})
        given = instruction(self.question, self.member, self.about, self._unfinished())
        return _run(words, given, self.variables, self.session.directory, patience)

    def _unfinished(self) -> str:
        """What the agent has said in the turn that is going on: its client may not have written that down yet."""
        if self.session.state != "running":
            return ""
        printed = logs.of_turn(self.store, self.question.team_name, self.member.agent_id, self.session.turns, "out")
        return output.said_in(self.profile, printed).strip()[-logs.END :]

    def _session_id(self) -> str:
        """The client's session; one that makes its ids itself says it in the turn that is going on. Empty before."""
        if self.session.session_known:
            return self.session.session_id
        name, turn = self.member.agent_id, self.session.turns
        printed = logs.of_turn(self.store, self.question.team_name, name, turn, "out")
        found = output.session_id_in(self.profile, printed) or ""
        return found if started_here.is_session_id(found) else ""

    def has_failed(self, done: subprocess.CompletedProcess[str]) -> bool:
        return output.has_failed(self.profile, done.returncode, done.stdout)

    def said(self, done: subprocess.CompletedProcess[str]) -> str:
        return output.output_in(self.profile, done.stdout)


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


def instruction(question: Question, member: Member, about: str = "", unfinished: str = "") -> str:
    """What a copy of an agent is told: who it is and what its role is *about*, that it only answers, the question; and
    what it said in its *unfinished* turn.
    """
    going = f"The last that you said in the turn that is going on:\n\n{unfinished}\n\n" if unfinished else ""
    named = f"You are {member.agent_id}{f', {member.agent_type}' if member.agent_type else ''}"
    asked = f"{named}, and {question.from_} asks you something while you work."
    return (
        f"{asked} {f'{about} ' if about else ''}This is a copy of you, made to answer: keep "
        "your identity and your view, use what you know from your work so far, use no tools, answer in one message, "
        f"and do not go on with your task.\n\n{going}{asking.how_deep(question.depth)}\n\n"
        f"Question from {question.from_}:\n\n{question.question}\n\nYour answer:"
    )
