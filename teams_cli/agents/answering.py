"""Answer questions on behalf of busy agents. While the agent continues to work, a copy of it with its whole history
answers, or a command that the agent has set. An agent with neither gets the question in its inbox.

Each question has a background process that collects its answers. This process outlives the command that asked the
question.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock

from teams_cli import errors, extensions, processes, text
from teams_cli.agents import logs, sessions, waking
from teams_cli.agents.seats import terminals
from teams_cli.agents.sessions import Session
from teams_cli.clients import environments
from teams_cli.clock import length
from teams_cli.messages import messages
from teams_cli.questions import answering, asking, questions
from teams_cli.questions.questions import Answer, Question
from teams_cli.store import opening
from teams_cli.store.contract import Store
from teams_cli.teams import config, settings, teams
from teams_cli.teams.config import Config
from teams_cli.teams.teams import Member

SHADOW = "TEAMS_SHADOW"
"""The environment variable that is set for processes inside a copy of an agent."""
SHORT = 500
"""Maximum number of characters of an answer or error that a notice shows."""
_MOST_PRINTED = 8 << 20
"""Maximum number of bytes that are read of a copy's standard output, and of its standard error."""
_RETRY_AFTER = 0.2
"""Seconds to wait before trying a busy store again."""
_DONE = "all were asked\n"
"""The last line that a process writes to its log when it has collected all answers."""


class Shadow:
    """A process that answers a question in place of an agent, such as a copy of the agent's session.

    The process gets the question and prints the answer. *may_be_gone* says that the agent's session or its directory
    may no longer exist: if so, and if the process fails, the agent itself is asked.
    """

    may_be_gone = False

    def __init__(self, store: Store, question: Question, member: Member, environ: Mapping[str, str]) -> None:
        self.store = store
        self.environ = environ
        self.question = question
        self.member = member
        self.tag = f"{question.id}.{member.agent_id}.{os.getpid()}"

    def run(self, patience: float) -> tuple[str, bool]:
        """Run the process for at most *patience* seconds, then kill everything that it started. Returns the answer and
        False, or the reason why there is no answer and True.
        """
        try:
            done = self._run_process(patience)
        except subprocess.TimeoutExpired:
            return f"the fork did not answer within {self.question.timeout:g} seconds", True
        except NotADirectoryError as error:  # of `run_to_end`
            self.may_be_gone = True
            return f"the fork can't be started: {error.strerror}, {error.filename}", True
        except OSError as error:
            return f"the fork can't be started: {error.strerror}", True
        finally:
            processes.end_descendants(self.tag, (("KILL", 2.0),))
        if self.has_failed(done):
            return f"the fork failed with exit status {done.returncode}: {done.stderr.strip()[-SHORT:]}", True
        answer = self.answer_in(done).strip()
        return (answer, False) if answer else ("the fork gave no answer", True)

    def has_failed(self, done: subprocess.CompletedProcess[str]) -> bool:
        """Whether the process failed to answer."""
        return done.returncode != 0

    def answer_in(self, done: subprocess.CompletedProcess[str]) -> str:
        """Return the answer in the output of the process."""
        return done.stdout

    def _run_process(self, patience: float) -> subprocess.CompletedProcess[str]:
        """Run the process to its end. Raises `subprocess.TimeoutExpired` after *patience* seconds."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        """Return the environment of the process. It does not name the agent, so it gives none of the agent's rights."""
        return {**environments.unnamed(self.environ), SHADOW: "1", processes.TAG: self.tag}


class AnswerCommand(Shadow):
    """A command that the agent set to answer in its place. It gets the question as JSON on its standard input."""

    def __init__(
        self, store: Store, question: Question, member: Member, environ: Mapping[str, str], session: Session | None
    ) -> None:
        super().__init__(store, question, member, environ)
        self.directory = session.directory if session else store.root
        self.turns = session.turns if session else 0

    def _run_process(self, patience: float) -> subprocess.CompletedProcess[str]:
        document = {"id": self.question.id, "from": self.question.from_, "question": self.question.question}
        document.update(agent=self.member.agent_id, depth=self.question.depth, team=self.question.team_name)
        with tempfile.NamedTemporaryFile("w", prefix="teams-", suffix=".log", errors="replace") as log:
            log.write(logs.transcript(self.store, self.question.team_name, self.member.agent_id, self.turns))
            log.flush()
            environment = {**self.environment(), "TEAMS_TRANSCRIPT": log.name}
            words = ["sh", "-c", self.member.answer or ""]  # `_ask` found a command there
            return run_to_end(words, json.dumps(document), environment, self.directory, patience)


