"""The keeper: a small process for each agent, which runs the agent's client turn by turn until nothing is left to do.

After each turn, the keeper waits for the agents that its agent started. As long as there is unread mail, it runs
another turn, which gets the mail. Then the agent is done, and the agent's caller gets the output.

This module is a program: the environment names the agent, and standard error is the agent's log.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from teams_cli import errors, processes
from teams_cli.agents import background, budgets, ending, logs, overlaps, resuming, sessions, waking
from teams_cli.agents.sessions import SESSION, Session
from teams_cli.agents.shell import ending as ending_of
from teams_cli.agents.turns import ClientProcess, Reason, Turn
from teams_cli.clients import output, permissions, profiles
from teams_cli.environment import SANDBOX
from teams_cli.membership import joining
from teams_cli.messages import inboxes, messages, notices
from teams_cli.messages.messages import Message
from teams_cli.store import opening, pace
from teams_cli.store.contract import Store, update
from teams_cli.teams import config, teams
from teams_cli.teams import presence as agents
from teams_cli.teams.config import Config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from teams_cli.records.types import Outcome, SessionState

_BEAT = 30.0
"""Maximum seconds between two signs of life of an agent."""
_SEARCHED = 4096
"""Number of characters at the end of a failed client's output that are searched for the reason of the failure."""


def main() -> None:
    """Run the agent that the environment names, unless another process runs it already."""
    team, agent = os.environ["TEAMS_TEAM"], os.environ["TEAMS_AGENT_ID"]
    store = opening.from_environment(os.environ)
    try:
        session = sessions.take(store, team, agent)
    except errors.Conflict as taken:
        sys.stderr.write(f"{taken.message}\n")
        return
    processes.adopt_orphans(alone=True)
    user = config.load(store.root, os.environ)
    store.on_append = waking.on_append(store, user, os.environ)
    Keeper(store, team, session, user).keep()


