"""All the kinds of record that a team has, for whoever looks at everything: the doctor, and the copying of teams."""

from __future__ import annotations

from teams_cli import agents, inboxes, messages, outputs, plans, questions, sessions, shutdowns, tasks, teams
from teams_cli.runs import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.store.contract import Kind

IN_A_TEAM: tuple[Kind[Any], ...] = (
    agents.AGENT,
    inboxes.INBOX,
    tasks.TASK,
    messages.MESSAGE,
    plans.PLAN,
    questions.QUESTION,
    shutdowns.SHUTDOWN,
    sessions.SESSION,
    outputs.OUTPUT,
    records.RUN,
)
"""What lies in a team beside its own record, which comes last where a team is made, and first where it is read."""

ALL = (teams.TEAM, *IN_A_TEAM)
