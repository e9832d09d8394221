"""The keeper: a small process, one for each agent, that runs its client turn by turn until nothing is left to do.

After every turn it waits for what the agent started itself; while there is unread mail, the next turn gets it; only
then is the agent done, and its output goes to its caller. It finds out from the environment whose keeper it is. This
is a front end: it reads the environment, and its standard error is the agent's log.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from teams_cli import errors, processes
from teams_cli.agents import background, budgets, ending, limited, logs, overlaps, resuming, sessions, waking
from teams_cli.agents.budgets import Budget
from teams_cli.agents.sessions import SESSION, Session
from teams_cli.agents.turns import ClientProcess, Reason, Turn
from teams_cli.clients import output, permissions, profiles
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
_SAID = 4096
"""Characters of what a failed client printed in which the reason is looked for."""


def main() -> None:
    """Keep the agent that the environment names, unless another process does."""
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
    """The keeper of one agent's session."""

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
        """Run turns until nothing is left to do, then tell the caller."""
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
        self.confined = permissions.is_confined(self.profile, self.session.permissions)
        # In a secure team, a new token: only the hash of the last one was kept.
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
        """Run one turn and wait for what it started; whether the agent goes on then, or ended otherwise."""
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
            if said := turn.output(self.profile):
                self.outputs.append(said)
            reason = turn.stopped or self._wait_for_children()
        if reason:
            self._end("stopped", reason.text, turn.status if turn else None)
        return reason is None

    def _failed(self, turn: Turn, batch: list[Message]) -> bool:
        """End as failed, unless its provider gives no more for now: then rest, wait, or take another client."""
        last_words = logs.end_of_turn(self.store, self.team, self.agent, self._now().turns, logs.END)
        why = f"{turn.ending}{': ' + last_words if last_words else ''}"
        until = limited.until(self.store, self._failure(turn)) if self.profile.has_provider else None
        if until is None:
            self._end("failed", why, turn.status)
            return False
        limit = limited.note(self.store, self.team, self._now(), until, [message.number for message in batch])
        choice = limited.on_limit(self.store, self.team)
        if choice in ("", limited.RELEASE):
            self._end("failed", limit, turn.status)
            return False
        if choice == limited.WAIT:
            self._wait_until_given_more()
        else:
            self._take_client(choice)
        return self._work(batch)

    def _wait_until_given_more(self) -> None:
        def over() -> bool:
            return not limited.is_limited(self.store, self._now()) or self._to_stop() is not None

        self._state("waiting")
        while not over():
            pace.sleep_until(self.store, self.team, over, min(self.beat, 1.0))
            self._look()
        self._state("running")

    def _take_client(self, harness: str) -> None:
        """Go on in a new session of another client, which is given the prompt anew."""
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
        """End without another turn: with what the agent has said, or, where it has not begun, as a failure."""
        if self._now().turns:
            self._end("completed", None, 0)
        else:
            self._end("failed", f"{budget}; raise it: {budget.raised_by}", None)
        return False

    def _guard(self, batch: list[Message]) -> bool:
        """Whether the loop guard has the agent rest instead of taking the batch; never after an interjection."""
        session = self._now()
        if session.pause_asked or session.interrupted:
            return not session.interrupted
        for sender in dict.fromkeys(message.from_ for message in batch):
            if reason := resuming.too_often(self.store, self.team, session, sender):
                resuming.pause_pair(self.store, self.team, self.agent, sender, reason)
                return True
        return False

    def _revive(self) -> None:
        """Start over if mail came in at the last moment: whoever sent it may have seen the session still running."""
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
        """End the session, and resume its caller, if that is idle, to take the output."""
        output = self.outputs[-1] if self.outputs else "" if outcome == "completed" else None
        earlier = [text for text in self.outputs[:-1] if text != self.outputs[-1]]
        ending.finish(self.store, self.team, self.session, outcome, failure, output, status, earlier)
        with suppress(errors.TeamsError):
            logs.sweep(self.store, self.team, self.agent)

    def _batch(self) -> list[Message]:
        """The messages that the next turn is for, in the order of arrival; what it owes the agent is among them."""
        session = self._now()
        if session.owed:
            notices.settle(self.store, self.team, SESSION.also_closed, self.agent)
            session = self._now()
        numbers = sessions.waiting_numbers(self.store, self.team, session)
        return self.store.fetch(self.team, messages.MESSAGE, numbers, [])

    def _now(self) -> Session:
        return self.store.get(self.team, SESSION, self.agent)[0]

    def _provide_worktree(self) -> None:
        """Have a worktree for the turn, where it was merged or removed since the last.

        Raises:
            OSError: There can be none; why is in the text.
        """
        if self.session.worktree and not os.path.isdir(self.session.worktree):
            from teams_cli.agents import worktrees

            try:
                worktrees.provide_again(self.store, teams.get(self.store, self.team), self._now(), self.environment)
            except errors.TeamsError as problem:
                raise OSError(problem.message) from None

    def _turn(self, batch: list[Message]) -> Turn:
        if self._now().fresh and not self.session.fresh:
            self._begin_anew()
        started_with = self.session  # what its record says by now may be another's words
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
        turn = client.wait(self._to_stop_or_start, self._look)
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
        """Note the turn with the messages that the client was given, then that they are read: a keeper that is killed
        between the two loses none.
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
        """Count what the turn took. It took that in any case, so that failing here is no failure of the agent."""
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
        """Note the session id that the client printed, if it makes one itself."""
        session_id = output.session_id_in(self.profile, printed)
        if session_id and sessions.is_session_id(session_id):
            self.session = self.session.having(session_id=session_id, session_known=True)
            sessions.note_started_here(self.store, self.team, self.session)
            self._change(lambda s: s.having(session_id=session_id, session_known=True))

    def _start_left(self) -> None:
        if self.confined:
            background.start_left(self.store, self.team, self.agent, self.config, os.environ)

    def _to_stop_or_start(self) -> Reason | None:
        self._start_left()
        return self._to_stop()

    def _look(self) -> None:
        """Now and then, while the client runs: say that the agent is alive, and look whether its children are."""
        agents.saw(self.store, self.team, self.agent, every=self.beat)
        self.overlaps.look()
        ending.children(self.store, self.team, self.agent)

    def _failure(self, turn: Turn) -> str:
        """The client's own message about a failed turn; the output of its tools may quote any error."""
        errors_printed = logs.of_turn(self.store, self.team, self.agent, self._now().turns, "err", _SAID)
        return f"{output.failure_in(self.profile, turn.printed)[-_SAID:]}\n{errors_printed}"

    def _wait_for_children(self) -> Reason | None:
        """Block until what the agent started is done, or it has to take a text at once; or why it is to stop."""

        def settled() -> bool:
            going = not all(child.ended for child in ending.children(self.store, self.team, self.agent))
            return not going or self._now().interrupted or self._is_asked() or self._to_stop() is not None

        waited = False
        while True:
            ending.linger(ending.children(self.store, self.team, self.agent))
            if settled():
                break
            waited = waited or self._state("waiting")
            pace.sleep_until(self.store, self.team, settled, self.beat)
            self._look()
        if waited:
            self._state("running")
        return self._to_stop()

    def _is_asked(self) -> bool:
        """Whether an agent that it started, or a question, waits for it: they would wait for each other without end."""
        own = {child.agent for child in ending.children(self.store, self.team, self.agent)}
        return any(
            message.type == "question" or (message.from_ in own and message.type != "output")
            for message in self._batch()
            if not message.only_informs
        )

    def _state(self, state: SessionState) -> bool:
        self._change(lambda s: s if s.ended else s.having(state=state))
        return True

    def _change(self, change: Callable[[Session], Session]) -> Session:
        """Change the session, in a closed team too: what was begun there comes to its end. As it is then."""
        return update(self.store, self.team, SESSION.also_closed, self.agent, change)[1]


if __name__ == "__main__":
    main()
