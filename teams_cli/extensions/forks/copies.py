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
    from collections.abc import Mapping

    from teams_cli.agents.sessions import Session
    from teams_cli.questions.questions import Question
    from teams_cli.store.contract import Store
    from teams_cli.teams.config import Config
    from teams_cli.teams.teams import Member

_TO_BEGIN = 30.0
"""The most seconds that a copy waits for a client that has just started to begin its session."""
_LOOK_AGAIN = 0.2


class Fork(Shadow):
    """A copy that the client makes of its session. It has the whole history and no tools, and its next turn is the
    question.
    """

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
        """Whether the client has reported its session and written the file that a copy needs."""
        return bool(self.session_id) and (self.profile.session_file is None or self.file is not None)

    def _process(self, patience: float) -> subprocess.CompletedProcess[str]:
        values = {"session_id": self.session_id, "session_file": self.file or "", "profiles": known.DIRECTORY}
        words = profiles.fill(self.profile.fork or [], {**values, "agent": self.member.agent_id})
        given = instruction(self.question, self.member, self.about, self._unfinished())
        return run_to_end(words, given, self.variables, self.session.directory, patience)

    def _unfinished(self) -> str:
        """Return the agent's last text in its current turn, which its client may not have written to the session yet;
        "" between turns.
        """
        if self.session.state != "running":
            return ""
        printed = logs.of_turn(self.store, self.question.team_name, self.member.agent_id, self.session.turns, "out")
        return output.said_in(self.profile, printed).strip()[-logs.END :]

    def _session_id(self) -> str:
        """Return the id of the client's session. A client that chooses its own ids prints the id in its first turn;
        return "" until then.
        """
        if self.session.session_known:
            return self.session.session_id
        name, turn = self.member.agent_id, self.session.turns
        printed = logs.of_turn(self.store, self.question.team_name, name, turn, "out")
        session_id = output.session_id_in(self.profile, printed) or ""
        return session_id if sessions.is_session_id(session_id) else ""

    def has_failed(self, done: subprocess.CompletedProcess[str]) -> bool:
        return output.has_failed(self.profile, done.returncode, done.stdout)

    def said(self, done: subprocess.CompletedProcess[str]) -> str:
        return output.output_in(self.profile, done.stdout)


def instruction(question: Question, member: Member, about: str = "", unfinished: str = "") -> str:
    """Return the prompt for a copy of an agent. It has the agent's name and role, its texts in the *unfinished* turn,
    and the question.
    """
    going = f"Your last words in the present turn:\n\n{unfinished}\n\n" if unfinished else ""
    named = f"You are {member.agent_id}{f', {member.agent_type}' if member.agent_type else ''}"
    asked = f"{named}, and {question.from_} asks you something while you work."
    return (
        f"{asked} {f'{about} ' if about else ''}This is a copy of you, made to answer. Keep "
        "your identity and your view, and use what you know from your work so far. Use no tools, answer in one "
        f"message, and do not go on with your task.\n\n{going}{asking.how_deep(question.depth)}\n\n"
        f"Question from {question.from_}:\n\n{question.question}\n\nYour answer:"
    )


def copy_of(store: Store, question: Question, member: Member, session: Session | None, user: Config) -> Fork | None:
    """Return a copy of the agent's session, whether `teams` or the user started the client on this machine; None if no
    copy can be made.
    """
    profile = profiles.get(session.harness, user) if session else None
    fork = _fork(store, question, member, profile, user) if profile and profile.fork else None
    return fork or _fork_of_client(store, question, member, user)


def _fork_of_client(store: Store, question: Question, member: Member, user: Config) -> Fork | None:
    """Return a copy of the session of a client that `teams` did not start, in a terminal of this machine or without
    one. Return None if there is no such session, or it has no turn yet.
    """
    terminal = terminals.find(store, question.team_name, member.agent_id)
    if terminal is None:
        session = sessions.find_told(store, question.team_name, member.agent_id)
    elif terminal.turns and terminal.session_id and terminal.host in ("", store.host):
        session = sitting.as_session(terminal)
        session = session if sessions.is_started_here(store, question.team_name, session) else None
    else:
        session = None
    profile = profiles.get(session.harness, user) if session else None
    if session is None or profile is None or not profile.fork:
        return None
    fork = Fork(store, question, member, os.environ, session, profile, _about(store, question, member, user))
    fork.may_be_gone = terminal is None
    return fork if fork.possible else None


def _fork(store: Store, question: Question, member: Member, profile: Profile, user: Config) -> Fork | None:
    """Return a copy of a session of an agent that `teams` started, or None if it can't be copied. Wait for a session
    that has just started, because its agent would read its inbox much later.
    """
    give_up = time.monotonic() + min(_TO_BEGIN, max(0.1, questions.seconds_left(store, question)) / 2)
    while session := sessions.find(store, question.team_name, member.agent_id):
        fork = Fork(store, question, member, os.environ, session, profile, _about(store, question, member, user))
        elsewhere = session.host not in ("", store.host)  # the client keeps its session there
        elsewhere = elsewhere or not sessions.is_started_here(store, question.team_name, session)
        if session.turns and fork.possible and not elsewhere:
            return fork
        if session.ended or elsewhere or time.monotonic() > give_up:
            break
        time.sleep(_LOOK_AGAIN)
    return None


def _about(store: Store, question: Question, member: Member, user: Config) -> str:
    return roles.about(member, teams.get(store, question.team_name), user)
