"""Waiting for anything that concerns an agent, and noting what it has been shown.

Events come as messages: a plan, a shutdown, a lost claim, an edit, the end of a task of the leader's team. States (see
`facts`) are reported once, and again after they were different meanwhile.
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
from teams_cli.tasks import claims, tasks
from teams_cli.teams import presence, teams
from teams_cli.teams.permission import require
from teams_cli.teams.teams import Team
from teams_cli.views import mail, steps, work
from teams_cli.views.facts import PLAN, SHUTDOWN, Facts, fact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

    from teams_cli.teams.permission import Caller
    from teams_cli.teams.presence import OnceShown
    from teams_cli.views.facts import FactsByKey

    Document = dict[str, Any]

_SESSION, _PAGE = "session", "page"
"""Kinds of records that many teams have none of. The modules for them are imported only if there are any."""
_PAGES = 5
_MOST = 20
"""Messages that are shown at a time. The others end the next wait."""
_HELD = "held"
"""The kind of the fact that the caller owns a task."""


class Wanted:
    """The events that end a wait.

    With *needed*, good news does not end the wait. It is reported with the next event that asks for something, or when
    the wait times out (see `work.can_wait`). With *claims_ready*, a ready task is reported even if it was before. With
    *for_work*, mail that asks for nothing is reported only together with a task. *completed* is a number of completed
    tasks at which the wait ends, too.
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
    once_shown: OnceShown,
    say: Callable[[str], None] | None = None,
    wanted: Wanted = ANYTHING,
    again: str = steps.WAIT,
    tend: Callable[[Alarm], object] | None = None,
) -> Document:
    """Block until there is something new that concerns the caller. Return all of it, with the next command.

    Messages are shown in full, and marked as read *once told*. A caller in no team waits until there is one to join. If
    several agents wait for work, each is offered another task. *tend* is called before each look, for changes that no
    topic announces.

    Raises:
        WaitRanOut: Nothing happened within *timeout* seconds.
        WrongState: The team is closed.
    """
    lookout = Lookout(store, team, caller, once_shown, wanted, waits=True)
    news: Document = {}

    def ready() -> bool:
        if tend:
            tend(lookout.alarm)
        news.update(lookout.look())
        if timeout != 0 and not news:
            lookout.before_sleep(say)
        return bool(news)

    try:
        if not sleep_until(store, team, ready, timeout, lookout.topics, lookout.alarm, say):
            news.update(lookout.look_at_the_rest(timeout or 0.0))
    except (Ended, errors.WaitRanOut) as ended:
        from teams_cli.views import conditions

        ended.state, ended.hint = conditions.after_waiting(store, team, caller, again)
        lookout.end()
        raise
    except BaseException:
        lookout.end()
        raise
    once_shown(lookout.end)
    return news


