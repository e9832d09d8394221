"""Having agents begin again: the session says so and owes its agent the word of it, in one commit."""

from __future__ import annotations

from contextlib import suppress

from teams_cli import errors
from teams_cli.agents import interrupting, resuming, sessions, waking
from teams_cli.agents.seats import takeovers
from teams_cli.agents.sessions import BEGIN_AGAIN, SESSION, Session
from teams_cli.clients import permissions
from teams_cli.messages import messages
from teams_cli.messages.messages import MESSAGE, Message
from teams_cli.messages.notices import deliver
from teams_cli.names import SYSTEM
from teams_cli.records.owed import Owed, owing
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.tasks import tasks
from teams_cli.teams import history, pages, teams
from teams_cli.teams.permission import require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teams_cli.teams.caller import Caller


def restart(
    store: Store, team: str, caller: Caller | None, agent: str, fresh: bool, environ: Mapping[str, str], uid: str | None
) -> Message:
    """End what an agent is doing, and have it begin again.

    With --fresh it begins in a new session of its client, with its first prompt, its tasks and the team's
    pages. If it is about to begin again, repeating this adds nothing; nor does it under the same --uid.

    Raises:
        AgentNotFound: `teams` started no agent of that name.
        WrongState: It was stopped, or taken over into a terminal.
        InvalidValue: The uid is not valid.
    """
    at = require(store, team, caller, "restart-agent", agent)
    interrupting.refuse_unstarted(store, team, agent)
    level = sessions.get(store, team, agent).permissions or permissions.LEVELS[-1]
    permissions.refuse_more(environ, level, f"restart an agent that may do more ({level})")
    body = _words(store, team, at.caller.name, agent, fresh)
    told: Message | None = None
    asked = f"{at.caller.name}~{messages.checked_uid(uid)}" if uid is not None else None

    def ask(found: Session) -> Session:
        nonlocal told
        if asked and found.restarted == asked:
            told = _last_told(store, team, found)
            return found
        again = _going_on(found, fresh, asked)
        told = _told(store, team, found)
        return again if told or again.begins_again else _owing_the_word(again, body, at.caller.name)

    before, after = update(store, team, SESSION, agent, ask)
    if before is not after:
        history.note(store, team, at.caller.name, "agent restarted", agent=agent, fresh=fresh or None)
    message = told or _tell(store, team, after, body)
    if after.ended and after.interrupted:
        with suppress(errors.TeamsError):  # the waker of its machine looks for those that are to go on
            waking.wake(store, at.team, at.caller.config, [agent], at.caller.name, environ)
    return message


def _going_on(session: Session, fresh: bool, asked: str | None) -> Session:
    """The session as it goes on, for who *asked* for it.

    Raises:
        WrongState: It was stopped, or taken over into a terminal.
    """
    interrupting.refuse_stopped(session)
    takeovers.refuse_taken(session)
    again = resuming.going_on(session)
    again = again if again.fresh or not fresh else again.having(fresh=True)
    return again.having(restarted=asked) if asked else again


def _owing_the_word(session: Session, body: str, by: str) -> Session:
    """The session that owes its agent the word by which it begins again: one for each turn that it is after."""
    uid = f"{session.agent}~{BEGIN_AGAIN}-{session.generation}-{session.turns}"
    return owing(session, Owed(to=session.agent, message=body, uid=uid, by=by, about=BEGIN_AGAIN))


def _told(store: Store, team: str, session: Session) -> Message | None:
    """The message by which the agent is to begin again, if it was sent and is still to be its next turn."""
    return None if session.interjected <= session.delivered else _last_told(store, team, session)


def _last_told(store: Store, team: str, session: Session) -> Message | None:
    """The message by which the agent began again last, or is to, if nobody interjected since."""
    last = store.fetch(team, MESSAGE, [session.interjected], [])
    return last[0] if last and last[0].about == BEGIN_AGAIN else None


def _tell(store: Store, team: str, session: Session, body: str) -> Message:
    """Send what the session owes: the message by which its agent begins again. One that can't be sent now has no number
    yet, and is sent by whoever comes next.
    """
    sent: dict[str, Message] = {}
    deliver(store, team, SESSION, session, sent)
    now = teams.now(store)
    told = next((message for message in sent.values() if message.about == BEGIN_AGAIN), None)
    return told or Message(from_=SYSTEM, to=session.agent, message=body, timestamp=now, about=BEGIN_AGAIN)


def _words(store: Store, team: str, by: str, agent: str, fresh: bool) -> str:
    """What the agent is told that begins again: by whom, its tasks, the pages, and where to look first."""
    lines = [f"{by} restarted you{' in a new session; your earlier work is in your directory' * fresh}."]
    lines += [
        f"Your task: {task.id}: {task.title}"
        for task in tasks.labelled(store, team, tasks.IN_PROGRESS)
        if task.owner == agent
    ]
    shared = [page.key for page in pages.all_of(store, team, [])]
    lines += [f"Pages: {', '.join(shared)} (teams shared KEY)"] if shared else []
    return "\n".join([*lines, "First run: teams brief"])
