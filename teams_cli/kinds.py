"""All kinds of records of a team, for code that handles all of them: the doctor, and the copying of teams."""

from __future__ import annotations

from teams_cli import extensions
from teams_cli.agents import budgets, outputs, sessions
from teams_cli.agents.seats import terminals
from teams_cli.membership import shutdowns
from teams_cli.messages import inboxes, messages
from teams_cli.questions import questions
from teams_cli.runs import runs
from teams_cli.store.contract import Kind
from teams_cli.tasks import evidence, landings, plans, tasks
from teams_cli.teams import pages, presence, teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

IN_A_TEAM: tuple[Kind[Any], ...] = (
    presence.AGENT,
    inboxes.INBOX,
    tasks.TASK,
    messages.MESSAGE,
    evidence.COPY,
    landings.LANDING,
    plans.PLAN,
    questions.QUESTION,
    shutdowns.SHUTDOWN,
    sessions.SESSION,
    outputs.OUTPUT,
    budgets.USAGE,
    terminals.TERMINAL,
    runs.RUN,
    pages.PAGE,
    *extensions.kinds(),
)
"""The kinds of records in a team, except the record of the team itself, which is written last and read first."""

ALL = (teams.TEAM, *IN_A_TEAM)
BY_NAME = {kind.name: kind for kind in ALL}
