"""Wake agents: resume idle agents that have mail, wake and interrupt clients in terminals, and wait for agents that are
at work.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime

from teams_cli import errors
from teams_cli.agents import background, ending, resuming, sessions
from teams_cli.agents.background import WAKER, start_keeper
from teams_cli.agents.seats import channels, sitting, terminals
from teams_cli.agents.seats.terminals import TERMINAL, Terminal, Waking
from teams_cli.agents.sessions import Session
from teams_cli.clients import known
from teams_cli.clients.seats import GONE, IDLE, PERMISSION
from teams_cli.clock import seconds_since
from teams_cli.messages import inboxes, messages
from teams_cli.messages.messages import MESSAGE, Message
from teams_cli.names import HUMAN, SYSTEM
from teams_cli.store import opening, pace
from teams_cli.store.contract import Store, update
from teams_cli.teams import config, history, settings, teams
from teams_cli.teams.config import Config
from teams_cli.teams.teams import Team

_WAKE_AGAIN_AFTER = (1, 4, 20)
"""Multiples of the setting `wakeAgainAfter` after which a client that did not read its messages is woken again."""
_RETRY_AFTER, _MAX_RETRIES = 1.0, 10
"""If nothing could wake a client: the seconds until the next attempt, and the maximum number of attempts. An attempt
may fail because the client's listener, which starts again after each turn, is not there yet.
"""
_MAX_WAKINGS = 500
"""Maximum number of wakings that are recorded of a terminal; older ones are dropped."""
_HOUR = 3600.0


def wake(
    store: Store,
    team: Team,
    config: Config | None,
    recipients: list[str],
    sender: str,
    environ: Mapping[str, str],
    for_output: bool = False,
) -> None:
    """After a message was stored, resume the idle agents among its *recipients*. *for_output* says that the message is
    the output of an agent. Each machine has a background process, the waker. The waker of another machine resumes the
    agents there, and the waker of this machine wakes the clients in terminals here.
    """
    background.start_for_terminals(store, team.name, environ)
    for agent in recipients:
        session = ending.current(store, team.name, agent) if team.member(agent) else None
        if session is None or not session.ended or session.host not in ("", store.host):
            continue
        if not sessions.waiting_numbers(store, team.name, session):
            continue
        if reopened := resuming.reopen(store, team.name, agent, sender, for_output):
            start_keeper(store, team.name, reopened, config, environ)


def wake_all_with_mail(store: Store, team: Team, config: Config | None, environ: Mapping[str, str]) -> None:
    """Resume every idle agent with mail, for example after a budget was raised."""
    idle = [session for session, _ in store.scan(team.name, sessions.SESSION, []) if session.ended]
    for session in idle:
        numbers = sessions.waiting_numbers(store, team.name, session)
        for oldest in store.fetch(team.name, MESSAGE, numbers[:1], []):  # none if no mail waits
            wake(store, team, config, [session.agent], oldest.from_, environ)


def on_append(
    store: Store, config: Config | None, environ: Mapping[str, str]
) -> Callable[[str, Sequence[str], Message, str], None]:
    """Return a function for the store to call after it appended a message. The function resumes the idle recipients of
    the message. It ignores failures, because nobody waits for an answer of this process, and the message stays sent.
    """

    def wake_recipients(team_name: str, recipients: Sequence[str], message: Message, by: str) -> None:
        with suppress(errors.TeamsError):
            team = teams.get(store, team_name)
            wake(store, team, config, list(recipients), by, environ, message.type == "output")

    return wake_recipients


def wait_for_run(store: Store, team: str, run: str, look: Callable[[list[Session]], None]) -> list[Session]:
    """Wait until all sessions of a run are done, and return them. Sessions of agents that are started meanwhile are
    included. *look* is called with the sessions at every change.
    """
    of_run: list[Session] = []

    def is_done() -> bool:
        nonlocal of_run
        of_run = ending.of_run(store, team, run)
        look(of_run)
        return all(session.ended for session in of_run)

    while True:
        pace.sleep_until(store, team, is_done, None)
        ending.linger(of_run)
        if is_done():  # else a keeper resumed an agent just before it exited
            return of_run


def wait_for(store: Store, team: str, agent: str) -> Session:
    """Wait until the agent, which `teams` started, has done all its work, and return its session."""

    def is_done() -> bool:
        session = ending.current(store, team, agent)
        return session is None or session.ended

    pace.sleep_until(store, team, is_done, None)
    return sessions.get(store, team, agent)


def _is_due(terminal: Terminal, state: str, unread: Sequence[int], now: datetime, wake_again_after: float) -> bool:
    """Whether to wake the client now. A client that does not read its mail is woken again for the same mail only after
    a while, and only a few times.
    """
    if state != IDLE or not unread:
        return False
    if not terminal.woken_at or _is_new_mail(terminal, unread):
        return True
    seconds = seconds_since(terminal.woken_at, now)
    if _is_retried(terminal):
        return seconds >= _RETRY_AFTER
    if terminal.wakes > len(_WAKE_AGAIN_AFTER):
        return False
    # A new client of the agent has no wakes yet. It waits as after its first.
    return seconds >= wake_again_after * _WAKE_AGAIN_AFTER[max(terminal.wakes, 1) - 1]


def _is_new_mail(terminal: Terminal, unread: Sequence[int]) -> bool:
    """Whether all *unread* messages came after the client was last woken."""
    return min(unread) > terminal.woken_to


def _is_retried(terminal: Terminal) -> bool:
    """Whether the last attempts to wake the client failed, but so few of them that the next attempt follows soon."""
    return 0 < terminal.unheard < _MAX_RETRIES


def _unreached(
    terminal: Terminal, state: str, unread: Sequence[int], now: datetime, wake_again_after: float
) -> list[int]:
    """Return the numbers of those *unread* messages whose senders must be notified now, because the client is gone or
    was woken in vain.
    """
    unreported = [number for number in unread if number > terminal.told_to]
    if state == GONE:
        return unreported
    if not terminal.woken_at or terminal.wakes <= len(_WAKE_AGAIN_AFTER):  # it is still to be woken
        return []
    if seconds_since(terminal.woken_at, now) < wake_again_after:  # it may still read them
        return []
    return [number for number in unreported if number <= terminal.woken_to]


def _note_waking(
    store: Store, team: str, terminal: Terminal, unread: Sequence[int], senders: Sequence[str]
) -> Terminal | None:
    """Record that the client is woken for the *unread* messages, and return its changed terminal. Return None if
    another process has just woken the client, or if the client's state has changed.
    """
    now = teams.now(store)
    wakings = [*terminal.wakings, *(Waking(at=now, by=name) for name in senders)][-_MAX_WAKINGS:]

    def change(current: Terminal) -> Terminal:
        if (current.woken_at, current.wakes, current.state) != (terminal.woken_at, terminal.wakes, terminal.state):
            return current
        if not unread or _is_new_mail(current, unread):  # an interrupted client may have read its mail just now
            counts = {"wakes": 1, "unheard": 0}
        elif _is_retried(current):  # the client did not hear the last waking, so this waking does not count again
            counts = {}
        else:
            counts = {"wakes": current.wakes + 1}
        return current.having(woken_to=max(current.woken_to, *unread, 0), woken_at=now, wakings=wakings, **counts)

    before, after = update(store, team, TERMINAL.even_in_closed_team, terminal.agent, change)
    return None if before is after else after


def _note_outcome(store: Store, team: str, agent: str, has_taken_line: bool) -> None:
    """Record whether the client took the line that wakes it. The field `unheard` counts the failed attempts."""

    def change(terminal: Terminal) -> Terminal:
        unheard = 0 if has_taken_line else terminal.unheard + 1
        return terminal if terminal.unheard == unheard else terminal.having(unheard=unheard)

    update(store, team, TERMINAL.even_in_closed_team, agent, change)


def way_to_interrupt(store: Store, team: str, terminal: Terminal, state: str) -> str:
    """Return the channel over which the client, which is in this *state*, can be interrupted. Raises WrongState with
    the reason if there is none.
    """
    seat = known.get(terminal.client).seat
    hint = f"Send it a message: teams send-message {terminal.agent} …; it is shown at its next tool call, or when idle."
    if seat is None or not seat.stops:
        raise errors.WrongState(f"{terminal.agent} can't be interrupted: {terminal.client} does not support it", hint)
    if terminal.host not in ("", store.host):
        raise errors.WrongState(f"{terminal.agent} can be interrupted only on its machine, {terminal.host}", hint)
    if state == PERMISSION:
        raise errors.WrongState(f"{terminal.agent} can't be interrupted: it waits for a permission", hint)
    way = channels.Client(store.root, team, terminal, sitting.secrets_of(store, team, terminal.agent)).way_to_stop()
    if not way:
        raise errors.WrongState(f"{terminal.agent} can't be interrupted: its client has no listener", hint)
    return way


def stop_for_mail(store: Store, team: str, terminal: Terminal, way: str) -> None:
    """Make the client end its current turn and begin another one for its mail. *way* is the channel to the client, such
    as `channels.SOCKET`. The interruption is recorded as a waking, so that the client is not woken for the same mail
    again.
    """
    unread = inboxes.unread(store, team, terminal.agent)
    _note_waking(store, team, terminal, unread, senders=())
    client = channels.Client(store.root, team, terminal, sitting.secrets_of(store, team, terminal.agent))
    _note_outcome(store, team, terminal.agent, client.take_line(way, interrupts=True))
    history.note(store, team, terminal.agent, "terminal interrupted", way=way)


def main() -> None:
    """Resume idle agents of this machine when mail comes for them, until the team is closed."""
    store, team = opening.from_environment(os.environ), os.environ["TEAMS_TEAM"]
    WAKER.attend(store, team, lambda: _Waker(store, team, os.environ).look, sys.stderr.write)


class _Waker:
    """Resumes idle agents and wakes idle clients in terminals that have mail."""

    def __init__(self, store: Store, team: str, environ: Mapping[str, str]) -> None:
        self.store = store
        self.team_name = team
        self.environ = environ
        self.config = config.load(store.root, environ)
        self.tried: dict[str, int] = {}
        """For each agent, the number of the newest message for which this process resumed the agent."""

    def look(self) -> bool:
        """Check once for mail. Returns whether this process may end, because the team is closed, or because no other
        machine uses the store and no client is in a terminal.
        """
        team = teams.get(self.store, self.team_name)
        if self.store.host:
            for session in ending.all_of(self.store, team.name, []):
                if session.host == self.store.host:
                    self._resume(team, session)
        has_clients = False
        for terminal in terminals.all_of(self.store, team.name, []):
            if terminal.host in ("", self.store.host):
                has_clients |= self._look_at(team, terminal)
        if team.state == "closed":
            sitting.end_all_unattended(self.store, team.name, self.environ)
        return team.state == "closed" or not (self.store.host or has_clients)

    def _notify(self, team: Team, to: str, body: str, uid: str) -> None:
        """Send a member a notice, and resume the member if it is an idle agent."""
        messages.notify(self.store, team.name, to, body, uid, even_in_closed_team=True)
        wake(self.store, team, self.config, [to], SYSTEM, self.environ)

    def _resume(self, team: Team, session: Session) -> None:
        """Resume the agent of the session if it is idle and has mail."""
        if not session.ended:
            return
        numbers = sessions.waiting_numbers(self.store, team.name, session)
        newest = max(numbers, default=0)  # 0 if no mail waits
        if session.outcome == "failed" and newest <= self.tried.get(session.agent, 0):
            return  # it can't be started: wait for newer mail
        self.tried[session.agent] = newest
        if mail := self.store.fetch(team.name, MESSAGE, numbers, []):
            only_outputs = all(message.type == "output" for message in mail)
            wake(self.store, team, self.config, [session.agent], mail[0].from_, self.environ, only_outputs)

    def _look_at(self, team: Team, terminal: Terminal) -> bool:
        """Wake the client if it has mail, or notify the senders that it can't be reached. If the client is gone and
        `teams` started the agent, resume the agent. Returns False if the client is gone and no person has taken the
        agent's place.
        """
        store = self.store
        state = terminals.state_known(store, team, terminal)
        if state == GONE and terminal.state != GONE:
            sitting.stand_up(store, team.name, terminal.agent, "its process ended")
        if state == GONE and (session := ending.current(store, team.name, terminal.agent)):
            self._resume(team, session)
            return bool(session.taken_by)
        unread = inboxes.unread(store, team.name, terminal.agent)
        wake_again_after = float(settings.value(team, "wakeAgainAfter"))
        if _is_due(terminal, state, unread, store.now(), wake_again_after):
            self._wake_client(team, terminal, unread)
        if numbers := _unreached(terminal, state, unread, store.now(), wake_again_after):
            self._notify_senders(team, terminal, state, numbers)
        if state == PERMISSION and not terminal.leader_told:
            self._notify_leader(team, terminal)
        return state != GONE

    def _wake_client(self, team: Team, terminal: Terminal, unread: Sequence[int]) -> None:
        """Wake the client once for all its *unread* mail, unless each of the senders has woken it too often in the last
        hour.
        """
        store, agent = self.store, terminal.agent
        senders: list[str] = []  # a second waking for the same mail does not count against its senders
        if not terminal.woken_at or _is_new_mail(terminal, unread):
            senders = sorted({message.from_ for message in store.fetch(team.name, MESSAGE, unread, [])})
            limit = int(settings.value(team, "max_resumes_per_hour"))
            recent_wakers = [waking.by for waking in terminal.wakings if seconds_since(waking.at, store.now()) < _HOUR]
            is_by_agents = bool(senders) and HUMAN not in senders and SYSTEM not in senders
            if is_by_agents and all(recent_wakers.count(name) >= limit for name in senders):
                body = (
                    f"{agent} is not woken for more messages from {', '.join(senders)}: they woke it {limit} "
                    "times in an hour. It reads the messages when its person next types something."
                )
                self._notify(team, team.leader, body, f"{agent}~loop-{terminal.woken_to}")  # once, because of the uid
                return
        woken = _note_waking(store, team.name, terminal, unread, senders)
        if woken is None:  # another process wakes the client
            return
        way = channels.Client(store.root, team.name, woken, sitting.secrets_of(store, team.name, agent)).wake()
        _note_outcome(store, team.name, agent, bool(way))
        if way or not woken.unheard:  # of failed tries, only the first is in the history
            history.note(store, team.name, agent, "terminal woken" if way else "terminal not woken", way=way)

    def _notify_senders(self, team: Team, terminal: Terminal, state: str, numbers: Sequence[int]) -> None:
        """Notify the senders of the messages with these *numbers* that the client was not reached."""
        reason = f"its client ended at {terminal.since}" if state == GONE else f"it was woken {terminal.wakes} times"
        for message in self.store.fetch(team.name, MESSAGE, numbers, []):
            if message.from_ not in (SYSTEM, terminal.agent) and message.type != "output":
                body = f"{terminal.agent} has not read {message.id}: {reason}. The message waits in its inbox."
                self._notify(team, message.from_, body, f"{terminal.agent}~unreached-{message.number}")

        def change(current: Terminal) -> Terminal:
            return current if current.told_to >= max(numbers) else current.having(told_to=max(numbers))

        update(self.store, team.name, TERMINAL.even_in_closed_team, terminal.agent, change)

    def _notify_leader(self, team: Team, terminal: Terminal) -> None:
        """Notify the leader, once, that a member has waited for its person longer than the setting
        `tellPermissionAfter` allows.
        """
        if seconds_since(terminal.since, self.store.now()) < float(settings.value(team, "tellPermissionAfter")):
            return
        if terminal.agent != team.leader:
            tool = f" ({terminal.waits_for})" if terminal.waits_for else ""
            body = (
                f"{terminal.agent} has waited for a permission since {terminal.since}{tool}: its person must answer at "
                "its terminal."
            )
            since = terminal.since.replace(":", "").replace(".", "")  # a uid has neither colons nor dots
            self._notify(team, team.leader, body, f"{terminal.agent}~permission-{since}")

        def change(current: Terminal) -> Terminal:
            return current.having(leader_told=True) if current.since == terminal.since else current

        update(self.store, team.name, TERMINAL.even_in_closed_team, terminal.agent, change)


if __name__ == "__main__":
    main()
