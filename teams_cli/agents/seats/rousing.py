"""Wake and interrupt clients in terminals, and decide when a client is to be woken for its messages."""

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


_WAKE_AGAIN_AFTER = (1, 4, 20)
"""Multiples of the setting `wakeAgainAfter` after which a client that did not read its messages is woken again."""
_RETRY_AFTER, _MAX_RETRIES = 1.0, 10
"""How many seconds later, and how often, waking a client is tried again if nothing could wake it. Its listener starts
again after each turn, and may not be there yet.
"""
_MAX_WAKINGS = 500
"""How many wakings a terminal's record keeps."""
_HOUR = 3600.0


def _is_due(terminal: Terminal, state: str, unread: Sequence[int], now: datetime, wake_again_after: float) -> bool:
    """Whether to wake the client now: it is idle, and was not woken yet for its *unread* messages, or was last woken
    long ago. Waking it once is enough for several messages, because the client reads all its mail at once.
    """
    if state != IDLE or not unread:
        return False
    if not terminal.woken_at or _is_new_mail(terminal, unread):
        return True
    seconds = seconds_since(terminal.woken_at, now)
    if _is_retried(terminal):
        return seconds >= _RETRY_AFTER
    if _was_woken_often_enough(terminal):
        return False
    return seconds >= wake_again_after * _WAKE_AGAIN_AFTER[max(terminal.wakes, 1) - 1]


def _is_new_mail(terminal: Terminal, unread: Sequence[int]) -> bool:
    """Whether the client was woken for none of the *unread* messages."""
    return min(unread) > terminal.woken_to


def _is_retried(terminal: Terminal) -> bool:
    """Whether the last tries to wake the client failed, and the next try is due soon."""
    return 0 < terminal.unheard < _MAX_RETRIES


def _was_woken_often_enough(terminal: Terminal) -> bool:
    return terminal.wakes > len(_WAKE_AGAIN_AFTER)


def _unreached(
    terminal: Terminal, state: str, unread: Sequence[int], now: datetime, wake_again_after: float
) -> list[int]:
    """Return the numbers of the *unread* messages whose senders are to be notified, because the client is gone or did
    not wake.
    """
    unshown = [number for number in unread if number > terminal.told_to]
    if state == GONE:
        return unshown
    if not terminal.woken_at or not _was_woken_often_enough(terminal):
        return []
    if seconds_since(terminal.woken_at, now) < wake_again_after:
        return []
    return [number for number in unshown if number <= terminal.woken_to]


def _note_waking(
    store: Store, team: str, terminal: Terminal, unread: Sequence[int], senders: Sequence[str]
) -> Terminal | None:
    """Record that the client is woken now for the *unread* messages of the *senders*, and return the terminal. None if
    another process woke the client first, or if the state of the client has changed.
    """
    now = teams.now(store)
    wakings = [*terminal.wakings, *(Waking(at=now, by=name) for name in senders)][-_MAX_WAKINGS:]

    def change(current: Terminal) -> Terminal:
        if (current.woken_at, current.wakes, current.state) != (terminal.woken_at, terminal.wakes, terminal.state):
            return current
        if not unread or _is_new_mail(current, unread):
            counts = {"wakes": 1, "unheard": 0}
        elif _is_retried(current):  # the client did not hear the last waking, so this one is still the same
            counts = {}
        else:
            counts = {"wakes": current.wakes + 1}
        return current.having(woken_to=max(current.woken_to, *unread, 0), woken_at=now, wakings=wakings, **counts)

    before, after = update(store, team, TERMINAL.also_closed, terminal.agent, change)
    return None if before is after else after


def _note_outcome(store: Store, team: str, agent: str, has_taken_line: bool) -> None:
    """Record whether one of the ways to wake the agent's client worked."""

    def change(terminal: Terminal) -> Terminal:
        unheard = 0 if has_taken_line else terminal.unheard + 1
        return terminal if terminal.unheard == unheard else terminal.having(unheard=unheard)

    update(store, team, TERMINAL.also_closed, agent, change)


def _wakings_within_hour(terminal: Terminal, by: str, now: datetime) -> int:
    """Return how often messages of *by* woke the client within the last hour."""
    return sum(waking.by == by and seconds_since(waking.at, now) < _HOUR for waking in terminal.wakings)


def look(store: Store, team: Team, tell: Tell, resume: Resume) -> bool:
    """Wake the clients in terminals of this machine that have mail, and notify the senders if a client does not wake.
    Returns whether any terminal of this machine has a client.

    *tell* sends a member a notice with a uid and wakes the member. *resume* resumes an agent that `teams` started, if
    it rests and has mail.
    """
    has_client = False
    for terminal in terminals.all_of(store, team.name, []):
        if terminal.host in ("", store.host):
            has_client |= _look_at(store, team, terminal, tell, resume)
    return has_client