def run_to_end(
    words: list[str], stdin: str, environment: dict[str, str], directory: str, patience: float
) -> subprocess.CompletedProcess[str]:
    """Run the command *words* until it ends, with *stdin* as its input. Returns its exit status and the beginning of
    its output. Does not wait for processes that the command leaves behind.

    Raises:
        subprocess.TimeoutExpired: The command takes longer than *patience* seconds. It is still running.
        NotADirectoryError: The directory is gone.
        OSError: The command can't be started.
    """
    if not os.path.isdir(directory):
        raise NotADirectoryError(errno.ENOTDIR, "its directory is gone", directory)
    # Files instead of pipes: a process that is left behind would keep a pipe open.
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        source.write(stdin.encode(errors="replace"))
        source.seek(0)
        process = subprocess.Popen(
            words, stdin=source, stdout=out, stderr=err, env=environment, cwd=directory, start_new_session=True
        )
        status = process.wait(patience)
        printed = []
        for file in (out, err):
            file.seek(0)
            printed.append(file.read(_MOST_PRINTED).decode(errors="replace"))
        return subprocess.CompletedProcess(words, status, *printed)


def main() -> None:
    """Collect the answers to the question that the command line names."""
    processes.adopt_orphans()
    store = opening.from_environment(os.environ)
    user = config.load(store.root, os.environ)
    store.on_append = waking.on_append(store, user, os.environ)
    team, key = os.environ["TEAMS_TEAM"], sys.argv[1]
    collect(store, team, key, user)
    logs.end(store, team, key)
    if os.path.exists(logs.path_of(store, team, key)):  # a log with errors stays; `is_cut_off` looks for the mark
        _complain(_DONE)


def start(store: Store, question: Question, environ: dict[str, str]) -> int | None:
    """Ask all members who have not answered the question yet. A member that has no session, no terminal and no command
    that answers gets the question in its inbox. A new process collects the answers of the other members. Returns the id
    of this process; None if there are no other members.
    """
    team = teams.get(store, question.team_name)
    members = [member for name in question.waiting_for if (member := team.member(name)) is not None]
    asked_by_mail = [member for member in members if _ask_without_process(store, question, member)]
    if len(asked_by_mail) == len(members):
        return None
    environment = {**environments.unnamed(environ), **store.variables, "TEAMS_TEAM": question.team_name}
    log = logs.begin(store, question.team_name, question.id)
    return processes.start_own("teams_cli.agents.answering", [question.id], environment, log)


def is_cut_off(store: Store, question: Question) -> bool:
    """Whether the process that collected the answers was killed before it was done. When it is done, it removes its
    log, or writes a mark at the end of the log.
    """
    try:
        return not logs.read(logs.path_of(store, question.team_name, question.id), len(_DONE)).endswith(_DONE)
    except OSError:  # it removed its log
        return False


def _ask_without_process(store: Store, question: Question, member: Member) -> bool:
    """Put the question into the member's inbox, and return True. Return False if the process that collects answers must
    ask instead: the member has a command that answers, or a session that may be copied, or its inbox could not be
    written.
    """
    if member.answer:
        return False
    try:
        for find_session in (sessions.find, terminals.find, sessions.find_reported):
            if find_session(store, question.team_name, member.agent_id):
                return False
        _ask_itself(store, question, member)
    except errors.TeamsError:  # the process tries it again
        return False
    return True


def collect(store: Store, team_name: str, key: str, user: Config) -> None:
    """Get the answers of all members who have not answered the question *key* yet, and record each answer at once. At
    most `max_shadows` (a setting) members are asked at the same time.
    """
    question = questions.get(store, team_name, key)
    team = teams.get(store, team_name)
    at_once = int(settings.value(team, "max_shadows"))
    writing = Lock()
    with ThreadPoolExecutor(at_once) as pool:
        for name in question.waiting_for:
            if (member := team.member(name)) is not None:
                pool.submit(_ask, store, question, member, user, writing)


