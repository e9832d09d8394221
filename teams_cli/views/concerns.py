"""Concerns: all that one agent waits for, and which of it the agent has been told.

What happens comes as a message: a plan, a shutdown, a lost claim, an edit, the end of a task that one leads. What
merely is so (a task is ready, all are settled, a question waits for the person) is told once, and again when it was
otherwise meanwhile.
"""

from __future__ import annotations

from teams_cli.agents import ending
from teams_cli.errors import TeamNotFound, TeamsError, WaitRanOut
from teams_cli.messages import inboxes, messages
from teams_cli.names import HUMAN
from teams_cli.questions import questions
from teams_cli.records.annotations import Any, Callable
from teams_cli.store.contract import Store
from teams_cli.store.pace import Alarm, sleep_until
from teams_cli.store.retrying import upsert
from teams_cli.tasks import claims, leases, plans, tasks
from teams_cli.teams import presence, roles, teams
from teams_cli.teams.permission import require, standing_of
from teams_cli.teams.teams import Team
from teams_cli.views import conditions, steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.teams.caller import Caller

    Found = dict[str, Any]

_MOST = 20
"""Messages that are shown at a time; what is left ends the next wait."""
_TITLE = 60


def wait(
    store: Store, team: str, caller: Caller, timeout: float | None, say: Callable[[str], None] | None = None
) -> Found:
    """Block until something concerns the caller that it was not told of; all that does then, with what to do about it.

    Messages are shown in full, and marked as read. Who is in no team yet waits until there is one to join.

    Raises:
        WaitRanOut: Nothing did within *timeout* seconds.
        WrongState: The team is closed.
    """
    lookout = Lookout(store, team, caller)
    found: Found = {}

    def ready() -> bool:
        found.update(lookout.look())
        return bool(found)

    if not sleep_until(store, team, ready, timeout, lookout.topics(), lookout.alarm, say):
        raise WaitRanOut(f"nothing happened within {timeout:g} seconds", "Wait on: teams wait; or look: teams brief")
    return found