def _look_at(store: Store, team: Team, terminal: Terminal, tell: Tell, resume: Resume) -> bool:
    """Do for one terminal what `look` does for all. Returns whether its client is there, or a person is about to open a
    client. If the client is gone, an agent that `teams` keeps continues by itself.
    """
    state = terminals.state_known(store, team, terminal)
    if state == GONE and terminal.state != GONE:
        sitting.stand_up(store, team.name, terminal.agent, "its process ended")
    if state == GONE and (session := ending.current(store, team.name, terminal.agent)):
        resume(session)
        return bool(session.taken_by)
    unread = inboxes.unread(store, team.name, terminal.agent)
    wake_again_after = float(settings.value(team, "wakeAgainAfter"))
    if _is_due(terminal, state, unread, store.now(), wake_again_after):
        _wake(store, team, terminal, unread, tell)
    if numbers := _unreached(terminal, state, unread, store.now(), wake_again_after):
        _tell_senders(store, team, terminal, state, numbers, tell)
    if state == PERMISSION and not terminal.leader_told:
        _tell_leader(store, team, terminal, tell)
    return state != GONE


def _wake(store: Store, team: Team, terminal: Terminal, unread: Sequence[int], tell: Tell) -> None:
    """Wake the client once for all unread mail, unless clients wake each other without end."""
    senders: list[str] = []  # a second waking for the same mail does not count against its senders
    if not terminal.woken_at or _is_new_mail(terminal, unread):
        senders = sorted({message.from_ for message in store.fetch(team.name, MESSAGE, unread, [])})
        limit = int(settings.value(team, "max_resumes_per_hour"))
        if _are_beyond_limit(store, terminal, senders, limit):
            body = (
                f"{terminal.agent} is not woken for more messages from {', '.join(senders)}: they woke it {limit} "
                "times in an hour. It reads the messages when its person next types something."
            )
            tell(team.leader, body, f"{terminal.agent}~loop-{terminal.woken_to}")  # once, because of the uid
            return
    noted = _note_waking(store, team.name, terminal, unread, senders)
    if noted is None:
        return
    way = channels.wake(store.root, team.name, noted, sitting.secrets_of(store, team.name, noted.agent))
    _note_outcome(store, team.name, noted.agent, bool(way))
    if way or not noted.unheard:  # of tries in vain, only the first is in the history
        history.note(store, team.name, noted.agent, "terminal woken" if way else "terminal not woken", way=way)


def _are_beyond_limit(store: Store, terminal: Terminal, senders: Sequence[str], limit: int) -> bool:
    """Whether each of the senders woke the client *limit* times within the last hour. There is no limit for the human
    and the program.
    """
    if not senders or HUMAN in senders or SYSTEM in senders:
        return False
    return all(_wakings_within_hour(terminal, name, store.now()) >= limit for name in senders)


def _tell_senders(store: Store, team: Team, terminal: Terminal, state: str, numbers: Sequence[int], tell: Tell) -> None:
    """Notify the senders of these messages that the client was not reached. The messages wait in its inbox."""
    reason = f"its client ended at {terminal.since}" if state == GONE else f"it was woken {terminal.wakes} times"
    for message in store.fetch(team.name, MESSAGE, numbers, []):
        if message.from_ not in (SYSTEM, terminal.agent) and message.type != "output":
            body = f"{terminal.agent} has not read {message.id}: {reason}. The message waits in its inbox."
            tell(message.from_, body, f"{terminal.agent}~unreached-{message.number}")

    def change(current: Terminal) -> Terminal:
        return current if current.told_to >= max(numbers) else current.having(told_to=max(numbers))

    update(store, team.name, TERMINAL.also_closed, terminal.agent, change)


def _tell_leader(store: Store, team: Team, terminal: Terminal, tell: Tell) -> None:
    """Notify the leader once of a member that has waited for its person longer than the setting `tellPermissionAfter`
    allows.
    """
    if seconds_since(terminal.since, store.now()) < float(settings.value(team, "tellPermissionAfter")):
        return
    if terminal.agent != team.leader:
        wish = f" ({terminal.waits_for})" if terminal.waits_for else ""
        body = (
            f"{terminal.agent} has waited for a permission since {terminal.since}{wish}: its person must answer at its "
            "terminal."
        )
        moment = terminal.since.replace(":", "").replace(".", "")
        tell(team.leader, body, f"{terminal.agent}~permission-{moment}")

    def change(current: Terminal) -> Terminal:
        return current.having(leader_told=True) if current.since == terminal.since else current

    update(store, team.name, TERMINAL, terminal.agent, change)


def way_to_interrupt(store: Store, team: str, terminal: Terminal, state: str) -> str:
    """Return the way in which the client can be interrupted.

    Raises:
        WrongState: The client can't be interrupted, or waits for a permission; the message says which.
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
    """Have the client end its present turn and take a turn for its mail. The interruption is recorded as a waking, so
    that the client is not woken for the same mail again.
    """
    _note_waking(store, team, terminal, inboxes.unread(store, team, terminal.agent), [])
    secrets = sitting.secrets_of(store, team, terminal.agent)
    _note_outcome(store, team, terminal.agent, channels.stop(way, store.root, team, terminal, secrets))
    history.note(store, team, terminal.agent, "terminal interrupted", way=way)
