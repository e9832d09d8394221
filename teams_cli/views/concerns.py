"""Concerns: everything that one agent waits for, and what it has been shown.

What happens comes as a message: a plan, a shutdown, a lost claim, an edit, the end of a task that one leads. What
merely is so (see `facts`) is told once, and again when it was otherwise meanwhile.
"""

from __future__ import annotations

from contextlib import suppress

from teams_cli import errors
from teams_cli.clock import length
from teams_cli.messages import inboxes, notices
from teams_cli.messages.messages import Message, fitting
from teams_cli.names import SYSTEM
from teams_cli.store.contract import Store
from teams_cli.store.pace import NO_TEAM, Alarm, sleep_until
from teams_cli.store.retrying import Ended, upsert
from teams_cli.tasks import choosing, tasks
from teams_cli.teams import presence, teams
from teams_cli.teams.permission import require
from teams_cli.teams.teams import Team
from teams_cli.views import matters, reminders, steps, work
from teams_cli.views.facts import PLAN, SHUTDOWN, Facts, fact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

    from teams_cli.teams.permission import Caller
    from teams_cli.teams.presence import OnceTold
    from teams_cli.views.facts import Known

    Found = dict[str, Any]

_SESSION, _PAGE = "session", "page"
"""Kinds that many teams have none of: what looks at them is imported where there are any."""
_PAGES = 5
_MOST = 20
"""Messages that are shown at a time; what is left ends the next wait."""
_OF_ENDS = ("settled", "completed")
"""The keys of facts about finished tasks."""
_HELD = "held"
"""The key of a fact about a task that the caller owns."""


class Wanted:
    """The things that end the wait of an agent.

    *needed*: what went well is told with the next thing that asks for something, or when the time is over (see
    `work.can_wait`). *claims_ready*: a task that is ready is told although it was told before. *for_work*: mail that
    asks nothing waits until there is a task. *completed*: that so many tasks are completed is told too.
    """

    def __init__(
        self, needed: bool = False, claims_ready: bool = False, completed: int | None = None, for_work: bool = False
    ) -> None:
        self.needed = needed
        self.for_work = for_work
        self.claims_ready = claims_ready
        self.completed = completed


ANYTHING = Wanted()


def wait(
    store: Store,
    team: str,
    caller: Caller,
    timeout: float | None,
    once_told: OnceTold,
    say: Callable[[str], None] | None = None,
    wanted: Wanted = ANYTHING,
    again: str = steps.WAIT,
    tend: Callable[[Alarm], object] | None = None,
) -> Found:
    """Block until something concerns the caller that it was not told of; all that does then, with what to do about it.

    Messages are shown in full, and read *once told*. Who is in no team yet waits until there is one to join. Of several
    that wait for work, each is told of another task. *tend* is called before each look, for what changes nothing here
    by itself.

    Raises:
        WaitRanOut: Nothing did within *timeout* seconds.
        WrongState: The team is closed.
    """
    lookout = Lookout(store, team, caller, once_told, wanted, waits=True)
    found: Found = {}

    def ready() -> bool:
        if tend:
            tend(lookout.alarm)
        found.update(lookout.look())
        if timeout != 0 and not found:
            lookout.before_sleep(say)
        return bool(found)

    try:
        if not sleep_until(store, team, ready, timeout, lookout.topics, lookout.alarm, say):
            found.update(lookout.look_at_the_rest(timeout or 0.0))
    except (Ended, errors.WaitRanOut) as ended:
        from teams_cli.views import conditions

        ended.state, ended.hint = conditions.after_waiting(store, team, caller, again)
        lookout.end()
        raise
    except BaseException:
        lookout.end()
        raise
    once_told(lookout.end)
    return found


