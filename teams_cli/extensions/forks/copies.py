"""Copies of the sessions of agents. A copy answers a question while its agent continues to work."""

from __future__ import annotations

import os
import subprocess
import time

from teams_cli import processes
from teams_cli.agents import logs, sessions
from teams_cli.agents.answering import SHADOW, Shadow, run_to_end
from teams_cli.agents.seats import sitting, terminals
from teams_cli.clients import known, output, profiles
from teams_cli.clients.profiles import Profile
from teams_cli.questions import asking, questions
from teams_cli.teams import roles, teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.agents.sessions import Session
    from teams_cli.questions.questions import Question
    from teams_cli.store.contract import Store
    from teams_cli.teams.config import Config
    from teams_cli.teams.teams import Member

_WAIT_FOR_SESSION = 30.0
"""The maximum number of seconds to wait for a newly started client to begin its session."""
_PAUSE = 0.2


class Fork(Shadow):
    """A copy of a session, made by the client itself. It has the whole history of the session, and no tools. Its next
    turn answers the question.
    """

    def __init__(
        self, store: Store, question: Question, member: Member, session: Session, profile: Profile, config: Config
    ) -> None:
        super().__init__(store, question, member, os.environ)
        self.about = roles.about(member, teams.get(store, question.team_name), config)
        self.session = session
        self.profile = profile
        self.variables = profile.environment(os.environ, {SHADOW: "1", processes.TAG: self.tag})
        self.session_id = session.session_id
        if not session.session_known:  # a client that chooses its ids itself prints the id in its first turn
            printed = output.session_id_in(profile, self._printed_in_turn()) or ""
            self.session_id = printed if sessions.is_session_id(printed) else ""
        self.file = profiles.session_file(profile, self.session_id, self.variables) if self.session_id else None

    @property
    def is_possible(self) -> bool:
        """Whether the session can be copied: the client has reported its id and has written its file."""
        return bool(self.session_id) and (self.profile.session_file is None or self.file is not None)

    def _run_process(self, patience: float) -> subprocess.CompletedProcess[str]:
        values = {
            "session_id": self.session_id,
            "session_file": self.file or "",
            "profiles": known.DIRECTORY,
            "agent": self.member.agent_id,
        }
        command = profiles.fill(self.profile.fork or [], values)
        # In the middle of a turn, the client may not have written the agent's last text to the session yet.
        unfinished = ""
        if self.session.state == "running":
            unfinished = output.partial_output_in(self.profile, self._printed_in_turn()).strip()[-logs.END :]
        prompt = instruction(self.question, self.member, self.about, unfinished)
        return run_to_end(command, prompt, self.variables, self.session.directory, patience)

    def _printed_in_turn(self) -> str:
        return logs.of_turn(self.store, self.question.team_name, self.member.agent_id, self.session.turns, "out")

    def has_failed(self, done: subprocess.CompletedProcess[str]) -> bool:
        return output.has_failed(self.profile, done.returncode, done.stdout)

    def answer_in(self, done: subprocess.CompletedProcess[str]) -> str:
        return output.output_in(self.profile, done.stdout)


def instruction(question: Question, member: Member, about: str, unfinished: str) -> str:
    """Return the prompt for a copy of an agent. It has the agent's name, *about*, which describes the agent's role,
    *unfinished*, which has the agent's texts in an unfinished turn, and the question.
    """
    name = f"{member.agent_id}, {member.agent_type}" if member.agent_type else member.agent_id
    role = f"{about} " if about else ""
    last_words = f"Your last words in the present turn:\n\n{unfinished}\n\n" if unfinished else ""
    return (
        f"You are {name}, and {question.from_} asks you something while you work. "
        f"{role}This is a copy of you, made to answer. Keep "
        "your identity and your view, and use what you know from your work so far. Use no tools, answer in one "
        f"message, and do not go on with your task.\n\n{last_words}{asking.DEPTHS[question.depth]}\n\n"
        f"Question from {question.from_}:\n\n{question.question}\n\nYour answer:"
    )


def copy_of(store: Store, question: Question, member: Member, session: Session | None, config: Config) -> Fork | None:
    """Return a copy of the session of *member*, which will answer the *question*; None if no copy can be made.
    *session* is the session that `teams` started, or None. If there is none, or it can't be copied, the session of a
    client that the user started is tried.
    """
    profile = profiles.get(session.harness, config) if session else None
    if profile and profile.fork and (fork := _fork_of_started(store, question, member, profile, config)):
        return fork
    return _fork_of_client(store, question, member, config)


def _fork_of_client(store: Store, question: Question, member: Member, config: Config) -> Fork | None:
    """Return a copy of the session of a client that `teams` did not start. The client is in a terminal of this machine,
    or has reported its session. Return None if there is no session, it has no turn yet, or it can't be copied.
    """
    session = None
    terminal = terminals.find(store, question.team_name, member.agent_id)
    if terminal is None:
        session = sessions.find_reported(store, question.team_name, member.agent_id)
    elif terminal.turns and terminal.session_id and terminal.host in ("", store.host):
        in_terminal = sitting.as_session(terminal)
        if sessions.is_started_here(store, question.team_name, in_terminal):
            session = in_terminal
    profile = profiles.get(session.harness, config) if session else None
    if session is None or profile is None or not profile.fork:
        return None
    fork = Fork(store, question, member, session, profile, config)
    fork.may_be_gone = terminal is None  # nothing shows that the session still exists
    return fork if fork.is_possible else None


def _fork_of_started(store: Store, question: Question, member: Member, profile: Profile, config: Config) -> Fork | None:
    """Return a copy of the session of an agent that `teams` started; None if it can't be copied in time. If the session
    has just begun, wait until it can be copied, because the agent itself would read the question much later.
    """
    team = question.team_name
    patience = max(0.1, questions.seconds_left(store, question)) / 2  # the other half is for the answer
    deadline = time.monotonic() + min(_WAIT_FOR_SESSION, patience)
    while session := sessions.find(store, team, member.agent_id):
        if session.host not in ("", store.host) or not sessions.is_started_here(store, team, session):
            return None  # the client keeps its session on another machine
        fork = Fork(store, question, member, session, profile, config)
        if session.turns and fork.is_possible:
            return fork
        if session.ended or time.monotonic() > deadline:
            return None
        time.sleep(_PAUSE)
    return None
