"""Waiting for anything that concerns an agent, and recording what the agent was shown.

Messages report events, such as a plan, a lost claim or an edit. Facts (see `facts`) report states, such as that a task
is ready. A state is reported once, and again only if it changed in between.
"""

from __future__ import annotations

from teams_cli import errors
from teams_cli.clock import Ended, length
from teams_cli.messages import inboxes, notices
from teams_cli.messages.messages import MOST_AT_ONCE, Message, fitting
from teams_cli.names import SYSTEM
from teams_cli.store.contract import Store, upsert
from teams_cli.store.pace import NEXT_LOOK_FOR_TEAM, Alarm, sleep_until
from teams_cli.tasks import claims, tasks
from teams_cli.teams import presence, teams
from teams_cli.teams.permission import require
from teams_cli.teams.teams import Team
from teams_cli.text import counted
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
"""Kinds of records that many teams do not have. Their modules are imported only if there are such records."""
_MOST_PAGES = 5
_HELD = "held"
"""The kind of the fact that the caller has a task in progress."""


class Wanted:
    """The kinds of news that end a wait.

    With *needed*, the wait does not end for news that asks nothing of the reader, for example that a task was
    completed. With *for_work*, mail that asks for nothing does not end the wait of an agent without a task. Such news
    is shown when something else ends the wait, or when the wait times out.

    With *claims_ready*, a ready task is reported even if it was reported before. If *completed* is a number, the wait
    also ends when that number of tasks is completed.
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
    left_out: Collection[int] = (),
) -> Document:
    """Block until something new concerns the caller. Return all news, with the next command.

    Messages are returned in full. A caller that is not a member waits only until the team exists. If several agents
    wait for work, each is offered a different task.

    *wanted* says which news ends the wait. *once_shown* takes the functions that mark the news as read; they are called
    after the answer. *say* shows a line during the wait, and *tend* is called before each look for news. *again* is the
    command that the answer names for a longer wait. *left_out* gets the numbers of the messages for which the answer
    has no room; these stay unread.

    Raises:
        WaitRanOut: Nothing happened within *timeout* seconds.
        WrongState: The team is closed.
    """
    lookout = Lookout(store, team, caller, once_shown, wanted, waits=True, left_out=left_out)
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
            news.update(lookout.news_after_timeout(timeout or 0.0))
    except BaseException as failure:
        if isinstance(failure, Ended | errors.WaitRanOut):  # the error says how the work stands
            from teams_cli.views import conditions

            failure.state, failure.hint = conditions.after_waiting(store, team, caller, again)
        lookout.end()
        raise
    once_shown(lookout.end)
    return news


class Lookout:
    """Looks for the facts and messages that concern the caller and that are *wanted*. With *waits*, the caller's record
    shows other agents that it waits for work, unless unread mail ends the wait at once. *left_out* gets the
    numbers of the messages for which the answer has no room; these stay unread.
    """

    def __init__(
        self,
        store: Store,
        team: str,
        caller: Caller,
        once_shown: OnceShown,
        wanted: Wanted = ANYTHING,
        waits: bool = False,
        left_out: Collection[int] = (),
    ) -> None:
        self.store = store
        self.team = team
        self.caller = caller
        self.once_shown = once_shown
        self.wanted = wanted
        self.left_out = left_out
        self.alarm = Alarm()
        self.offer_times: dict[str, float] = {}
        self._notes: list[Callable[[], object]] = []
        """Functions that record what the last look reported. They are called after its answer was shown."""
        self._must_announce_wait = waits
        self._has_announced_wait = False
        self._has_slept = False
        self._unshown = 0
        """The number of unread messages for which the answer had no room."""

    def _announce_wait(self, facts: Facts) -> None:
        """Record once, for other agents, that the caller waits for work, if it may claim tasks and has none."""
        if not self._must_announce_wait:
            return
        self._must_announce_wait = False
        try:
            if facts.may_claim and not facts.held():
                self._note_agent(waiting=True)
                self._has_announced_wait = True
        except errors.TeamsError:  # the others take it for an agent that does not wait
            pass

    def end(self) -> None:
        """Remove the caller's record that it waits for work, which other agents read."""
        if self._has_announced_wait:
            try:
                self._note_agent(waiting=None)
                self._has_announced_wait = False
            except errors.TeamsError:  # the others take it for an agent that waits, until it is next seen
                pass

    def _note_agent(self, **fields: Any) -> None:
        presence.note_facts(self.store, self.team, self.caller.name, **fields)

    def _facts(self, team: Team, kinds: Collection[str] = ()) -> Facts:
        return Facts(self.store, team, self.caller, self.alarm, self.offer_times, kinds)

    def before_sleep(self, say: Callable[[str], None] | None) -> None:
        """Before the first sleep, notify the agents whose answer the caller waits for. If the caller is a leader and no
        other member has joined, call *say* with a sentence about this.

        Also load the modules that are needed after the sleep, because another version of the program may be installed
        meanwhile.
        """
        from teams_cli.tasks import overviews  # noqa: F401
        from teams_cli.views import standing

        if self._has_slept:
            return
        self._has_slept = True
        try:
            work.notify_of_blocked(self.store, self.team, self.caller.name)
        except errors.TeamsError:  # the wait does not depend on it
            pass
        if say and (hint := standing.hint_if_alone(self.store, self.team, self.caller)):
            say(f"teams: {hint}")

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
            topics.add("plan")
        if self.caller.is_human:
            topics.add("question")
        topics.update(f"task/{key}" for key in facts.held())
        if facts.leads or team.member(name):  # also for a member with a task, which may end meanwhile
            topics |= tasks.FREED
        return frozenset(topics)

    def look(self) -> Document:
        """Return what concerns the caller now and was not reported before, with the next command in `next`. Without
        news, the document is empty. The news is recorded as reported only after the answer was shown.
        """
        try:
            team = teams.get(self.store, self.team)
        except errors.TeamNotFound:
            self.alarm.ring_in(NEXT_LOOK_FOR_TEAM)
            return {}
        name = self.caller.name
        is_stranger = not (self.caller.is_human or team.member(name))
        if not is_stranger:
            require(self.store, self.team, self.caller, "read-messages")
        elif (former := team.find(name)) and former.stopped_by:
            raise errors.WrongState(f"{name} was shut down", "You are done.")
        if team.state == "closed":
            self._refuse_closed(team, is_stranger)
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

    def _refuse_closed(self, team: Team, is_stranger: bool) -> None:
        """Refuse to wait in the closed team. Unread messages, which may say why it was closed, are named first."""
        from teams_cli.tasks import overviews

        try:
            overviews.refuse_closed(self.store, team)
        except errors.WrongState as closed:
            if not is_stranger and (unread := len(self._mailbox().unread())):
                closed.hint = f"Read {counted(unread, 'message')} first: teams read-messages. {closed.hint}"
            raise

    def _news(self, team: Team, agent: presence.Agent, kinds: Collection[str]) -> tuple[list[Document], list[Document]]:
        """Return the facts and the messages to show, and add functions that record what was shown to `self._notes`."""
        facts, mailbox = self._facts(team, kinds), self._mailbox()
        if not mailbox.unread(quiet=True):
            self._announce_wait(facts)
        happened = self._unreported(facts, agent, bool(mailbox.unread()))
        if _PAGE in kinds:
            happened += self._pages()
        if any(each["what"] in ("settled", "completed") for each in happened):
            # The messages on the ended tasks are sent first, so that the results come in the same answer.
            for kind, key in self.store.owing(self.team):
                if kind == tasks.TASK.name:
                    notices.send_owed_by(self.store, self.team, tasks.TASK, key)
        if any(each["what"] != "ready" for each in happened):  # a message that says the same may have come meanwhile
            mailbox = self._mailbox()
        subjects = {each["id"] for each in happened if each["what"] != _HELD}
        messages = self._mail(team, mailbox, subjects, agent, bool(facts.held()))
        if any(each["what"] == "settled" for each in happened):
            for each in messages:  # nobody needs an answer any more, unless the message asks for one
                if steps.is_reply(each["next"] or "") and "ackBy" not in each and not steps.asks(each["message"]):
                    each["next"] = None
        if not (happened or messages):
            self._announce_wait(facts)
        return happened, messages

    def news_after_timeout(self, waited: float) -> Document:
        """Return, after the wait timed out, the news that did not end it, with a description of the state of the work.
        `timedOut` has the seconds of the wait, *waited*. If the caller waited until a number of tasks is completed,
        `timedOut` also says how many are missing.

        Raises:
            WaitRanOut: There is no such news, the caller did not wait, or any news would have ended the wait.
        """
        what = "nothing for you" if self.wanted.needed else "nothing"
        ran_out = errors.WaitRanOut(f"{what} happened within {length(waited)}")
        may_have_passed_over_news = self.wanted.needed or self.wanted.for_work
        if waited == 0 or not may_have_passed_over_news:
            raise ran_out
        anything = Wanted(claims_ready=self.wanted.claims_ready, completed=self.wanted.completed)
        news = Lookout(self.store, self.team, self.caller, self.once_shown, anything, left_out=self.left_out).look()
        if not news:
            raise ran_out
        from teams_cli.tasks import overviews
        from teams_cli.views import standing

        timed_out: Document = {"seconds": waited}
        if self.wanted.completed is not None:
            counts = overviews.overview(self.store, self.team).counts
            timed_out["tasksMissing"] = max(0, self.wanted.completed - counts["completed"])
        return {**news, "standing": standing.in_words(self.store, self.team, self.caller), "timedOut": timed_out}

    def _mailbox(self) -> inboxes.Mailbox:
        return inboxes.Mailbox(self.store, self.team, self.caller.name)

    def _mail(
        self, team: Team, mailbox: inboxes.Mailbox, subjects: set[str], agent: presence.Agent, is_busy: bool
    ) -> list[Document]:
        """Return the unread messages to show, in full, but at most `MOST_AT_ONCE`. Once they were shown, they are
        marked as read, and so are those that were left out because the caller need not see them.

        *subjects* are the ids of what the facts are about, and *is_busy* says that the caller has a task. Without facts
        and without a message that has to end the wait, return no messages, and mark none as read.
        """
        numbers = mailbox.unread(quiet=True)[:MOST_AT_ONCE]
        if not numbers:
            return []
        awaits_shutdowns = self.wanted.needed and work.awaits_shutdowns(self.store, self.team, self.caller.name)
        if self.wanted.needed and not awaits_shutdowns:  # the last answer may have come after the mailbox was read
            mailbox = self._mailbox()
            numbers = mailbox.unread(quiet=True)[:MOST_AT_ONCE]
        unread = mailbox.messages(numbers)
        if not subjects and len(unread) < MOST_AT_ONCE and self._can_wait(team, unread, awaits_shutdowns, is_busy):
            return []
        messages = fitting(unread)
        without_room = {message.number for message in unread[len(messages) :]}
        read = set(numbers) - without_room  # also those that are left out, and those that can't be read
        self._unshown = len(mailbox.unread(quiet=True)) - len(read)
        self._notes.append(lambda: mailbox.mark_read(read.difference(self.left_out)))
        # The message of a plan may come after the wait that reported it.
        reported = subjects | {key.removeprefix(PLAN) for key in agent.told if key.startswith(PLAN)}
        documents = (self._document(team, message, reported, agent) for message in messages)
        return [document for document in documents if document]

    def _document(self, team: Team, message: Message, reported: set[str], agent: presence.Agent) -> Document | None:
        """Return the message as JSON, with the next command in `next`. Return None for an outdated notice, a notice
        about a subject that facts *reported*, and a message that asks for nothing and was shown in full before.
        """
        step = mail.step_after(self.store, team, message)
        if step == steps.reply(message.id) and mail.is_settled(self.store, self.team, message):
            step = None  # nobody waits for a reply about tasks that have ended
        was_shown = step is None and mail.was_shown(agent, message)
        repeats_a_fact = message.from_ == SYSTEM and message.about in reported
        if was_shown or repeats_a_fact or mail.is_outdated(self.store, self.team, self.caller.name, message):
            return None
        return {**message.to_document(), "message": mail.true_text(self.store, self.team, message), "next": step}

    def _can_wait(self, team: Team, messages: list[Message], awaits_shutdowns: bool, is_busy: bool) -> bool:
        """Return whether the wait can go on, because none of the *messages* has to end it. A message need not end the
        wait if it is for later, or if it asks for nothing that the caller has to be told at once.
        """
        asking = [message for message in messages if not mail.is_for_later(self.store, self.team, message)]
        if self.wanted.for_work and not is_busy:
            asking = [message for message in asking if mail.asks_for_something(self.store, team, message)]
        if self.wanted.needed:  # what a member tells several others need not end the leader's wait
            asking = [
                message
                for message in asking
                if len(message.recipients or ()) < 2 or message.ack_by or steps.is_question(message.message)
            ]
        return not asking or (self.wanted.needed and work.can_wait(asking, awaits_shutdowns))

    def _unreported(self, facts: Facts, agent: presence.Agent, has_mail: bool) -> list[Document]:
        """Return the facts that hold now and were not reported to the caller before. The offer of a ready task is
        recorded at once, but the facts count as reported only after the answer was shown.
        """
        reported = facts.still_reported(agent, ready_again=self.wanted.claims_ready)
        present, leading = facts.overdue(agent), None
        if facts.leads or self.caller.is_human or self.wanted.completed:
            from teams_cli.views.leading import Leading  # loads modules that other members do not need

            leading = Leading(facts, self.alarm, self.wanted.completed)
            present |= leading.completed(reported)
        ready, offer = facts.ready(reported)
        present |= ready | facts.done(reported)
        if leading:
            present |= leading.present(reported)
        present |= self._held(facts, reported, has_mail)
        if offer:  # recorded first, so that the others that wait leave the task to the caller
            self._note_agent(offered=offer, offered_at=teams.now(self.store))
            if facts.must_give_up(offer):
                self._note_agent(offered=None, offered_at=None)
                offer = None
                new_ready = {key for key in present if key.startswith(work.READY)} - reported
                present = {key: each for key, each in present.items() if key not in new_ready}
        unreported = [each for key, each in present.items() if each and key not in reported]
        keys_recorded = {key for key in agent.told if not mail.is_message(key)}
        if unreported or keys_recorded != set(present):  # the record also changes if a fact no longer holds
            self._notes.append(lambda: self._note_shown(sorted(present), offer))
        return list({each["id"]: each for each in unreported}.values())  # several new tasks share one fact

    def _held(self, facts: Facts, reported: set[str], has_mail: bool) -> FactsByKey:
        """Return the fact that the caller has a task already, if the caller waits in order to claim one. It is reported
        only once, because the caller may be waiting for something outside the team. It is not reported together with
        mail, because the caller may have waited for the mail. If it is not reported now, its earlier key stays
        recorded.
        """
        reported_held: FactsByKey = {key: None for key in reported if key.startswith(work.HELD)}
        if not self.wanted.claims_ready or has_mail or not (facts.may_claim and facts.held()):
            return reported_held
        held = work.held_task(self.store, facts.team, self.caller.name)
        return reported_held if held is None else {held.key: fact(_HELD, held.task.id, held.text, held.step)}

    def _note_shown(self, keys: list[str], offer: str | None) -> None:
        """Record the *keys* of the facts that the agent was shown, replacing the earlier keys. Of the messages that
        were shown in full, only the newest ids are kept. *offer* is the key of the task that was offered; if it is
        None, an earlier offer is removed.
        """
        offered: Document = {"ready_at": teams.now(self.store)} if offer else {"offered": None, "offered_at": None}
        name, fresh = self.caller.name, presence.Agent(agent=self.caller.name)

        def change(agent: presence.Agent) -> presence.Agent:
            message_ids = list(filter(mail.is_message, agent.told))[-MOST_AT_ONCE:]
            return agent.having(told=[*keys, *message_ids], **offered)

        upsert(self.store, self.team, presence.AGENT, name, fresh, change)

    def _pages(self) -> list[Document]:
        """Return facts for the pages that others changed since the caller last looked: one each for the first five."""
        from teams_cli.teams import pages

        changed = pages.unshown(self.store, self.team, self.caller.name, self._notes.append)
        happened = [fact("page", page.key, page.headline, steps.read_page(page.key)) for page in changed[:_MOST_PAGES]]
        if len(changed) > _MOST_PAGES:
            happened.append(fact("page", "", f"{len(changed) - _MOST_PAGES} more pages changed", "teams shared"))
        return happened


def _with_next(happened: list[Document], messages: list[Document], default_step: Callable[[], str]) -> Document:
    """Return an answer with the facts that *happened*, the *messages*, and the next command. It is the first command
    that a message names, or else a fact, or else the command that *default_step* returns.
    """
    steps_named = [each["next"] for each in [*messages, *happened] if each["next"]]
    return {"happened": happened, "messages": messages, "next": steps_named[0] if steps_named else default_step()}
