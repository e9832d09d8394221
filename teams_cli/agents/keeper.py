"""The keeper: a small process for each agent, which runs its client turn by turn until nothing is left to do.

After each turn it waits for the agents that its agent started. While there is unread mail, the next turn gets it. Then
the agent is done, and its caller gets the output. The environment names the agent. This module is a program: it reads
the environment, and its standard error is the agent's log.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from teams_cli import errors, processes
from teams_cli.agents import background, budgets, ending, logs, overlaps, resuming, sessions, waking
from teams_cli.agents.budgets import Budget
from teams_cli.agents.sessions import SESSION, Session
from teams_cli.agents.shell import ending as ending_of
from teams_cli.agents.turns import ClientProcess, Reason, Turn
from teams_cli.clients import output, permissions, profiles
from teams_cli.environment import SANDBOX
from teams_cli.membership import joining
from teams_cli.messages import inboxes, messages, notices
from teams_cli.messages.messages import Message
from teams_cli.store import opening, pace
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.teams import config, teams
from teams_cli.teams import presence as agents
from teams_cli.teams.config import Config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from teams_cli.records.types import Outcome, SessionState

_BEAT = 30.0
_SEARCHED = 4096
"""How many characters at the end of a failed client's output are searched for the reason."""


def main() -> None:
    """Run the agent that the environment names, unless another process does."""
    team, agent = os.environ["TEAMS_TEAM"], os.environ["TEAMS_AGENT_ID"]
    store = opening.from_environment(os.environ)
    try:
        session = sessions.take(store, team, agent)
    except errors.Conflict as taken:
        sys.stderr.write(f"{taken.message}\n")
        return
    processes.adopt_orphans(alone=True)
    user = config.load(store.root, os.environ)
    store.on_append = waking.wakes(store, user, os.environ, [])
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
        self.overlaps = overlaps.Teller(store, team, session.agent)

    def keep(self) -> None:
        """Run turns until nothing is left to do, then notify the caller."""
        try:
            self._prepare()
            self._keep()
        except BaseException as error:
            processes.end_descendants(self.session.tag)
            self._end("failed", f"its keeper failed: {type(error).__name__}: {error}", None)
            raise

    def _prepare(self) -> None:
        sessions.check_started_here(self.store, self.team, self.session)
        agents.register_process(self.store, self.team, self.agent, os.getpid())
        self.beat = min(_BEAT, teams.get(self.store, self.team).silence / 4)
        self.profile = profiles.get(self.session.harness, self.config, self.session.acp_command)
        mode = permissions.mode(self.profile, self.session.permissions)
        # In a client's sandbox no agent can be started: the keeper does it outside.
        self.confined = any(SANDBOX in word for word in mode.words)
        # Only the hash of its token is stored, so in a secure team it gets a new one.
        token = joining.renew_token(self.store, self.team, self.agent)
        self.environment = {**os.environ, **({"TEAMS_TOKEN": token} if token else {})}
        if self.session.turns and not self.session.session_known:
            self._learn_session(logs.of_turn(self.store, self.team, self.agent, self.session.turns, "out"))

    def _keep(self) -> None:
        batch = self._batch()
        if self.session.generation == 1 and not self.session.interrupted:
            batch = []  # the prompt first
        elif not batch and self.session.turns:
            ending.lapse(self.store, self.team, self.session)
            return self._revive()
        while self._work(batch):
            batch = self._batch()
            if not batch or self._guard(batch):
                self._end("completed", None, 0)
                return self._revive()

    def _work(self, batch: list[Message]) -> bool:
        """Run one turn with the messages in *batch*, and wait for the agents that it started. Returns whether to
        continue.
        """
        turn = None
        if not (reason := self._to_stop()):
            if budget := budgets.used_up(self.store, self.team, self.agent, self.session.run):
                return self._rest(budget)
            try:
                self._provide_worktree()
                turn = self._turn(batch)
            except OSError as error:
                self._end("failed", str(error), None)
                return False
            if not (turn.interrupted or turn.stopped) and output.has_failed(self.profile, turn.status, turn.printed):
                return self._failed(turn, batch)
            if answer := turn.output(self.profile):
                self.outputs.append(answer)
            reason = turn.stopped or self._wait_for_children()
        if reason:
            self._end("stopped", reason.text, turn.status if turn else None)
        return reason is None

    def _failed(self, turn: Turn, batch: list[Message]) -> bool:
        """End the session as failed, and return False. If the provider's limit is the reason, do instead what the
        setting onLimit says: end, wait, or take another client. Returns whether to continue.
        """
        last_words = logs.end_of_turn(self.store, self.team, self.agent, self._now().turns, logs.END)
        why = f"{ending_of(turn.status)}{': ' + last_words if last_words else ''}"
        # Only what the client itself says of the failure counts: its tools may have printed any error.
        errors_printed = logs.of_turn(self.store, self.team, self.agent, self._now().turns, "err", _SEARCHED)
        printed = f"{output.failure_in(self.profile, turn.printed)[-_SEARCHED:]}\n{errors_printed}"
        until = resuming.limited_until(self.store, printed) if self.profile.has_provider else None
        if until is None:
            self._end("failed", why, turn.status)
            return False
        limit = resuming.note_limit(self.store, self.team, self._now(), until, [message.number for message in batch])
        choice = resuming.on_limit(self.store, self.team)
        if choice in ("", resuming.RELEASE):
            self._end("failed", limit, turn.status)
            return False
        if choice == resuming.WAIT:
            self._wait_until_given_more()
        else:
            self._take_client(choice)
        return self._work(batch)

    def _wait_until_given_more(self) -> None:
        def over() -> bool:
            return not self._now().is_limited(self.store.now()) or self._to_stop() is not None

        self._state("waiting")
        while not over():
            pace.sleep_until(self.store, self.team, over, min(self.beat, 1.0))
            self._look()
        self._state("running")

    def _take_client(self, harness: str) -> None:
        """Continue with another client in a new session, which gets the prompt again."""
        self.profile = profiles.get(harness, self.config)
        other = {"harness": harness, "model": None, "acp_command": None}
        self.session = self.session.having(**other)
        self._change(lambda session: session.having(**other, limited_until=None))
        self._begin_anew()

    def _begin_anew(self) -> None:
        fresh: dict[str, Any] = {"session_id": sessions.new_id(), "fresh": True}
        fresh["session_known"] = output.is_preset(self.profile) or None
        self.session = self.session.having(**fresh)
        sessions.note_started_here(self.store, self.team, self.session)
        self._change(lambda session: session.having(**fresh))

    def _rest(self, budget: Budget) -> bool:
        """End the session without another turn, because a budget is used up. It ends with the last output, or as failed
        if there was no turn. Returns False.
        """
        if self._now().turns:
            self._end("completed", None, 0)
        else:
            self._end("failed", f"{budget}; raise it: {budget.raised_by}", None)
        return False

    def _guard(self, batch: list[Message]) -> bool:
        """Return whether the agent is not to take the messages in *batch*: it was paused, or the loop guard pauses it
        now. Messages that come with an interjection are always taken.
        """
        session = self._now()
        if session.pause_asked or session.interrupted:
            return not session.interrupted
        for sender in dict.fromkeys(message.from_ for message in batch):
            if reason := resuming.too_often(self.store, self.team, session, sender):
                resuming.pause_pair(self.store, self.team, self.agent, sender, reason)
                return True
        return False

    def _revive(self) -> None:
        """Start the session again if mail came at the last moment: its sender may have seen it still running."""
        mail = self._batch()
        if mail:
            team = teams.get(self.store, self.team)
            waking.wake(self.store, team, self.config, [self.agent], mail[0].from_, os.environ)

    def _to_stop(self) -> Reason | None:
        session = self._now()
        if session.ended or session.generation != self.session.generation:
            return Reason("it was treated as lost while its machine was unreachable")
        if by := session.stop_asked:
            return Reason(f"{by} stopped it")
        team = teams.get(self.store, self.team)
        if team.state == "closed":
            return Reason("the team was closed")
        member = team.find(self.agent)
        if member is None or not member.active:
            how = f"was shut down ({member.stopped_by})" if member and member.stopped_by else "left the team"
            return Reason(f"it {how}", own=True)
        return None

    def _end(self, outcome: Outcome, failure: str | None, status: int | None) -> None:
        """End the session. Its caller, if idle, is resumed to take the output."""
        output = self.outputs[-1] if self.outputs else "" if outcome == "completed" else None
        earlier = [text for text in self.outputs[:-1] if text != self.outputs[-1]]
        ending.finish(self.store, self.team, self.session, outcome, failure, output, status, earlier)
        with suppress(errors.TeamsError):
            logs.sweep(self.store, self.team, self.agent)

    def _batch(self) -> list[Message]:
        """Return the messages for the next turn in the order of arrival. Notices that the session owes are sent first,
        because some are for the agent itself.
        """
        session = self._now()
        if session.owed:
            notices.send_owed_by(self.store, self.team, SESSION.also_closed, self.agent)
            session = self._now()
        numbers = sessions.waiting_numbers(self.store, self.team, session)
        return self.store.fetch(self.team, messages.MESSAGE, numbers, [])

    def _now(self) -> Session:
        return self.store.get(self.team, SESSION, self.agent)[0]

    def _provide_worktree(self) -> None:
        """Make the worktree again if it was removed since the last turn.

        Raises:
            OSError: That is not possible; the text says why.
        """
        if self.session.worktree and not os.path.isdir(self.session.worktree):
            from teams_cli.agents import trees

            try:
                trees.provide_again(self.store, teams.get(self.store, self.team), self._now(), self.environment)
            except errors.TeamsError as problem:
                raise OSError(problem.message) from None

    def _turn(self, batch: list[Message]) -> Turn:
        if self._now().fresh and not self.session.fresh:
            self._begin_anew()
        started_with = self.session  # others may have changed the record since
        session = self._now().having(
            prompt=started_with.prompt,
            directory=started_with.directory,
            model=started_with.model,
            acp_command=started_with.acp_command,
            permissions=started_with.permissions,
            session_id=started_with.session_id,
            session_known=started_with.session_known,
        )
        client = ClientProcess(self.store, self.team, session, self.profile, batch, self.environment, self.config)
        began = teams.now(self.store)
        client.start()
        self._note_turn(batch)

        def to_stop() -> Reason | None:
            self._start_left()
            return self._to_stop()

        turn = client.wait(to_stop, self._look)
        self.overlaps.look()
        if turn.interrupted or not (turn.stopped or output.has_failed(self.profile, turn.status, turn.printed)):
            self._change(lambda session: session.having(given=None))
        self._start_left()
        self._learn_session(turn.printed)
        self._note_usage(turn, began)
        with suppress(OSError):
            logs.rotate(self.store, self.team, self.agent, session.turns + 1)
        return turn

    def _note_turn(self, batch: list[Message]) -> None:
        """Record that the turn was given the messages in *batch*, then mark them as read. In this order, a keeper that
        is killed loses no message.
        """
        last = max((message.number for message in batch), default=0)

        def change(session: Session) -> Session:
            noted = resuming.noted(session, dict.fromkeys(m.from_ for m in batch), teams.now(self.store))
            given = sorted(message.number for message in batch) or None
            return noted.having(
                turns=session.turns + 1, delivered=max(session.delivered, last), given=given, fresh=None
            )

        turn = self._change(change).turns
        inboxes.mark_read(self.store, self.team, self.agent, {message.number for message in batch}, turn)

    def _note_usage(self, turn: Turn, began: str) -> None:
        """Record the tokens and the time that the turn used. If that fails, the failure is logged, and the agent
        continues.
        """
        session = self._now()
        try:
            budgets.record_usage(
                self.store,
                self.team,
                session,
                self.profile,
                turn.printed,
                began,
                lambda took: budgets.warnings(self.store, self.team, session, took),
            )
        except errors.TeamsError as problem:
            sys.stderr.write(f"the tokens of turn {session.turns} were not counted: {problem.message}\n")

    def _learn_session(self, printed: str) -> None:
        """Record the session id that the client printed, if the client makes its ids itself."""
        session_id = output.session_id_in(self.profile, printed)
        if session_id and sessions.is_session_id(session_id):
            self.session = self.session.having(session_id=session_id, session_known=True)
            sessions.note_started_here(self.store, self.team, self.session)
            self._change(lambda s: s.having(session_id=session_id, session_known=True))

    def _start_left(self) -> None:
        if self.confined:
            background.start_left(self.store, self.team, self.agent, self.config, os.environ)

    def _look(self) -> None:
        """Record that the agent is alive, compare its work with that of others, and end the sessions of agents that it
        started if they are lost. This is called from time to time while the client runs.
        """
        agents.note_sign_of_life(self.store, self.team, self.agent, every=self.beat)
        self.overlaps.look()
        ending.children(self.store, self.team, self.agent)

    def _wait_for_children(self) -> Reason | None:
        """Wait until the agents that this agent started are done, or a message interrupts the wait. Returns the reason
        to stop the agent, or None.
        """

        def settled() -> bool:
            going = not all(child.ended for child in ending.children(self.store, self.team, self.agent))
            return not going or self._now().interrupted or self._is_asked() or self._to_stop() is not None

        waited = False
        while True:
            ending.linger(ending.children(self.store, self.team, self.agent))
            if settled():
                break
            if not waited:
                self._state("waiting")
            waited = True
            pace.sleep_until(self.store, self.team, settled, self.beat)
            self._look()
        if waited:
            self._state("running")
        return self._to_stop()

    def _is_asked(self) -> bool:
        """Whether this agent has a question, or a message from an agent that it started. If it did not answer, each
        would wait for the other forever.
        """
        own = {child.agent for child in ending.children(self.store, self.team, self.agent)}
        return any(
            message.type == "question" or (message.from_ in own and message.type != "output")
            for message in self._batch()
            if not message.only_informs
        )

    def _state(self, state: SessionState) -> None:
        self._change(lambda s: s if s.ended else s.having(state=state))

    def _change(self, change: Callable[[Session], Session]) -> Session:
        """Change the session and return it. This is possible in a closed team too, where running agents still come to
        their end.
        """
        return update(self.store, self.team, SESSION.also_closed, self.agent, change)[1]


if __name__ == "__main__":
    main()
