"""End the session of an agent, and find its present state: done, failed or lost."""

from __future__ import annotations

import time
from contextlib import suppress

from teams_cli import errors, processes
from teams_cli.agents.sessions import SESSION, Session, find
from teams_cli.messages import inboxes, messages
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.tasks import assigning
from teams_cli.teams import history, presence, teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from teams_cli.records.types import Outcome
    from teams_cli.store.pace import Alarm
    from teams_cli.teams.teams import Team

_LINGER = 5.0
"""Seconds to wait for a keeper that is about to end by itself."""


def current(store: Store, team: str, agent: str) -> Session | None:
    """The agent's session, settled as lost first if its keeper is gone; None if `teams` did not start the agent."""
    session = find(store, team, agent)
    return session if session is None else _settled(store, team, session)


def all_of(store: Store, team: str, problems: list[errors.TeamsError]) -> list[Session]:
    """All sessions, lost ones settled."""
    return [_settled(store, team, session) for session, _ in store.scan(team, SESSION, problems)]


def children(store: Store, team: str, agent: str) -> list[Session]:
    """The sessions that the agent started itself."""
    sessions = [session for session, _ in store.scan(team, SESSION, []) if session.caller == agent]
    return [_settled(store, team, session) for session in sessions]


def of_run(store: Store, team: str, run: str) -> list[Session]:
    """The sessions of one run, in the order of their start."""
    return sorted((s for s in all_of(store, team, []) if s.run == run), key=lambda s: s.created_at)


def set_alarm(store: Store, team: str, found: Iterable[Session], alarm: Alarm) -> None:
    """Have the alarm ring when one of these sessions may be lost: nobody says so."""
    if not (going := [session for session in found if not session.ended]):
        return
    silence = teams.get(store, team).silence
    for session in going:
        if session.state == "starting":
            alarm.ring_in(_LINGER)
        alarm.ring_at_end_of(session.keeper_pid, session.keeper_started, session.keeper_boot)
        if session.host != store.host or session.keeper_pid is None:
            alarm.ring_in(silence / 4)


def is_lost(store: Store, team: str, session: Session) -> bool:
    """Whether the session is going on by its record, and no process has it: its keeper is gone, or its machine silent.

    A keeper on another machine can't be looked at; it says every now and then that its agent is alive.
    """
    if session.unstarted and not session.ended:
        by = find(store, team, session.unstarted)
        return by is None or by.ended or not by.keeper_lives
    if session.ended:
        return False
    if not session.keeper_lives:
        return not _keeper_is_on_its_way(store, team, session)
    if not store.host or session.keeper_pid is None:
        return False
    if processes.has_ended(session.keeper_pid, session.keeper_started, session.keeper_boot) is False:
        return False
    return presence.is_silent(store, teams.get(store, team), session.agent, session.started_at)


def _keeper_is_on_its_way(store: Store, team: str, session: Session) -> bool:
    """Whether who started the keeper is gone, and could not say any more that this has the session: it takes that."""
    if session.state != "starting" or session.outcome or session.host != store.host:
        return False
    named = {"TEAMS_HOME": store.root, "TEAMS_TEAM": team, "TEAMS_AGENT_ID": session.agent}
    return processes.is_on_its_way("teams_cli.agents.keeper", named)


def frozen_keeper(session: Session) -> int | None:
    """The id of the session's keeper, if that is a process of this machine which stands still, as after SIGSTOP."""
    pid = session.keeper_pid
    if pid is None or processes.has_ended(pid, session.keeper_started, session.keeper_boot) is not False:
        return None
    return pid if processes.is_stopped(pid) else None


def _settled(store: Store, team: str, session: Session) -> Session:
    """The session, settled if it is lost, or given back if nobody sits in its place any more. On a disk that can't be
    written it stays until somebody can.
    """
    if not session.taken_by and not is_lost(store, team, session):
        return session
    try:
        if not session.taken_by:
            return settle_lost(store, team, session.agent)
        from teams_cli.agents.seats import takeovers

        return takeovers.give_back(store, team, session) if takeovers.is_over(store, team, session) else session
    except errors.TeamsError:
        return session