class Lookout:
    """Looks for what concerns the caller, as far as it is *wanted*. The others that wait for work know of one that
    *waits* for it, once it is seen that no mail ends that wait.
    """

    def __init__(
        self,
        store: Store,
        team: str,
        caller: Caller,
        once_told: OnceTold,
        wanted: Wanted = ANYTHING,
        waits: bool = False,
    ) -> None:
        self.store = store
        self.team = team
        self.caller = caller
        self.once_told = once_told
        self.wanted = wanted
        self.alarm = Alarm()
        self._notes: list[Callable[[], object]] = []
        """The functions that note the last look, called after its answer was shown."""
        self.queue: dict[str, float] = {}
        self._is_to_say = waits
        self._has_said = False
        self._told_alone = False
        self._told_blocked = False
        self._left = 0
        """Unread messages for which there was no room."""

    def _say_if_waiting(self, facts: Facts) -> None:
        """Have the others know, once, that this one waits for work."""
        if not self._is_to_say:
            return
        self._is_to_say = False
        try:
            if facts.works and not facts.held():
                self._say_waiting(True)
        except errors.TeamsError:  # then they take it for one that does not wait
            return

    def end(self) -> None:
        """Wait for work no more."""
        if self._has_said:
            try:
                self._say_waiting(None)
            except errors.TeamsError:  # what was found, or was not, is told all the same
                return

    def _say_waiting(self, waiting: bool | None) -> None:
        fresh = presence.Agent(agent=self.caller.name)
        place = presence.AGENT.also_closed
        upsert(self.store, self.team, place, self.caller.name, fresh, lambda agent: agent.having(waiting=waiting))
        self._has_said = bool(waiting)

    def _facts(self, team: Team, there: Collection[str] = ()) -> Facts:
        return Facts(self.store, team, self.caller, self.alarm, self.queue, there)

    def before_sleep(self, say: Callable[[str], None] | None) -> None:
        """Load what the end of the sleep needs, by which another version may be installed; and tell once whose answer
        the caller waits for, and who leads that nobody is there who could bring anything about.
        """
        from teams_cli.tasks import overviews  # noqa: F401
        from teams_cli.views import standing

        if not self._told_blocked:
            self._told_blocked = True
            with suppress(errors.TeamsError):  # it waits all the same
                work.tell_blocked(self.store, self.team, self.caller.name)
        if say and not self._told_alone:
            self._told_alone = True
            if nobody := standing.of_nobody(self.store, self.team, self.caller):
                say(f"teams: {nobody}")

    def topics(self) -> frozenset[str]:
        """The topics of changes that may concern the caller."""
        name = self.caller.name
        found = {"team", "page", f"message/{name}"}
        try:
            team = teams.get(self.store, self.team)
        except errors.TeamNotFound:
            return frozenset(found)
        facts = self._facts(team)
        if facts.leads or self.caller.is_human:
            found |= {"plan", *({"question"} if self.caller.is_human else ())}
        found.update(f"task/{key}" for key in facts.held())
        if facts.leads or team.member(name):  # also of who has a task, which may end meanwhile
            found |= tasks.FREED
        return frozenset(found)

    def look(self) -> Found:
        """The things that concern the caller now and were not reported before. They are noted *once told*. Empty if
        there are none.

        `next` is the command that follows on the whole of it.
        """
        try:
            team = teams.get(self.store, self.team)
        except errors.TeamNotFound:
            self.alarm.ring_in(NO_TEAM)
            return {}
        is_stranger = not (self.caller.is_human or team.member(self.caller.name))
        if is_stranger:
            _refuse_stopped(team, self.caller.name)
        else:
            require(self.store, self.team, self.caller, "read-messages", known=team)
        if team.state == "closed":
            from teams_cli.tasks import overviews

            overviews.refuse_closed(self.store, team)
        if is_stranger:
            text = f"team {team.name} exists, and {self.caller.name} is not a member"
            step = steps.join(team.name, self.caller.name)
            return _with_next([fact("team", team.name, text, step)], [], lambda: steps.WAIT)
        there = self.store.holds(self.team, _SESSION, _PAGE, SHUTDOWN)
        if _SESSION in there:
            self._look_after_started()
        choosing.release_lost(self.store, team, self.alarm)
        agent = presence.load(self.store, self.team, self.caller.name)
        self._notes = []
        happened, mail = self._news(team, agent, there)
        if not (happened or mail):
            for note in self._notes:  # all of it goes without saying
                note()
            return {}
        for note in self._notes:
            self.once_told(note)
        found = _with_next(happened, mail, lambda: self._otherwise(team))
        return {**found, "moreMessages": self._left} if self._left else found

    def _look_after_started(self) -> None:
        """See who of those that the caller started was lost, and when another may be."""
        from teams_cli.agents import ending

        started = ending.children(self.store, self.team, self.caller.name)
        ending.set_alarm(self.store, self.team, started, self.alarm)

    def _news(self, team: Team, agent: presence.Agent, there: Collection[str]) -> tuple[list[Found], list[Found]]:
        """The present facts that were not reported, and the mail."""
        facts, mailbox = self._facts(team, there), self._mailbox()
        if not mailbox.unread(quiet=True):
            self._say_if_waiting(facts)
        happened = self._untold(facts, agent, bool(mailbox.unread())) + (self._pages() if _PAGE in there else [])
        if any(each["what"] in _OF_ENDS for each in happened):
            self._have_ends_told()
        if any(each["what"] != "ready" for each in happened):  # a message that says the same may have come meanwhile
            mailbox = self._mailbox()
        told = {each["id"] for each in happened if each["what"] != _HELD}
        mail = self._mail(mailbox, told, agent, bool(facts.held()))
        if not (happened or mail):
            self._say_if_waiting(facts)
        return happened, mail

    def look_at_the_rest(self, waited: float) -> Found:
        """When the time is over, what did not end the wait, and how the work stands.

        Raises:
            WaitRanOut: There is nothing; who *waited* no time asked only for what would have ended it.
        """
        what = "nothing for you" if self.wanted.needed else "nothing"
        ran_out = errors.WaitRanOut(f"{what} happened within {length(waited)}")
        if not ((self.wanted.needed or self.wanted.for_work) and waited):
            raise ran_out
        of_these = Wanted(False, self.wanted.claims_ready, self.wanted.completed)
        rest = Lookout(self.store, self.team, self.caller, self.once_told, of_these).look()
        if not rest:
            raise ran_out
        from teams_cli.views import standing

        return {**rest, "standing": standing.in_words(self.store, self.team, self.caller)}

    def _mailbox(self) -> inboxes.Mailbox:
        return inboxes.Mailbox(self.store, self.team, self.caller.name)

    def _mail(self, mailbox: inboxes.Mailbox, told: set[str], agent: presence.Agent, is_busy: bool) -> list[Found]:
        """The unread messages in full, as many as are shown at a time. What is told with a
        fact, or asks for nothing and was told whole at the end of another answer, is not told again.
        """
        name, numbers = self.caller.name, mailbox.unread(quiet=True)[:_MOST]
        if not numbers:
            return []
        ends_expected = self.wanted.needed and _expects_ends(self.store, self.team, name)
        if self.wanted.needed and not ends_expected:  # the last may have ended behind the look into the mail
            mailbox = self._mailbox()
            numbers = mailbox.unread(quiet=True)[:_MOST]
        fetched = mailbox.messages(numbers)
        if not told and len(fetched) < _MOST and self._can_wait(fetched, ends_expected, is_busy):
            return []
        found = fitting(fetched)
        shown, told = [], told | _plans_among(agent.told)
        leader = teams.get(self.store, self.team).leader
        for each in found:
            document = each.to_document()
            matter = matters.matter_of(self.store, self.team, each.about or "")
            step = steps.after_message(document, leader, matter)
            if step == steps.reply(each.id) and matters.is_over(self.store, self.team, each):
                step = None
            known = step is None and reminders.was_told(agent, each)
            if not (known or _is_notice(each, told) or reminders.is_done(self.store, self.team, name, each)):
                shown.append({**document, "next": step})
        read = set(numbers) - {message.number for message in fetched[len(found) :]}
        self._left = len(mailbox.unread(quiet=True)) - len(read)
        self._notes.append(lambda: mailbox.mark_read(read))
        return shown

    def _asks(self, message: Message) -> bool:
        """Whether somebody may wait for what its reader does about it: so it is of what is said to all."""
        if message.type == "broadcast":
            return not message.fyi
        matter = matters.matter_of(self.store, self.team, message.about or "")
        leader = teams.get(self.store, self.team).leader
        return steps.after_message(message.to_document(), leader, matter) is not None

    def _can_wait(self, found: list[Message], ends_expected: bool, is_busy: bool) -> bool:
        """Whether none of the messages is worth the end of the wait."""
        asking = [message for message in found if not reminders.is_for_later(self.store, self.team, message)]
        if self.wanted.for_work and not is_busy:
            asking = [message for message in asking if self._asks(message)]
        if not (asking and self.wanted.needed):
            return not asking
        return work.can_wait(asking, ends_expected)

    def _have_ends_told(self) -> None:
        """Have what the ends of tasks still owe be sent: who hears of so many at once hears what came of each."""
        for kind, key in self.store.owing(self.team):
            if kind == tasks.TASK.name:
                notices.settle(self.store, self.team, tasks.TASK, key)

    def _untold(self, facts: Facts, agent: presence.Agent, has_mail: bool) -> list[Found]:
        """The present facts that were not reported since they became true."""
        known = facts.still_told(agent, but_ready=self.wanted.claims_ready)
        true = self._true(facts, known, agent) | self._held(facts, known, has_mail)
        untold = {about: shown for about, shown in true.items() if about not in known and shown}
        offer = facts.offer if any(shown["what"] == "ready" for shown in untold.values()) else None
        told = set(true)
        if offer:
            self._note_offer(offer)
            if facts.is_told_to_another():
                left = {about for about in true if about.startswith(work.READY)} - known
                told, offer = told - left, None
                self._note_offer(None)
                untold = {about: shown for about, shown in untold.items() if about not in left}
        if untold or {about for about in agent.told if not reminders.is_message(about)} != told:
            self._notes.append(lambda: self._note_told(sorted(told), offer))
        return list({shown["id"]: shown for shown in untold.values()}.values())

    def _note_offer(self, offer: str | None) -> None:
        """Note which ready task the caller is about to be told of, so that the others that wait leave it; or none."""
        at = teams.now(self.store) if offer else None
        fresh = presence.Agent(agent=self.caller.name)

        def change(agent: presence.Agent) -> presence.Agent:
            return agent.having(offered=offer, offered_at=at)

        upsert(self.store, self.team, presence.AGENT, self.caller.name, fresh, change)

    def _true(self, facts: Facts, known: set[str], agent: presence.Agent) -> Known:
        """The present facts, in the order of the answer."""
        if not (facts.leads or self.caller.is_human or self.wanted.completed):
            return facts.overdue(agent) | facts.ready(known) | facts.done(known)
        from teams_cli.views.leading import Leading  # loads all that members don't hear of

        beside = Leading(facts, self.alarm, self.wanted.completed)
        return (
            facts.overdue(agent) | beside.completed(known) | facts.ready(known) | facts.done(known) | beside.true(known)
        )

    def _held(self, facts: Facts, known: set[str], has_mail: bool) -> Known:
        """The task that the caller has, if it wants one: told once, as it may have to wait for what nobody knows of;
        what it has mail to is told by that.
        """
        told: Known = {about: None for about in known if about.startswith(work.HELD)}
        if not self.wanted.claims_ready or has_mail or not (facts.works and facts.held()):
            return told
        found = work.held_task(self.store, facts.team, self.caller.name)
        if found is None:
            return told
        return {found.about: fact(_HELD, found.task.id, found.text, found.step)}

    def _note_told(self, told: list[str], offer: str | None) -> None:
        """Note what the agent was told of what is so now; of what is so no longer nothing is kept. Of the messages that
        it was told whole the newest are.
        """
        offered: Found = {"ready_at": teams.now(self.store)} if offer else {"offered": None, "offered_at": None}
        name, fresh = self.caller.name, presence.Agent(agent=self.caller.name)

        def change(agent: presence.Agent) -> presence.Agent:
            heard = list(filter(reminders.is_message, agent.told))[-_MOST:]
            return agent.having(told=[*told, *heard], **offered)

        upsert(self.store, self.team, presence.AGENT, name, fresh, change)

    def _pages(self) -> list[Found]:
        """The pages that others changed since the caller looked, a line each."""
        from teams_cli.teams import pages

        found = pages.untold(self.store, self.team, self.caller.name, self._notes.append)
        happened = [fact("page", page.key, page.headline, steps.read_page(page.key)) for page in found[:_PAGES]]
        if len(found) > _PAGES:
            happened.append(fact("page", "", f"{len(found) - _PAGES} more pages changed", "teams shared"))
        return happened

    def _otherwise(self, team: Team) -> str:
        """The next step if no event asks for an action: continue the task, or wait."""
        return work.next_step(self.store, team, self.caller)


def _expects_ends(store: Store, team: str, name: str) -> bool:
    """Whether somebody may still answer that it ends (see `work.expects_ends`)."""
    return work.expects_ends(store, team, name)


def _refuse_stopped(team: Team, name: str) -> None:
    """Raises WrongState: The agent was shut down, and can't join again."""
    member = team.find(name)
    if member and member.stopped_by:
        raise errors.WrongState(f"{name} was shut down", "You are done.")


def _plans_among(told: list[str]) -> set[str]:
    """The plans that the agent was told of; the message of one may be slower than a wait."""
    return {about.removeprefix(PLAN) for about in told if about.startswith(PLAN)}


def _is_notice(message: Message, told: set[str]) -> bool:
    """Whether all that the message says is a fact that is told beside it."""
    return message.from_ == SYSTEM and message.about in told


def _with_next(happened: list[Found], mail: list[Found], otherwise: Callable[[], str]) -> Found:
    named = [each["next"] for each in [*mail, *happened] if each["next"]]
    return {"happened": happened, "messages": mail, "next": named[0] if named else otherwise()}
