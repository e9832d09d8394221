"""Decide when a client in a terminal is woken for its messages or interrupted, and do it."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.agents import ending
from teams_cli.agents.seats import channels, sitting, terminals
from teams_cli.agents.seats.terminals import TERMINAL, Terminal, Waking
from teams_cli.clients import known
from teams_cli.clients.seats import GONE, IDLE, PERMISSION
from teams_cli.clock import seconds_since
from teams_cli.messages import inboxes
from teams_cli.messages.messages import MESSAGE
from teams_cli.names import HUMAN, SYSTEM
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.teams import history, settings, teams
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from teams_cli.agents.sessions import Session

    Tell = Callable[[str, str, str], None]
    Resume = Callable[[Session], object]


AGAIN = (1, 4, 20)
"""Multiples of the setting `wakeAgainAfter` after which a client that did not read its messages is woken again."""
SOON, SOON_TRIES = 1.0, 10
"""How many seconds later, and how often, waking a client is tried again if nothing could wake it. Its listener starts
anew after each turn, and may not be there yet.
"""
_REMEMBERED = 500
_HOUR = 3600.0


def is_due(terminal: Terminal, state: str, unread: Sequence[int], now: datetime, again_after: float) -> bool:
    """Whether to wake the client now: it is idle, and has mail for which it was not woken yet, or was woken long ago.
    The client reads all its mail at once, so waking it once is enough.
    """
    if state != IDLE or not unread:
        return False
    if min(unread) > terminal.woken_to or not terminal.woken_at:
        return True
    if 0 < terminal.unheard < SOON_TRIES:
        return seconds_since(terminal.woken_at, now) >= SOON
    if terminal.wakes > len(AGAIN):
        return False
    return seconds_since(terminal.woken_at, now) >= again_after * AGAIN[max(terminal.wakes, 1) - 1]


def unreached(terminal: Terminal, state: str, unread: Sequence[int], now: datetime, again_after: float) -> list[int]:
    """Return the numbers of the messages whose senders are to be notified, because the client is gone or did not
    wake.
    """
    untold = [number for number in unread if number > terminal.told_to]
    if state == GONE:
        return untold
    if terminal.wakes <= len(AGAIN) or not terminal.woken_at or seconds_since(terminal.woken_at, now) < again_after:
        return []
    return [number for number in untold if number <= terminal.woken_to]


def again_after(team: Team) -> float:
    """Return the seconds after which a client that did not read its messages is woken once more."""
    return float(settings.value(team, "wakeAgainAfter"))


def note_waking(
    store: Store, team: str, terminal: Terminal, unread: Sequence[int], senders: Sequence[str]
) -> Terminal | None:
    """Record that the client is woken now for the *unread* messages, and return the terminal. None if another process
    woke the client first, or if its state has changed.
    """
    now = teams.now(store)
    noted = [*terminal.wakings, *(Waking(at=now, by=name) for name in senders)][-_REMEMBERED:]

    def change(current: Terminal) -> Terminal:
        if (current.woken_at, current.wakes, current.state) != (terminal.woken_at, terminal.wakes, terminal.state):
            return current
        fresh = not unread or min(unread) > current.woken_to
        wakes = 1 if fresh else current.wakes + (not 0 < current.unheard < SOON_TRIES)
        woken_to = max(current.woken_to, *unread, 0)
        unheard = 0 if fresh else current.unheard
        return current.having(woken_to=woken_to, woken_at=now, wakes=wakes, unheard=unheard, wakings=noted)

    before, after = update(store, team, TERMINAL.also_closed, terminal.agent, change)
    return None if before is after else after


def note_heard(store: Store, team: str, terminal: Terminal, heard: bool) -> None:
    """Record whether one of the ways to wake the client worked."""

    def change(terminal: Terminal) -> Terminal:
        unheard = 0 if heard else terminal.unheard + 1
        return terminal if terminal.unheard == unheard else terminal.having(unheard=unheard)

    update(store, team, TERMINAL.also_closed, terminal.agent, change)


def note_told(store: Store, team: str, agent: str, number: int) -> None:
    """Record that the senders of all messages up to *number* were notified that the client was not reached."""

    def change(terminal: Terminal) -> Terminal:
        return terminal if terminal.told_to >= number else terminal.having(told_to=number)

    update(store, team, TERMINAL.also_closed, agent, change)


def lately(terminal: Terminal, by: str, now: datetime) -> int:
    """Return how often messages of *by* woke the client within the last hour."""
    return sum(waking.by == by and seconds_since(waking.at, now) < _HOUR for waking in terminal.wakings)


def look(store: Store, team: Team, tell: Tell, resume: Resume) -> bool:
    """Wake the clients in terminals of this machine that have mail, and notify others if a client does not wake. Return
    whether there is any client.

    *tell* sends a member a notice with a uid and wakes it. *resume* resumes an agent that `teams` started, if it rests
    and has mail.
    """
    anybody = False
    for terminal in terminals.all_of(store, team.name, []):
        if terminal.host in ("", store.host):
            anybody |= _look_at(store, team, terminal, tell, resume)
    return anybody


def _look_at(store: Store, team: Team, terminal: Terminal, tell: Tell, resume: Resume) -> bool:
    """Do for one terminal what `look` does for all. Returns whether its client is there or about to be. If the client
    is gone, an agent that `teams` keeps continues by itself.
    """
    state = terminals.state_known(store, team, terminal)
    if state == GONE and terminal.state != GONE:
        sitting.stand_up(store, team.name, terminal.agent, "its process ended")
    if state == GONE and (session := ending.current(store, team.name, terminal.agent)):
        resume(session)
        return bool(session.taken_by)
    unread = inboxes.unread(store, team.name, terminal.agent)
    pause = again_after(team)
    if is_due(terminal, state, unread, store.now(), pause):
        _wake(store, team, terminal, unread, tell)
    if numbers := unreached(terminal, state, unread, store.now(), pause):
        _tell_senders(store, team, terminal, state, numbers, tell)
    if state == PERMISSION and not terminal.leader_told:
        _tell_leader(store, team, terminal, tell)
    return state != GONE


def _wake(store: Store, team: Team, terminal: Terminal, unread: Sequence[int], tell: Tell) -> None:
    """Wake the client once for all unread mail, unless clients wake each other without end."""
    mail = store.fetch(team.name, MESSAGE, unread, [])
    senders = sorted({message.from_ for message in mail})
    if not terminal.woken_at or min(unread) > terminal.woken_to:
        if _stops_loop(store, team, terminal, senders, tell):
            return
    else:
        senders = []  # for the same mail
    noted = note_waking(store, team.name, terminal, unread, senders)
    if noted is None:
        return
    way = channels.wake(store.root, team.name, noted, sitting.secrets_of(store, team.name, noted.agent))
    note_heard(store, team.name, noted, bool(way))
    if way or not noted.unheard:
        history.note(store, team.name, noted.agent, "terminal woken" if way else "terminal not woken", way=way)


def _stops_loop(store: Store, team: Team, terminal: Terminal, senders: Sequence[str], tell: Tell) -> bool:
    """Return whether all senders woke the client too often within an hour. If they did, notify the leader once."""
    limit = int(settings.value(team, "max_resumes_per_hour"))
    free = [name for name in senders if name in (HUMAN, SYSTEM)]
    if free or not senders or any(lately(terminal, name, store.now()) < limit for name in senders):
        return False
    body = (
        f"{terminal.agent} is not woken for more messages from {', '.join(senders)}: they woke it {limit} times in an "
        "hour. It reads the messages when its person next types something."
    )
    tell(team.leader, body, f"{terminal.agent}~loop-{terminal.woken_to}")
    return True


def _tell_senders(store: Store, team: Team, terminal: Terminal, state: str, numbers: Sequence[int], tell: Tell) -> None:
    """Notify the senders of these messages that the client was not reached. The messages wait in its inbox."""
    why = f"its client ended at {terminal.since}" if state == GONE else f"it was woken {terminal.wakes} times"
    for message in store.fetch(team.name, MESSAGE, numbers, []):
        if message.from_ not in (SYSTEM, terminal.agent) and message.type != "output":
            body = f"{terminal.agent} has not read {message.id}: {why}. The message waits in its inbox."
            tell(message.from_, body, f"{terminal.agent}~unreached-{message.number}")
    note_told(store, team.name, terminal.agent, max(numbers))


def _tell_leader(store: Store, team: Team, terminal: Terminal, tell: Tell) -> None:
    """Notify the leader once of a member that has waited for its person longer than the setting `tellPermissionAfter`
    allows.
    """
    if seconds_since(terminal.since, store.now()) < float(settings.value(team, "tellPermissionAfter")):
        return
    wish = f" ({terminal.waits_for})" if terminal.waits_for else ""
    body = (
        f"{terminal.agent} has waited for a permission since {terminal.since}{wish}: its person must answer at its "
        "terminal."
    )
    moment = terminal.since.replace(":", "").replace(".", "")
    if terminal.agent != team.leader:
        tell(team.leader, body, f"{terminal.agent}~permission-{moment}")

    def told(current: Terminal) -> Terminal:
        return current.having(leader_told=True) if current.since == terminal.since else current

    update(store, team.name, terminals.TERMINAL, terminal.agent, told)


def way_to(store: Store, team: str, terminal: Terminal, state: str) -> str:
    """Return the way in which the client can be interrupted.

    Raises:
        WrongState: It can't be interrupted, or waits for a permission; says why.
    """
    seat = known.get(terminal.client).seat
    hint = f"Send it a message: teams send-message {terminal.agent} …; it is shown at its next tool call, or when idle."
    if seat is None or not seat.stops:
        raise errors.WrongState(f"{terminal.agent} can't be interrupted: {terminal.client} does not support it", hint)
    if terminal.host not in ("", store.host):
        raise errors.WrongState(f"{terminal.agent} can be interrupted only on its machine, {terminal.host}", hint)
    if state == PERMISSION:
        raise errors.WrongState(f"{terminal.agent} can't be interrupted: it waits for a permission", hint)
    way = channels.way_to_stop(store.root, team, terminal, sitting.secrets_of(store, team, terminal.agent))
    if not way:
        raise errors.WrongState(f"{terminal.agent} can't be interrupted: its client has no listener", hint)
    return way


def stop_for_mail(store: Store, team: str, terminal: Terminal, way: str) -> None:
    """Have the client end what it does and take a turn for its mail. This is recorded as a waking, so that the client
    is not woken for the same mail again.
    """
    note_waking(store, team, terminal, inboxes.unread(store, team, terminal.agent), [])
    secrets = sitting.secrets_of(store, team, terminal.agent)
    note_heard(store, team, terminal, channels.stop(way, store.root, team, terminal, secrets))
    history.note(store, team, terminal.agent, "terminal interrupted", way=way)