def settle_lost(store: Store, team: str, agent: str) -> Session:
    """End a session whose keeper is gone: end what the client left, and tell the caller, once."""
    session, _ = store.get(team, SESSION, agent)
    if not is_lost(store, team, session):
        return session
    silent = session.keeper_lives
    from teams_cli.agents import logs

    # A keeper that was killed may not have noted the turn that it had started.
    ends = (logs.end_of_turn(store, team, agent, turn, logs.END) for turn in (session.turns + 1, session.turns))
    last_words = next(filter(None, ends), "")
    why = f"its machine is silent, {session.host}" if silent else "the process that ran it was killed"

    def lose(found: Session) -> Session:
        if found.ended or found.outcome or found.held != session.held:  # another has taken it meanwhile
            return found
        return found.having(outcome="lost", failure=f"{why}: {last_words}" if last_words and not silent else why)

    lost = update(store, team, SESSION.also_closed, agent, lose)[1]
    if lost.ended or not lost.outcome:
        return lost
    if not silent:
        processes.end_tagged(session.tag, (("KILL", 2.0),))
    return finish(store, team, lost, "lost")


def linger(found: list[Session]) -> None:
    """Wait until the keepers of sessions that are done are gone: the last that they do is to resume others."""
    give_up = time.monotonic() + _LINGER
    while any(s.ended and s.keeper_lives and not s.taken_by for s in found) and time.monotonic() < give_up:
        time.sleep(0.005)


def finish(
    store: Store,
    team: str,
    session: Session,
    outcome: Outcome,
    failure: str | None = None,
    output: str | None = None,
    exit_status: int | None = None,
    earlier: Sequence[str] = (),
) -> Session:
    """End this generation of the session: its output, or why there is none, goes to the caller, exactly once, unless
    mail resumed it and was answered by mail. *earlier* is what its turns before the last said.

    First what came of it is written down, then the message is stored, under a uid of the generation, and only then is
    the session done. Whoever finds it half-way, after a crash, goes on from what is written down.
    """
    from teams_cli.agents import (
        outputs,
    )

    def settle(found: Session) -> Session:
        if found.ended or found.generation != session.generation or found.outcome:
            return found
        return found.having(outcome=outcome, failure=failure, exit_status=exit_status)

    def end(found: Session) -> Session:
        if found.ended or found.generation != session.generation:
            return found
        return found.having(state="paused" if found.pause_asked else "done", ended_at=teams.now(store))

    if output is not None:
        outputs.keep(store, team, session.agent, session.generation, output, earlier)
    settled = update(store, team, SESSION.also_closed, session.agent, settle)[1]
    if settled.ended or settled.generation != session.generation:
        return settled
    sent = None if outputs.is_answered(store, team, settled) else outputs.pipe(store, team, settled, earlier)
    before, after = update(store, team, SESSION.also_closed, session.agent, end)
    if before is not after:
        history.note(store, team, session.agent, f"session {after.outcome}", generation=after.generation)
        if sent and outputs.is_waited_for(settled):
            messages.wake_up(store, team, [after.caller], sent, after.agent)
        with suppress(errors.TeamsError):  # it ended all the same
            _tell_team(store, teams.get(store, team), after)
    return after


def _tell_team(store: Store, team: Team, ended: Session) -> None:
    """Free the tasks kept for an agent that nothing resumes. Of one that finished tell the others, once, where its work
    is; the agent that started it has its output.
    """
    if ended.outcome in ("stopped", "lost"):
        assigning.free_all(store, team, ended.agent, f"{ended.agent} was {ended.outcome}")
    if ended.outcome == "completed" and ended.branch:
        body = f"{ended.agent} finished; its work is on the branch {ended.branch} ({ended.worktree})"
        for name in team.active_names():
            if name not in (ended.agent, ended.caller):
                messages.notify(
                    store,
                    team.name,
                    name,
                    body,
                    f"finished~{ended.agent}~{name}",
                    "info",
                    wake=False,
                    event="agent-finished",
                )


def lapse(store: Store, team: str, session: Session) -> None:
    """End a generation that found nothing to do, as if it had not been."""

    def change(found: Session) -> Session:
        if found.ended or found.generation != session.generation:
            return found
        return found.having(state="paused" if found.pause_asked else "done", outcome=found.outcome_before)

    update(store, team, SESSION.also_closed, session.agent, change)


def unfinished(store: Store, team: str, agent: str) -> tuple[list[str], list[str]]:
    """Why the agent may not finish yet: who is still at work for it, and its unread messages. Both empty: it may."""
    going = [session.agent for session in children(store, team, agent) if not session.ended]
    return going, [f"msg-{number}" for number in inboxes.unread(store, team, agent)]