class Keeper:
    """Runs the turns of one agent, and keeps the record of its session."""

    def __init__(self, store: Store, team: str, session: Session, user: Config) -> None:
        self.store = store
        self.team = team
        self.session = session
        self.agent = session.agent
        self.config = user
        self.outputs: list[str] = []
        self.beat = _BEAT
        self.conflict_watch = overlaps.ConflictWatch(store, team, session.agent)

    def keep(self) -> None:
        """Run turns until nothing is left to do, then end the session, which notifies the agent's caller."""
        try:
            self._prepare()
            mail = self._waiting_mail()
            if self.session.generation == 1 and not self.session.interrupted:
                mail = []  # the first turn gets only the prompt
            elif not mail and self.session.turns:  # the mail that resumed the agent is gone: no turn runs
                ending.lapse(self.store, self.team, self.session)
                self._resume_for_late_mail()
                return
            while self._take_turn(mail):
                mail = self._waiting_mail()
                if not mail or self._is_or_gets_paused(mail):
                    self._end("completed", None, 0)
                    self._resume_for_late_mail()
                    return
        except BaseException as error:
            processes.end_descendants(self.session.tag)
            self._end("failed", f"its keeper failed: {type(error).__name__}: {error}", None)
            raise

    def _prepare(self) -> None:
        """Refuse a session that was changed since this machine started it. Then record this process as the agent's
        keeper, and find what every turn needs: the profile of the client, and the environment, with the agent's token.
        """
        sessions.check_started_here(self.store, self.team, self.session)
        agents.register_process(self.store, self.team, self.agent, os.getpid())
        self.beat = min(_BEAT, teams.get(self.store, self.team).silence / 4)
        self.profile = profiles.get(self.session.harness, self.config, self.session.acp_command)
        # Only the hash of its token is stored, so in a secure team it gets a new one.
        token = joining.renew_token(self.store, self.team, self.agent)
        self.environment = {**os.environ, **({"TEAMS_TOKEN": token} if token else {})}
        if self.session.turns and not self.session.session_known:  # an earlier keeper was killed before it noted the id
            self._record_session_id(logs.of_turn(self.store, self.team, self.agent, self.session.turns, "out"))

    def _take_turn(self, mail: list[Message]) -> bool:
        """Run one turn, and wait for the agents that this agent started. If the provider refused requests, the turn may
        be run again. Returns False if the session was ended.
        """
        while (turn := self._run_turn(mail)) is not None and self._has_failed(turn):
            if not self._handle_failure(turn, mail):
                return False
        if turn is None:
            return False
        if answer := turn.output(self.profile):
            self.outputs.append(answer)
        if reason := turn.stopped or self._wait_for_children():
            self._end("stopped", reason.text, turn.status)
            return False
        return True

    def _run_turn(self, mail: list[Message]) -> Turn | None:
        """Run the client for one turn, and return the turn. Returns None if the session was ended instead."""
        if reason := self._reason_to_stop():
            self._end("stopped", reason.text, None)
            return None
        if budget := budgets.used_up(self.store, self.team, self.agent, self.session.run):
            if self._stored_session().turns:  # it worked within its budget
                self._end("completed", None, 0)
            else:
                self._end("failed", f"{budget}; raise it: {budget.raised_by}", None)
            return None
        try:
            self._provide_worktree()
            return self._run_client(mail)
        except OSError as error:
            self._end("failed", str(error), None)
            return None

    def _has_failed(self, turn: Turn) -> bool:
        if turn.interrupted or turn.stopped:  # the keeper itself ended the client
            return False
        return output.has_failed(self.profile, turn.status, turn.printed)

    def _handle_failure(self, turn: Turn, mail: list[Message]) -> bool:
        """After a failed turn, end the session and return False, or return True if the client is to get *mail* again.
        If the provider refused requests, the setting onLimit decides whether the session ends, waits, or continues with
        another client.
        """
        turns = self._stored_session().turns
        last_words = logs.end_of_turn(self.store, self.team, self.agent, turns)
        why = f"{ending_of(turn.status)}{': ' + last_words if last_words else ''}"
        # Only what the client itself says of the failure counts: its tools may have printed any error.
        errors_printed = logs.of_turn(self.store, self.team, self.agent, turns, "err", _SEARCHED)
        printed = f"{output.failure_in(self.profile, turn.printed)[-_SEARCHED:]}\n{errors_printed}"
        until = resuming.limited_until(self.store, printed) if self.profile.has_provider else None
        if until is None:
            self._end("failed", why, turn.status)
            return False
        numbers = [message.number for message in mail]
        choice, why_not = self._choice_on_limit()
        session = self._stored_session()
        limit = resuming.note_limit(self.store, self.team, session, until, numbers, choice, why_not)
        if choice in ("", resuming.RELEASE):
            self._end("failed", limit, turn.status)
            return False
        if choice == resuming.WAIT:
            self._wait_for_provider()
        else:  # any other choice is the name of a client
            self.profile = profiles.get(choice, self.config)
            other = {"harness": choice, "model": None, "acp_command": None}
            self.session = self.session.having(**other)
            self._update(lambda session: session.having(**other, limited_until=None))
            self._begin_client_session()  # the other client gets the prompt again
        return True

    def _choice_on_limit(self) -> tuple[str, str]:
        """Return the setting onLimit, and "". If the setting names a client with which this agent can't continue,
        return "", as if it were not set, and the reason.
        """
        choice = resuming.on_limit(self.store, self.team, self.session.harness)
        if choice in ("", *resuming.LIMIT_CHOICES):
            return choice, ""
        level = permissions.held_to(self.profile, self.session.permissions)
        try:
            profile = profiles.get(choice, self.config)
            profiles.refuse_missing(profile, self.config, self.environment)
            if level and (profile.modes or level != permissions.LEVELS[-1]):
                permissions.refuse_missing(profile, level)
        except errors.TeamsError as problem:
            return "", problem.message
        return choice, ""

    def _wait_for_provider(self) -> None:
        """Wait until the provider accepts requests again, or the agent has to stop."""

        def may_continue() -> bool:
            return not self._stored_session().is_limited(self.store.now()) or self._reason_to_stop() is not None

        self._set_state("waiting")
        while not may_continue():
            pace.sleep_until(self.store, self.team, may_continue, min(self.beat, 1.0))
            self._do_periodic_work()
        self._set_state("running")

    def _begin_client_session(self) -> None:
        """Record a new session for the agent's client. The next turn begins this session with the prompt."""
        fresh: dict[str, Any] = {"session_id": sessions.new_id(), "fresh": True}
        fresh["session_known"] = output.is_preset(self.profile) or None
        self.session = self.session.having(**fresh)
        sessions.note_started_here(self.store, self.team, self.session)
        self._update(lambda session: session.having(**fresh))

    def _is_or_gets_paused(self, mail: list[Message]) -> bool:
        """Whether the agent is paused, so that *mail* waits. Pauses the agent if a sender has resumed it too often."""
        session = self._stored_session()
        if session.interrupted:  # an interjection or a restart ends a pause
            return False
        if session.pause_asked:
            return True
        for sender in dict.fromkeys(message.from_ for message in mail):
            if reason := resuming.too_often(self.store, self.team, session, sender):
                resuming.pause_pair(self.store, self.team, self.agent, sender, reason)
                return True
        return False

    def _resume_for_late_mail(self) -> None:
        """Resume the agent for mail that came just before its session ended: the sender still saw the agent running."""
        mail = self._waiting_mail()
        if mail:
            team = teams.get(self.store, self.team)
            waking.wake(self.store, team, self.config, [self.agent], mail[0].from_, os.environ)

    def _reason_to_stop(self) -> Reason | None:
        """Return why the agent must end its turn and may not begin another; None if it may go on."""
        session = self._stored_session()
        if session.ended or session.generation != self.session.generation:
            return Reason("it was treated as lost while its machine was unreachable")
        if by := session.stop_asked:
            return Reason(f"{by} stopped it")
        team = teams.get(self.store, self.team)
        if team.state == "closed":
            return Reason("the team was closed")
        member = team.find(self.agent)
        if member is None or not member.active:
            if member and member.stopped_by:
                return Reason(f"it was shut down ({member.stopped_by})", own_request=True)
            return Reason("it left the team", own_request=True)
        return None

    def _end(self, outcome: Outcome, failure: str | None, status: int | None) -> None:
        """End the session. The agent's last answer is sent to its caller; an idle caller is resumed for it."""
        last_output = self.outputs[-1] if self.outputs else None
        if last_output is None and outcome == "completed":
            last_output = ""  # else the stored output of an earlier generation would be sent again
        earlier = [text for text in self.outputs[:-1] if text != last_output]
        ending.finish(self.store, self.team, self.session, outcome, failure, last_output, status, earlier)
        with suppress(errors.TeamsError):  # the session has ended all the same; a later end removes the logs
            logs.sweep(self.store, self.team, self.agent)

    def _waiting_mail(self) -> list[Message]:
        """Return the messages for the next turn. Notices of the session that were not sent yet are sent first, because
        one of them may be for this agent.
        """
        session = self._stored_session()
        if session.owed:
            notices.send_owed_by(self.store, self.team, SESSION.even_in_closed_team, self.agent)
            session = self._stored_session()
        numbers = sessions.waiting_numbers(self.store, self.team, session)
        return self.store.fetch(self.team, messages.MESSAGE, numbers, [])

    def _stored_session(self) -> Session:
        """Return the session as it is stored now. Other processes may have changed it since `self.session` was read."""
        return sessions.get(self.store, self.team, self.agent)

    def _provide_worktree(self) -> None:
        """Make the worktree again if it was removed since the last turn. Raises OSError with the reason."""
        if not self.session.worktree:
            return
        from teams_cli.agents import trees

        if not trees.is_ready(self.session.worktree):
            try:
                team, session = teams.get(self.store, self.team), self._stored_session()
                trees.provide_again(self.store, team, session, self.environment)
            except errors.TeamsError as problem:
                raise OSError(problem.message) from None

    def _run_client(self, mail: list[Message]) -> Turn:
        """Run the client for one turn, which gets the messages in *mail*, and record the turn."""
        if self._stored_session().fresh and not self.session.fresh:
            self._begin_client_session()
        checked = self.session  # others may have changed the record since it was checked
        session = self._stored_session().having(
            prompt=checked.prompt,
            directory=checked.directory,
            model=checked.model,
            acp_command=checked.acp_command,
            permissions=checked.permissions,
            session_id=checked.session_id,
            session_known=checked.session_known,
        )
        client = ClientProcess(self.store, self.team, session, self.profile, mail, self.environment, self.config)
        began = teams.now(self.store)
        client.start()
        self._record_start(mail)

        def reason_to_stop() -> Reason | None:
            self._start_requested_agents()
            return self._reason_to_stop()

        turn = client.wait(reason_to_stop, self._do_periodic_work)
        self.conflict_watch.notify_of_conflicts()
        was_cut_off = turn.stopped or self._has_failed(turn)  # then the next turn gets the mail again
        if turn.interrupted or not was_cut_off:
            self._update(lambda session: session.having(given=None))
        self._start_requested_agents()
        self._record_session_id(turn.printed)
        session = self._stored_session()
        try:
            budgets.record_usage(self.store, self.team, session, self.profile, turn.printed, began)
        except errors.TeamsError as problem:  # the agent continues all the same
            sys.stderr.write(f"the tokens of turn {session.turns} were not counted: {problem.message}\n")
        with suppress(OSError):  # the next turn makes room again
            logs.rotate(self.store, self.team, self.agent, session.turns)
        return turn

    def _record_start(self, mail: list[Message]) -> None:
        """Record that a turn gets *mail*, then mark the mail as read. In this order, a killed keeper loses no mail."""
        numbers = sorted(message.number for message in mail)
        senders = dict.fromkeys(message.from_ for message in mail)

        def with_turn(session: Session) -> Session:
            delivered = max(session.delivered, *numbers) if numbers else session.delivered
            return resuming.noted(session, senders, teams.now(self.store)).having(
                turns=session.turns + 1, delivered=delivered, given=numbers or None, fresh=None
            )

        turn = self._update(with_turn).turns
        inboxes.mark_read(self.store, self.team, self.agent, set(numbers), turn)

    def _record_session_id(self, printed: str) -> None:
        """Record the session id that the client printed, if the client chooses the id itself."""
        session_id = output.session_id_in(self.profile, printed)
        if session_id and sessions.is_session_id(session_id):
            self.session = self.session.having(session_id=session_id, session_known=True)
            sessions.note_started_here(self.store, self.team, self.session)
            self._update(lambda session: session.having(session_id=session_id, session_known=True))

    def _start_requested_agents(self) -> None:
        # In a client's sandbox no agent can be started: the keeper does it outside.
        mode = permissions.mode(self.profile, self.session.permissions)
        if any(SANDBOX in word for word in mode.words):
            background.start_requested(self.store, self.team, self.agent, self.config, os.environ)

    def _do_periodic_work(self) -> None:
        agents.note_sign_of_life(self.store, self.team, self.agent, every=self.beat)
        self.conflict_watch.notify_of_conflicts()
        ending.children(self.store, self.team, self.agent)  # ends sessions below it whose keepers have died

    def _wait_for_children(self) -> Reason | None:
        """Wait until the agents that this agent started have ended, or until a message needs this agent. Returns the
        reason for which this agent must stop, or None.
        """

        def is_asked() -> bool:
            """Whether the sender of a message may be waiting for this agent. If both waited, neither would ever
            continue.
            """
            children = {child.agent for child in ending.children(self.store, self.team, self.agent)}
            for message in self._waiting_mail():
                is_from_child = message.from_ in children and message.type != "output"  # a child with output has ended
                if not message.only_informs and (message.type == "question" or is_from_child):
                    return True
            return False

        def may_continue() -> bool:
            if all(child.ended for child in ending.children(self.store, self.team, self.agent)):
                return True
            return self._stored_session().interrupted or is_asked() or self._reason_to_stop() is not None

        has_waited = False
        while True:
            ending.linger(ending.children(self.store, self.team, self.agent))
            if may_continue():
                break
            if not has_waited:
                self._set_state("waiting")
            has_waited = True
            pace.sleep_until(self.store, self.team, may_continue, self.beat)
            self._do_periodic_work()
        if has_waited:
            self._set_state("running")
        return self._reason_to_stop()

    def _set_state(self, state: SessionState) -> None:
        self._update(lambda session: session if session.ended else session.having(state=state))

    def _update(self, change: Callable[[Session], Session]) -> Session:
        """Change the stored session and return it. This works in a closed team too, because its agents still have to
        end.
        """
        return update(self.store, self.team, SESSION.even_in_closed_team, self.agent, change)[1]


if __name__ == "__main__":
    main()
