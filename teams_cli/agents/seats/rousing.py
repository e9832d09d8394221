"""Rousing: what the waker does for the terminals of its machine."""

from __future__ import annotations

from teams_cli.agents import ending
from teams_cli.agents.seats import channels, sitting, terminals, wakings
from teams_cli.agents.seats.terminals import Terminal
from teams_cli.clients.seats import GONE, PERMISSION
from teams_cli.clock import seconds_since
from teams_cli.messages import inboxes
from teams_cli.messages.messages import MESSAGE
from teams_cli.names import HUMAN, SYSTEM
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.teams import history, settings
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from teams_cli.agents.sessions import Session

    Tell = Callable[[str, str, str], None]
    Resume = Callable[[Session], object]


def look(store: Store, team: Team, tell: Tell, resume: Resume) -> bool:
    """Do for each terminal of this machine what is due; whether any client is there. *tell* gives a member a notice,
    under a uid, and wakes it; *resume* resumes an agent that `teams` keeps, if it rests and has mail.
    """
    anybody = False
    for terminal in terminals.all_of(store, team.name, []):
        if terminal.host in ("", store.host):
            anybody |= _look_at(store, team, terminal, tell, resume)
    return anybody


def _look_at(store: Store, team: Team, terminal: Terminal, tell: Tell, resume: Resume) -> bool:
    """Do what is due for one terminal; whether its client is there, or about to be. In the place of one that is gone
    the agent that `teams` keeps, if it does, goes on by itself.
    """
    state = terminals.state_known(store, team, terminal)
    if state == GONE and terminal.state != GONE:
        sitting.stand_up(store, team.name, terminal.agent, "its process ended")
    if state == GONE and (session := ending.current(store, team.name, terminal.agent)):
        resume(session)
        return bool(session.taken_by)
    unread = inboxes.unread(store, team.name, terminal.agent)
    pause = wakings.again_after(team)
    if wakings.is_due(terminal, state, unread, store.now(), pause):
        _wake(store, team, terminal, unread, tell)
    if numbers := wakings.unreached(terminal, state, unread, store.now(), pause):
        _tell_senders(store, team, terminal, state, numbers, tell)
    if state == PERMISSION and not terminal.leader_told:
        _tell_leader(store, team, terminal, tell)
    return state != GONE


def _wake(store: Store, team: Team, terminal: Terminal, unread: Sequence[int], tell: Tell) -> None:
    """Wake the client once for all that is unread, unless two wake each other without end."""
    mail = store.fetch(team.name, MESSAGE, unread, [])
    senders = sorted({message.from_ for message in mail})
    if not terminal.woken_at or min(unread) > terminal.woken_to:
        if _is_loop(store, team, terminal, senders, tell):
            return
    else:
        senders = []  # it is the same mail
    noted = wakings.note_waking(store, team.name, terminal, unread, senders)
    if noted is None:
        return
    way = channels.wake(store.root, team.name, noted, sitting.secrets_of(store, team.name, noted.agent))
    wakings.note_heard(store, team.name, noted, bool(way))
    if way or not noted.unheard:
        history.note(store, team.name, noted.agent, "terminal woken" if way else "terminal not woken", way=way)


def _is_loop(store: Store, team: Team, terminal: Terminal, senders: Sequence[str], tell: Tell) -> bool:
    """Whether all who wrote did so more often within an hour than one may; the leader is told of it once."""
    limit = int(settings.value(team, "max_resumes_per_hour"))
    free = [name for name in senders if name in (HUMAN, SYSTEM)]
    if free or not senders or any(wakings.lately(terminal, name, store.now()) < limit for name in senders):
        return False
    body = (
        f"{terminal.agent} is not woken for more messages from {', '.join(senders)}: they did so {limit} times in an "
        f"hour. It reads them when its person next types something."
    )
    tell(team.leader, body, f"{terminal.agent}~loop-{terminal.woken_to}")
    return True


def _tell_senders(store: Store, team: Team, terminal: Terminal, state: str, numbers: Sequence[int], tell: Tell) -> None:
    """Tell who wrote that the client was not reached; their messages wait all the same."""
    why = f"its client ended at {terminal.since}" if state == GONE else f"it was woken {terminal.wakes} times"
    for message in store.fetch(team.name, MESSAGE, numbers, []):
        if message.from_ not in (SYSTEM, terminal.agent) and message.type != "output":
            body = f"{terminal.agent} has not read {message.id}: {why}. The message waits in its inbox."
            tell(message.from_, body, f"{terminal.agent}~unreached-{message.number}")
    wakings.note_told(store, team.name, terminal.agent, max(numbers))


def _tell_leader(store: Store, team: Team, terminal: Terminal, tell: Tell) -> None:
    """Tell the leader of a member that waits for its person longer than the team wants to hear of, once."""
    if seconds_since(terminal.since, store.now()) < float(settings.value(team, "tellPermissionAfter")):
        return
    wish = f" ({terminal.waits_for})" if terminal.waits_for else ""
    body = f"{terminal.agent} waits for a permission since {terminal.since}{wish}: its person must answer there."
    moment = terminal.since.replace(":", "").replace(".", "")
    if terminal.agent != team.leader:
        tell(team.leader, body, f"{terminal.agent}~permission-{moment}")

    def told(found: Terminal) -> Terminal:
        return found.having(leader_told=True) if found.since == terminal.since else found

    update(store, team.name, terminals.TERMINAL, terminal.agent, told)