class Lookout:
    """Looks for what concerns the caller."""

    def __init__(self, store: Store, team: str, caller: Caller) -> None:
        self.store = store
        self.team = team
        self.caller = caller
        self.alarm = Alarm()

    def topics(self) -> frozenset[str]:
        """What changes may concern the caller."""
        name = self.caller.name
        found = {"team", f"message/{name}"}
        try:
            team = teams.get(self.store, self.team)
        except TeamNotFound:
            return frozenset(found)
        leads = self._leads(team)
        if leads or self.caller.is_human:
            found |= {"plan", *({"question"} if self.caller.is_human else ())}
        mine = [task.id for task in tasks.labelled(self.store, self.team, tasks.IN_PROGRESS) if task.owner == name]
        if mine:
            found.update(f"task/{key}" for key in mine)
        elif self._works(team) or leads:
            found |= tasks.FREED
        return frozenset(found)

    def look(self) -> Found:
        """What concerns the caller now and was not told before; it is told with this. Empty if there is nothing."""
        try:
            team = teams.get(self.store, self.team)
        except TeamNotFound:
            self.alarm.ring_in(1.0)
            return {}
        if not (self.caller.is_human or team.member(self.caller.name)):
            text = f"team {team.name} is there, and {self.caller.name} is not a member"
            return {"happened": [concern("team", team.name, text, steps.join(team.name, self.caller.name))]}
        require(self.store, self.team, self.caller, "read-messages")
        conditions.refuse_closed(self.store, self.team)
        started = ending.children(self.store, self.team, self.caller.name)
        ending.set_alarm(self.store, self.team, started, self.alarm)
        leases.release_and_set_alarm(self.store, team, self.alarm)
        happened = self._untold(team)
        mail = self._mail({each["id"] for each in happened if each["what"] == "plan"})
        return {"happened": happened, "messages": mail} if happened or mail else {}

    def _mail(self, plans_told: set[str]) -> list[Found]:
        """The unread messages in full; they are read with this. That a plan was proposed is told with the plan."""
        name = self.caller.name
        numbers = inboxes.unread(self.store, self.team, name, quiet=True)[:_MOST]
        if not numbers:
            return []
        found = [message.to_document() for message in self.store.fetch(self.team, messages.MESSAGE, numbers, [])]
        shown = [
            {**message, "next": steps.after_message(message, self._plan_of(message))}
            for message in found
            if not (message["type"] == "plan" and plans_told.intersection(_words(message["message"])))
        ]
        inboxes.mark_read(self.store, self.team, name, set(numbers))
        return shown

    def _plan_of(self, message: Found) -> Found | None:
        about = str(message.get("about") or "")
        if not about.startswith("plan-"):
            return None
        try:
            return plans.get(self.store, self.team, about).to_document()
        except TeamsError:  # the doctor tells of a plan that can't be read; the message is shown as it is
            return None

    def _untold(self, team: Team) -> list[Found]:
        """What is so and was not told since it is; noted as told."""
        known = set(presence.load(self.store, self.team, self.caller.name).told)
        true = self._states(team)
        if known.symmetric_difference(true):
            _note_told(self.store, self.team, self.caller.name, sorted(true))
        untold = {about: shown for about, shown in true.items() if about not in known}
        return list({shown["id"]: shown for shown in untold.values()}.values())

    def _states(self, team: Team) -> dict[str, Found]:
        """What is so, by what it is told under; several may be told as one."""
        found: dict[str, Found] = {}
        if self._works(team):
            found |= self._ready(team)
        if self._leads(team):
            found |= self._settled() | self._plans()
        if self.caller.is_human:
            found |= self._questions() | self._plans()
        return found

    def _leads(self, team: Team) -> bool:
        at = standing_of(team, self.caller)
        return at is not None and at.leads

    def _works(self, team: Team) -> bool:
        member = team.member(self.caller.name)
        return member is not None and roles.verdict(member.role, "claim-task", team, self.caller.config) != "deny"

    def _ready(self, team: Team) -> dict[str, Found]:
        ready = list(claims.ready_for(self.store, team, self.caller))
        if not ready:
            return {}
        text = f"{ready[0].id} is ready: {ready[0].title[:_TITLE]}"
        if len(ready) > 1:
            text += f" (and {len(ready) - 1} more)"
        shown = concern("ready", ready[0].id, text, steps.CLAIM)
        return {f"ready:{task.id}:{task.claim}": shown for task in ready}

    def _settled(self) -> dict[str, Found]:
        found = conditions.settled(self.store, self.team)
        if found is None or not any(found["taskCounts"].values()):
            return {}
        counts = {status: count for status, count in found["taskCounts"].items() if count}
        text = f"all tasks are settled: {', '.join(f'{count} {status}' for status, count in counts.items())}"
        what = "teams get-tasks --blocked" if found["stuck"] else "teams close-team"
        about = "-".join(str(count) for count in found["taskCounts"].values())
        return {f"settled:{about}": concern("settled", self.team, text, what)}

    def _questions(self) -> dict[str, Found]:
        asked = [q for q in questions.all_of(self.store, self.team, []) if q.open and HUMAN in q.waiting_for]
        return {
            f"question:{q.id}": concern("question", q.id, f"{q.id} from {q.from_}: {q.question}", steps.answer(q.id))
            for q in asked
        }

    def _plans(self) -> dict[str, Found]:
        found = {}
        for plan in plans.all_of(self.store, self.team, [], only_open=True):
            if plan.from_ != self.caller.name:
                about = f" for {plan.task}" if plan.task else ""
                text = f"{plan.id} from {plan.from_}{about}:\n{plan.plan}"
                found[f"plan:{plan.id}"] = concern("plan", plan.id, text, steps.decide(plan.id))
        return found


def _words(text: str) -> set[str]:
    return {word.strip(":,.;") for word in text.split()}


def concern(what: str, about: str, text: str, step: str) -> Found:
    """One thing that concerns the caller: its kind, what it is about, in words, and the command that follows."""
    return {"what": what, "id": about, "text": text, "next": step}


def _note_told(store: Store, team: str, name: str, told: list[str]) -> None:
    """Note what the agent was told of what is so now; of what is so no longer nothing is kept."""
    fresh = presence.Agent(agent=name)
    upsert(store, team, presence.AGENT, name, fresh, lambda agent: agent.having(told=told))