class Lookout:
    """Looks for the facts and messages that concern the caller and that are *wanted*.

    If *waits* is set, the caller's record says, for other agents, that the caller waits for work. It does so only if no
    mail ends the wait at once.
    """

    def __init__(
        self,
        store: Store,
        team: str,
        caller: Caller,
        once_shown: OnceShown,
        wanted: Wanted = ANYTHING,
        waits: bool = False,
    ) -> None:
        self.store = store
        self.team = team
        self.caller = caller
        self.once_shown = once_shown
        self.wanted = wanted
        self.alarm = Alarm()
        self.queue: dict[str, float] = {}
        self._notes: list[Callable[[], object]] = []
        """The functions that note the last look, called after its answer was shown."""
        self._must_announce_wait = waits
        self._has_announced_wait = False
        self._has_slept = False
        self._unshown = 0
        """Unread messages for which the answer had no room."""

    def _announce_wait(self, facts: Facts) -> None:
        """Record once, for other agents, that the caller waits for work, if it may claim tasks and has none."""
        if not self._must_announce_wait:
            return
        self._must_announce_wait = False
        with suppress(errors.TeamsError):  # the others take it for an agent that does not wait
            if facts.works and not facts.held():
                self._note_agent(waiting=True)
                self._has_announced_wait = True

    def end(self) -> None:
        """Record, for other agents, that the caller no longer waits."""
        if self._has_announced_wait:
            with suppress(errors.TeamsError):
                self._note_agent(waiting=None)
                self._has_announced_wait = False

    def _note_agent(self, **fields: Any) -> None:
        """Change *fields* of the caller's record."""
        name, place = self.caller.name, presence.AGENT.also_closed
        upsert(self.store, self.team, place, name, presence.Agent(agent=name), lambda agent: agent.having(**fields))

    def _facts(self, team: Team, kinds: Collection[str] = ()) -> Facts:
        return Facts(self.store, team, self.caller, self.alarm, self.queue, kinds)

    def before_sleep(self, say: Callable[[str], None] | None) -> None:
        """Before the first sleep, notify the agents whose answer the caller waits for, and let a leader know if there
        is no other member.

        This also loads the modules that the end of the sleep needs, because another version may be installed in the
        meantime.
        """
        from teams_cli.tasks import overviews  # noqa: F401
        from teams_cli.views import standing

        if self._has_slept:
            return
        self._has_slept = True
        with suppress(errors.TeamsError):
            work.notify_of_blocked(self.store, self.team, self.caller.name)
        if say and (nobody := standing.of_nobody(self.store, self.team, self.caller)):
            say(f"teams: {nobody}")

    def topics(self) -> frozenset[str]:
        """Return the topics of changes that may concern the caller."""
        name = self.caller.name
        topics = {"team", "page", f"message/{name}"}
        try:
            team = teams.get(self.store, self.team)
        except errors.TeamNotFound:
            return frozenset(topics)
        facts = self._facts(team)
        if facts.leads or self.caller.is_human:
            topics |= {"plan", *({"question"} if self.caller.is_human else ())}
        topics.update(f"task/{key}" for key in facts.held())
        if facts.leads or team.member(name):  # also for a member with a task, which may end meanwhile
            topics |= tasks.FREED
        return frozenset(topics)

    def look(self) -> Document:
        """Return what concerns the caller now and was not reported before; empty if nothing does. `next` is the command
        that follows. The report is recorded only after the answer was shown.
        """
        try:
            team = teams.get(self.store, self.team)
        except errors.TeamNotFound:
            self.alarm.ring_in(NO_TEAM)
            return {}
        name = self.caller.name
        is_stranger = not (self.caller.is_human or team.member(name))
        self._refuse_shut_out(team, is_stranger)
        if is_stranger:
            text = f"team {team.name} exists, and {name} is not a member"
            return _with_next([fact("team", team.name, text, steps.join(team.name, name))], [], lambda: steps.WAIT)
        kinds = self.store.holds(self.team, _SESSION, _PAGE, SHUTDOWN)
        if _SESSION in kinds:
            from teams_cli.agents import ending

            ending.set_alarm(self.store, self.team, ending.children(self.store, self.team, name), self.alarm)
        claims.release_lost(self.store, team, self.alarm)
        self._notes = []
        happened, messages = self._news(team, presence.load(self.store, self.team, name), kinds)
        if not (happened or messages):
            for note in self._notes:  # there is nothing to show first
                note()
            return {}
        for note in self._notes:
            self.once_shown(note)
        news = _with_next(happened, messages, lambda: work.next_step(self.store, team, self.caller))
        return {**news, "moreMessages": self._unshown} if self._unshown else news

    def _refuse_shut_out(self, team: Team, is_stranger: bool) -> None:
        """Refuse a caller that was shut down or may not read messages, and anybody if the team is closed."""
        if not is_stranger:
            require(self.store, self.team, self.caller, "read-messages")
        elif (former := team.find(self.caller.name)) and former.stopped_by:
            raise errors.WrongState(f"{self.caller.name} was shut down", "You are done.")
        if team.state == "closed":
            from teams_cli.tasks import overviews

            overviews.refuse_closed(self.store, team)

    def _news(self, team: Team, agent: presence.Agent, kinds: Collection[str]) -> tuple[list[Document], list[Document]]:
        """Return the facts that were not reported yet, and the mail."""
        facts, mailbox = self._facts(team, kinds), self._mailbox()
        if not mailbox.unread(quiet=True):
            self._announce_wait(facts)
        happened = self._unreported(facts, agent, bool(mailbox.unread())) + (self._pages() if _PAGE in kinds else [])
        if any(each["what"] in ("settled", "completed") for each in happened):
            # The messages on the ended tasks are sent first, so that the results come in the same answer.
            for kind, key in self.store.owing(self.team):
                if kind == tasks.TASK.name:
                    notices.send_owed_by(self.store, self.team, tasks.TASK, key)
        if any(each["what"] != "ready" for each in happened):  # a message that says the same may have come meanwhile
            mailbox = self._mailbox()
        reported = {each["id"] for each in happened if each["what"] != _HELD}
        messages = self._mail(team, mailbox, reported, agent, bool(facts.held()))
        if not (happened or messages):
            self._announce_wait(facts)
        return happened, messages

    def look_at_the_rest(self, waited: float) -> Document:
        """When the wait has timed out, return the news that did not end it, with a description of the state of the
        work.

        Raises:
            WaitRanOut: There is no such news, or the caller *waited* no time.
        """
        what = "nothing for you" if self.wanted.needed else "nothing"
        ran_out = errors.WaitRanOut(f"{what} happened within {length(waited)}")
        if not ((self.wanted.needed or self.wanted.for_work) and waited):
            raise ran_out
        anything = Wanted(False, self.wanted.claims_ready, self.wanted.completed)
        rest = Lookout(self.store, self.team, self.caller, self.once_shown, anything).look()
        if not rest:
            raise ran_out
        from teams_cli.views import standing

        return {**rest, "standing": standing.in_words(self.store, self.team, self.caller)}

    def _mailbox(self) -> inboxes.Mailbox:
        return inboxes.Mailbox(self.store, self.team, self.caller.name)

    def _mail(
        self, team: Team, mailbox: inboxes.Mailbox, reported: set[str], agent: presence.Agent, is_busy: bool
    ) -> list[Document]:
        """Return the unread messages in full, as many as are shown at a time.

        A message is left out if it is outdated, if a *reported* fact says the same, or if it asks for nothing and
        another answer showed it whole.
        """
        name, numbers = self.caller.name, mailbox.unread(quiet=True)[:_MOST]
        if not numbers:
            return []
        expects_ends = self.wanted.needed and work.expects_ends(self.store, self.team, name)
        if self.wanted.needed and not expects_ends:  # the last may have ended after the mailbox was read
            mailbox = self._mailbox()
            numbers = mailbox.unread(quiet=True)[:_MOST]
        unread = mailbox.messages(numbers)
        if not reported and len(unread) < _MOST and self._can_wait(team, unread, expects_ends, is_busy):
            return []
        messages = fitting(unread)
        # The message of a plan may come after the wait that reported it.
        reported = reported | {key.removeprefix(PLAN) for key in agent.told if key.startswith(PLAN)}
        shown = []
        for message in messages:
            step = self._step(team, message)
            if step == steps.reply(message.id) and mail.is_settled(self.store, self.team, message):
                step = None
            was_shown = step is None and mail.was_shown(agent, message)
            says_no_more = message.from_ == SYSTEM and message.about in reported
            if not (was_shown or says_no_more or mail.is_outdated(self.store, self.team, name, message)):
                shown.append({**message.to_document(), "next": step})
        read = set(numbers) - {message.number for message in unread[len(messages) :]}
        self._unshown = len(mailbox.unread(quiet=True)) - len(read)
        self._notes.append(lambda: mailbox.mark_read(read))
        return shown

    def _step(self, team: Team, message: Message) -> str | None:
        subject = mail.subject_of(self.store, self.team, message.about or "")
        return steps.after_message(message.to_document(), team.leader, subject)

    def _can_wait(self, team: Team, messages: list[Message], expects_ends: bool, is_busy: bool) -> bool:
        """Whether none of the messages is a reason to end the wait."""
        asking = [message for message in messages if not mail.is_for_later(self.store, self.team, message)]
        if self.wanted.for_work and not is_busy:  # a broadcast may ask for something in any words
            asking = [m for m in asking if (not m.fyi if m.type == "broadcast" else self._step(team, m) is not None)]
        return not asking or (self.wanted.needed and work.can_wait(asking, expects_ends))

    def _unreported(self, facts: Facts, agent: presence.Agent, has_mail: bool) -> list[Document]:
        """Return the facts that hold now and were not reported since they became true."""
        told = facts.still_reported(agent, but_ready=self.wanted.claims_ready)
        present = self._present(facts, told, agent) | self._held(facts, told, has_mail)
        unreported = {key: shown for key, shown in present.items() if key not in told and shown}
        offer = facts.offer if any(shown["what"] == "ready" for shown in unreported.values()) else None
        noted = set(present)
        if offer:
            # Noted before it is shown, so that the others that wait leave the task to the caller.
            self._note_agent(offered=offer, offered_at=teams.now(self.store))
            if facts.is_offered_to_another():
                left = {key for key in present if key.startswith(work.READY)} - told
                noted, offer = noted - left, None
                self._note_agent(offered=None, offered_at=None)
                unreported = {key: shown for key, shown in unreported.items() if key not in left}
        if unreported or {key for key in agent.told if not mail.is_message(key)} != noted:
            self._notes.append(lambda: self._note_shown(sorted(noted), offer))
        return list({shown["id"]: shown for shown in unreported.values()}.values())

    def _present(self, facts: Facts, told: set[str], agent: presence.Agent) -> FactsByKey:
        """Return the facts that hold now, in the order of the answer."""
        if not (facts.leads or self.caller.is_human or self.wanted.completed):
            return facts.overdue(agent) | facts.ready(told) | facts.done(told)
        from teams_cli.views.leading import Leading  # loads what members never hear of

        leading = Leading(facts, self.alarm, self.wanted.completed)
        completed = facts.overdue(agent) | leading.completed(told)
        return completed | facts.ready(told) | facts.done(told) | leading.present(told)

    def _held(self, facts: Facts, told: set[str], has_mail: bool) -> FactsByKey:
        """Return the fact that the caller has a task in progress although it wants to claim one.

        The fact is reported once, because the caller may wait for something that nobody knows of. It is not reported
        with mail, which may be what the caller waits for.
        """
        reported: FactsByKey = {key: None for key in told if key.startswith(work.HELD)}
        if not self.wanted.claims_ready or has_mail or not (facts.works and facts.held()):
            return reported
        held = work.held_task(self.store, facts.team, self.caller.name)
        return reported if held is None else {held.key: fact(_HELD, held.task.id, held.text, held.step)}

    def _note_shown(self, keys: list[str], offer: str | None) -> None:
        """Record the facts that the agent was shown, in place of earlier ones, and the *offer* of a ready task. Of the
        messages that it was shown whole, the newest stay recorded.
        """
        offered: Document = {"ready_at": teams.now(self.store)} if offer else {"offered": None, "offered_at": None}
        name, fresh = self.caller.name, presence.Agent(agent=self.caller.name)

        def change(agent: presence.Agent) -> presence.Agent:
            messages = list(filter(mail.is_message, agent.told))[-_MOST:]
            return agent.having(told=[*keys, *messages], **offered)

        upsert(self.store, self.team, presence.AGENT, name, fresh, change)

    def _pages(self) -> list[Document]:
        """Return a fact for each page that others changed since the caller looked. If there are many, the last fact
        gives the number of the others.
        """
        from teams_cli.teams import pages

        changed = pages.unshown(self.store, self.team, self.caller.name, self._notes.append)
        happened = [fact("page", page.key, page.headline, steps.read_page(page.key)) for page in changed[:_PAGES]]
        if len(changed) > _PAGES:
            happened.append(fact("page", "", f"{len(changed) - _PAGES} more pages changed", "teams shared"))
        return happened


def _with_next(happened: list[Document], messages: list[Document], otherwise: Callable[[], str]) -> Document:
    """Return the news with the first next command that a message or fact names, else with the one that *otherwise*
    returns.
    """
    named = [each["next"] for each in [*messages, *happened] if each["next"]]
    return {"happened": happened, "messages": messages, "next": named[0] if named else otherwise()}