def _ask(store: Store, question: Question, member: Member, user: Config, writing: Lock) -> None:
    """Get an answer from a copy of the member, or from the command that the member set, and record it. If there is
    neither, or if the copy failed and the member's session may be gone, put the question into the member's inbox.
    """
    try:
        session = sessions.find(store, question.team_name, member.agent_id)
        if session and not sessions.is_started_here(store, question.team_name, session):
            session = None  # of another machine, or changed by others: nothing in it may be run
        copy_of: Callable[..., Shadow | None] | None = extensions.provided("a copy of an agent")
        shadow = copy_of(store, question, member, session, user) if copy_of else None
        is_command_of_this_machine = member.answer_host in (None, store.host or None)
        if shadow is None and member.answer and is_command_of_this_machine:
            shadow = AnswerCommand(store, question, member, os.environ, session)
        if shadow:
            content, failed = shadow.run(max(0.1, questions.seconds_left(store, question)))
        if shadow is None or (failed and shadow.may_be_gone):
            _insist(store, question, lambda: _ask_itself(store, question, member))
            return
    except Exception as error:
        traceback.print_exc()
        content, failed = f"the fork failed: {error}", True
    try:
        _insist(store, question, lambda: _record(store, question, member.agent_id, content, failed, writing))
    except errors.TeamsError as error:  # the agent answered by itself meanwhile
        _complain(f"{member.agent_id}: {error.message}\n")


def _insist(store: Store, question: Question, write: Callable[[], None]) -> None:
    """Call *write*, retrying while the store is busy or fails. Raise the last error when the question has expired."""
    complaints = logs.Complaints()
    while True:
        try:
            return write()
        except (errors.Busy, errors.StorageFailed) as problem:
            if complaints.is_new(problem):
                _complain(f"{problem.message}\n")
            if not questions.seconds_left(store, question):
                raise
            time.sleep(_RETRY_AFTER)


def _complain(line: str) -> None:
    with suppress(OSError):
        sys.stderr.write(line)


def _record(store: Store, question: Question, name: str, content: str, failed: bool, writing: Lock) -> None:
    """Record the answer given for the agent *name*. Unless it *failed*, notify the agent of the answer, without waking
    it. *writing* is the lock that is held while the answer is stored, because all answers to a question change the same
    record.
    """
    data = content.encode(errors="replace")
    if len(data) > text.MAX_MESSAGE:
        note = f"\n[cut: the answer has {len(data)} bytes]"
        content = data[: text.MAX_MESSAGE - len(note)].decode(errors="ignore") + note
    answer = Answer(responder=name, content=content, at=teams.now(store), failed=failed or None)
    with writing:
        answering.record(store, question.team_name, question.id, answer)
    if failed:  # the agent is notified only of an answer in its name
        return
    shown_answer = content if len(content) <= SHORT else content[:SHORT] + "..."
    body = (
        f'While you were working, {question.from_} asked: "{question.question}"\nYour fork answered: "{shown_answer}"\n'
        "(For your information only.)"
    )
    messages.notify(store, question.team_name, name, body, f"{question.id}-told~{name}", "info")


def _ask_itself(store: Store, question: Question, member: Member) -> None:
    """Put the question into the inbox of the member itself. This message resumes an idle agent."""
    is_waited_for = question.asker_pid is not None  # the process of the asker runs until the answers are there
    blocked = f"{question.from_} is BLOCKED waiting for your answer. " if is_waited_for else ""
    hint = f"({blocked}Answer within {length(question.timeout)}: teams answer {question.id} TEXT)"
    body = f"{question.question}\n{hint}\n{asking.DEPTHS[question.depth]}"
    uid = f"{question.id}-asked~{member.agent_id}"
    messages.notify(
        store, question.team_name, member.agent_id, body, uid, "question", question.from_, about=question.id
    )


if __name__ == "__main__":
    main()
