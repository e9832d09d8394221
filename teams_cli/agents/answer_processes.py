"""Processes that answer a question in an agent's place, and the command that an agent named for it."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from threading import Thread

from teams_cli import processes
from teams_cli.agents import logs
from teams_cli.clients import environments

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
            return f"the fork did not answer within {self.question.timeout:g} seconds", True
        except OSError as error:
            return f"the fork can't be started: {error.strerror}", True
        finally:
            processes.end_descendants(self.tag, (("KILL", 2.0),))
        return self.answer_in(done)

    def answer_in(self, done: subprocess.CompletedProcess[str]) -> tuple[str, bool]:
        """The answer in what the process said, or why there is none; and whether it failed."""
        if self.has_failed(done):
            return f"the fork failed with exit status {done.returncode}: {done.stderr.strip()[-SHORT:]}", True
        answer = self.said(done).strip()
        return (answer, False) if answer else ("the fork gave no answer", True)

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
            return run_to_end(
                ["sh", "-c", self.member.answer or ""], json.dumps(asked), environment, self.directory, patience
            )


def run_to_end(
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
