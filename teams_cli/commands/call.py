"""One call of a command: the store, the caller, the team; the attempt of a change; and answers that are no document."""

from __future__ import annotations

import os
from _thread import allocate_lock  # `threading` and `weakref` are more to import than a command needs
from _weakref import ref
from zlib import crc32

from teams_cli import environment, errors
from teams_cli.store.contract import Store
from teams_cli.store.files import disk, locks
from teams_cli.teams import permission, presence, teams
from teams_cli.teams.permission import verify
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, Protocol, TypeVar

    from teams_cli.agents.overlaps import Teller
    from teams_cli.store.pace import Alarm
    from teams_cli.teams.config import Config
    from teams_cli.teams.permission import Caller
    from teams_cli.teams.presence import OnceTold

    T = TypeVar("T")
    Words = Callable[[Any], list[Any]]

    class Person(Protocol):
        """The person at the terminal, as the console sees them."""

        def ask(self, asker: str, question: str, left: Callable[[], float], open: Callable[[], bool]) -> str | None:
            """Show a question and take the answer: blank for a skip; None when its time was over first.

            Raises:
                Gone: There is nobody any more.
            """

        def is_here(self) -> bool:
            """Whether there is somebody at this terminal who could answer, and nothing else reads what they type."""

        def beside(self) -> Any:
            """For the length of a `with` block, speak beside what the command itself prints."""

        def agrees(self, question: str) -> bool:
            """Ask for a yes; False where there is nobody at a terminal to say it."""

        def tell(self, line: str) -> None:
            """Show a line."""

        def progress(self) -> Any:
            """Show the progress of a run, for the length of a `with` block."""


_NEVER = 3600.0


class Call:
    """The surroundings of a command, besides its parameters. *sources* says where each setting of the call came from;
    *say* shows a line of talk to the person, where there is one; agents that are started inherit from *environ*.
    """

    _teller: Teller | None = None
    _last: int | None = None
    """The number of the last message, once it was looked up for the answer."""

    def __init__(
        self,
        store: Store,
        config: Config,
        caller: Caller | None = None,
        team: str = "",
        sources: dict[str, tuple[str, str]] | None = None,
        say: Callable[[str], None] | None = None,
        environ: Mapping[str, str] | None = None,
        person: Callable[[], Person] | None = None,
        directory: str = "",
    ) -> None:
        self.store = store
        self.config = config
        self.caller = caller
        self.said_team = team
        self._meant_unsaid = ""
        """The team that was found though nobody named it, so that the next command finds it, too."""
        self.sources = sources or {}
        self.say = say or (lambda line: None)
        self.environ = environ or {}
        self._person = person
        self._known_person: Person | None = None
        self._seen_in: Team | None = None
        """The team as it was when the caller was last noted as seen."""
        self._seen: presence.Agent | None = None
        """The caller's record as of the beginning of the command, or of its last wait."""
        self.said_directory = directory
        self.elsewhere = False
        """The caller is elsewhere than this process: the directory says nothing about its work."""
        self.show: Callable[[Any], Any] = lambda document: None
        """Shows a document to who started a server, while it runs."""
        self.begin_answer: Callable[[Any], bool] = lambda document: False
        """Shows a document before a wait, if the rest of the answer can follow on it: then True."""
        self.problems: list[errors.TeamsError] = []
        self.words: Words | None = None
        """The function that turns the answer into lines for a person, if it is not the command's own."""
        self.more = ""
        """A line about what a list left out, and how to get it."""
        self.room = 0
        """Bytes that the answer may have, where who reads it would lose what is longer; 0 for any."""
        self.follows = ""
        """The command that follows, where the answer is told in words."""
        self.done = ""
        """The text instead of that when nothing is left to do."""
        self._to_note: list[Callable[[], object]] = []
        self.tells_news = False
        """Whether the answer has news that the caller must not miss if it cancels meanwhile."""
        self.is_given_up: Callable[[], bool] = lambda: False
        """Whether nobody waits for the answer any more: the client cancelled its request, or has gone."""
        if store.on_append is None:
            store.on_append = self._appended

    @property
    def person(self) -> Person | None:
        """The person at the terminal; None where a program asks."""
        if self._person and self._known_person is None:
            self._known_person = self._person()
        return self._known_person

    @property
    def team(self) -> str:
        """The name of the team to act in: the one that was said, or the only one.

        Raises:
            NoTeam: None was said, and there is none, or more than one that is open.
        """
        if not self.said_team:
            known = self.likely_teams()
            if len(known) != 1:
                hint = f"Teams: {', '.join(known[:20])}." if known else "Create one: teams spawn-team NAME"
                raise errors.NoTeam("say which team", f"Use --team NAME or TEAMS_TEAM. {hint}")
            self.said_team = known[0]
            self._meant_unsaid = known[0]
        return self.said_team

    def given(self, setting: str) -> str:
        """The value of `team` or `agent`, if the command line has it as an option; else empty."""
        value, source = self.sources.get(setting, ("", ""))
        return value if source == "flag" else ""

    def in_team(self, step: str) -> str:
        """The step, with the team in its commands where the caller could mean another by saying none."""
        unsaid = "" if self.given("team") else self.sources.get("team", ("", ""))[0]
        if "teams " not in step or not self.said_team or self.said_team in (unsaid, self._meant_unsaid):
            return step
        if not unsaid and self.only_team() == self.said_team:
            return step
        import re  # dear, and wanted by few

        from teams_cli import commands

        def named(match: re.Match[str]) -> str:
            command = commands.every().get(match[1])
            return f"{match[0]} --team {self.said_team}" if command and command.in_team else match[0]

        return re.sub(r"\bteams (?!join-team|spawn-team)([a-z]+(?:-[a-z]+)*)\b(?! --team)", named, step)

    def name_team(self, document: Any) -> None:
        """Put the team, where it has to be said, into the commands that follow on a document and on its parts."""
        if not isinstance(document, dict):
            return
        for each in (document, *document.get("messages", ()), *document.get("happened", ())):
            if isinstance(each, dict) and isinstance(each.get("next"), str):
                each["next"] = self.in_team(each["next"])

    def likely_teams(self) -> list[str]:
        """The teams that may be meant where none is said: of several, those that the caller is in."""
        likely = self.open_teams()
        return (len(likely) > 1 and self.own_teams(likely)) or likely

    def own_teams(self, among: list[str]) -> list[str]:
        """The teams of which the caller is a member; none for the human."""
        if self.caller is None or self.caller.is_human:
            return []
        return [team for team in among if self._is_in(team)]

    def open_teams(self) -> list[str]:
        """The teams that are not closed, or all if there is none such."""
        return environment.likely_teams(self.store.teams(), self._is_open)

    def only_team(self) -> str:
        """The team to act in where none is said; empty if it can't be told."""
        likely = self.likely_teams()
        return likely[0] if len(likely) == 1 else ""

    def name_sources(self) -> dict[str, tuple[str, str]]:
        """Each setting of the call and where it came from; the team that is meant where none is said is the `only`."""
        if not self.sources["team"][0] and (only := self.only_team()):
            return {**self.sources, "team": (only, "only")}
        return self.sources

    def _is_in(self, team: str) -> bool:
        try:
            return teams.get(self.store, team).member(self.agent) is not None
        except errors.TeamsError:  # damaged: whoever means it has to say so
            return False

    def _is_open(self, team: str) -> bool:
        try:
            return teams.get(self.store, team).state != "closed"
        except errors.TeamsError:  # damaged: whoever means it has to say so
            return True

    @property
    def directory(self) -> str:
        """The directory of the caller.

        Raises:
            InvalidValue: The directory was removed.
        """
        if not self.said_directory:
            raise errors.InvalidValue("the current directory is gone", "Change to one that exists.")
        return self.said_directory

    @property
    def workplace(self) -> str:
        """The directory in which the caller works, if the call tells it; else empty."""
        return "" if self.elsewhere else self.said_directory

    @property
    def agent(self) -> str:
        """The name of the caller.

        Raises:
            NoIdentity: Nobody said who calls.
        """
        return self.known.name

    @property
    def known(self) -> Caller:
        """The caller, who said who it is.

        Raises:
            NoIdentity: Nobody said who calls.
        """
        if self.caller is None:
            raise errors.NoIdentity("say who you are", permission.HOW_TO_SAY_WHO)
        return self.caller

    def load_team(self) -> Team:
        """The team to act in."""
        return teams.get(self.store, self.team)

    def ask_human(self, operation: str, about: str) -> bool:
        """Ask the human whether the caller may do that; False where there is no team whose questions they answer."""
        from teams_cli.questions import answering

        team = self.said_team or self.only_team()
        return team in self.store.teams() and answering.ask_human(self.store, team, self.agent, operation, about)

    def refuse_reading(self, command: str) -> None:
        """Refuse a member what rules of the team or the user's keep it from looking at.

        Raises:
            NotAllowed, NeedsHuman: As for changes.
        """
        if self.caller is None or self.caller.is_human:
            return
        try:
            team = self.load_team()
        except errors.TeamsError:  # the command itself says so, if it needs it
            return
        if team.roles or self.config.permission or self.config.agent:
            permission.refuse_reading(team, self.caller, command)

    def _appended(self, team: str, recipients: Sequence[str], message: Any, by: str) -> None:
        """Resume those of the recipients of a message that `teams` started and that are idle; have the waker look after
        those that sit in terminals. The message is stored: failing here is no failure of who sent it.
        """
        from teams_cli.agents import sessions
        from teams_cli.agents.seats import is_seated

        try:
            seated = is_seated(self.store.root, team)
            if seated or any(sessions.find(self.store, team, name) for name in recipients):
                from teams_cli.agents import waking

                waking.wakes(self.store, self.config, self.environ, self.problems)(team, recipients, message, by)
        except errors.TeamsError as problem:
            self.problems.append(problem)

    def try_to(self, follow_up: Callable[[], T]) -> T | None:
        """Do what follows a change that is made, and return its value: failing is reported, and is no refusal."""
        try:
            return follow_up()
        except errors.TeamsError as problem:
            self.problems.append(problem)
            return None

    def once_told(self, note: Callable[[], object]) -> None:
        """Have *note*, which notes that the caller was told something, be run once the answer is out."""
        self.tells_news = True
        self.once_answered(note)

    def once_answered(self, note: Callable[[], object]) -> None:
        """Have *note*, which is about the answer and not about news in it, be run once the answer is out."""
        self._to_note.append(note)

    @property
    def has_to_note(self) -> bool:
        """Whether something is to be noted once the answer is out."""
        return bool(self._to_note)

    def note_told(self) -> list[errors.TeamsError]:
        """Note what the caller was told, for the face that has brought the answer out; what can't be noted, it is told
        again.
        """
        problems = []
        while self._to_note:
            try:
                self._to_note.pop(0)()
            except errors.TeamsError as problem:
                problems.append(problem)
        return problems

    def tending(self) -> Callable[[Alarm], None] | None:
        """What a wait does before each look, to have landings go on; None while the team has none."""
        if not self._has_landings():
            return None
        from teams_cli.commands.landing_queue import tending

        return tending(self)

    def start_landing(self) -> None:
        """Start the lander, which may have been killed, if landings are open."""
        if self._has_landings():
            from teams_cli.commands.landing_queue import start

            start(self)

    def _has_landings(self) -> bool:
        try:
            return "landing" in self.store.holds(self.team, "landing")
        except errors.TeamsError:  # the command says so, if it concerns it
            return False

    def say_what_follows(self) -> None:
        """Say what the caller does next: its task, another, or waiting."""
        from teams_cli.tasks import overviews
        from teams_cli.views import work

        self.follows = work.next_step(self.store, self.load_team(), self.known)
        self.done = "" if self.follows else overviews.DONE

    def unexplained(self, *rules: str) -> list[str]:
        """Return those of the rules that no answer has explained to the caller; they are noted once this one is out."""
        explained = presence.load(self.store, self.team, self.agent).explained or []
        new = [rule for rule in rules if rule not in explained]
        if new:
            rules_known = [*explained, *new]
            self.once_told(lambda: presence.note_explained(self.store, self.team, self.agent, rules_known))
        return new

    def settle(self, team: str = "") -> None:
        """Send what earlier changes in the team still owe, because who made them was killed or could not send it; in
        the one to act in, where none is named.
        """
        try:
            team = team or self.said_team or self.only_team()
            owing = self.store.owing(team) if team else ()
        except errors.TeamsError:  # somebody else will: what is asked for now does not hang on it
            return
        for name, key in owing:
            from teams_cli import kinds
            from teams_cli.messages import notices

            if kind := kinds.BY_NAME.get(name):
                notices.settle(self.store, team, kind, key)

    def note_return(self) -> None:
        """Note that the caller is alive before its command looks at claims, if it was silent for a while: else it would
        be asked itself whether it is at work.
        """
        if self.caller is None or self.caller.is_human or not self.said_team:
            return
        try:
            self._seen = presence.load(self.store, self.said_team, self.caller.name)
        except errors.TeamsError:
            return
        if self._seen.last_seen and presence.was_silent(self.store, self._seen):
            self.note_seen(refused=True)

    def note_seen(self, reading: bool = False, refused: bool = False) -> float:
        """Note that the caller is alive, and keep its tasks from lapsing; in how many seconds to do so again. Of who
        was *refused* as little is written as that takes.

        What it called for is done, so failing here is no failure.
        """
        if self.caller is None or self.caller.is_human or not self.said_team:
            return _NEVER
        try:
            team = self._seen_in = teams.get(self.store, self.said_team)
            if team.state == "closed" or not team.member(self.caller.name):
                return _NEVER
            verify(team, self.caller)
            agent = self._seen or presence.load(self.store, team.name, self.caller.name)
            due = not presence.renewed_lately(self.store, team, agent)
            if due:
                agent = self._seen = self._renewed(team, agent, reading, refused)
            top = environment.checkout_around(self.workplace)
            if not (reading or refused):
                self._note_work(agent, top, due)
                self._notify(team)
            return presence.every(team, environment.is_worktree(top))
        except errors.TeamsError:
            return _NEVER

    def note_work(self, agent: presence.Agent) -> None:
        """Note that the caller is at work, and where; having committed, its branch is compared with others'."""
        self._note_work(agent, environment.checkout_around(self.workplace))

    def _note_work(self, agent: presence.Agent, top: str, due: bool = False) -> None:
        is_own = environment.is_worktree(top)
        worktree, commit, checkout = (top, environment.commit_in(top), "") if is_own else ("", "", top)
        seen = presence.saw(
            self.store, self.team, agent.agent, known=agent, worktree=worktree, commit=commit, checkout=checkout
        )
        if (due or seen is not agent) and seen.worktree:
            self.tell_overlaps()

    def tell_overlaps(self) -> None:
        """Tell the caller, if it was seen in a worktree, and those with whose branches its own conflicts, each once."""
        if presence.load(self.store, self.team, self.agent).worktree:
            from teams_cli.agents import overlaps

            if self._teller is None or self._teller.agent != self.agent:
                self._teller = overlaps.Teller(self.store, self.team, self.agent)
            if why := self._teller.look():  # while the caller waits, only at those that moved since
                self.say(f"your work could not be compared with that of others: {why}")

    def _renewed(self, team: Team, agent: presence.Agent, reading: bool, refused: bool) -> presence.Agent:
        """The caller's record after its leases were renewed."""
        from teams_cli.tasks import leases

        agent, at_their_end = leases.renew(self.store, team, agent, reading, refused)
        for task in at_their_end:
            self.say(f"the lease of {task.id} was about to expire, and is renewed; your commands and waits renew it")
        return agent

    def notify(self) -> None:
        """See to it that what happens in the team is told outside, where the person wants that."""
        self._notify(self.load_team())

    def _notify(self, team: Team) -> None:
        if any(key.startswith("notify") for key in team.settings):
            from teams_cli.agents import notifying

            self.try_to(lambda: notifying.start(self.store, team, self.environ))

    def keep_alive(self, team: str) -> float:
        """Note that the caller is seen while it waits inside the tool: it is there, with a task or without."""
        self._seen = None
        return self.note_seen() if team == self.said_team else _NEVER

    def losses(self) -> str:
        """Lines about the tasks that the caller lost since its last notice; empty if there are none."""
        if self._seen is None or self._seen_in is None:
            return ""
        from teams_cli.messages.messages import MESSAGE
        from teams_cli.views import reminders

        try:
            self._last = self.store.last(self._seen_in.name, MESSAGE)
            return reminders.losses(self.store, self._seen_in.name, self._seen, self.once_told, self._last)
        except errors.TeamsError:  # the answer itself is given
            return ""

    def reminder(self, once_told: OnceTold) -> str:
        """What waits for the caller that it was not told of yet, in a line; empty if there is nothing. Mail is what
        follows then, whatever did before.
        """
        if self.caller is None or self.caller.is_human or not self.said_team:
            return ""
        from teams_cli.views import reminders

        try:
            team = self._seen_in or self.load_team()
            verify(team, self.caller)
            if not team.member(self.agent):
                return ""
            told = reminders.reminder(self.store, team, self.caller.name, once_told, self._last)
        except errors.TeamsError:  # the answer itself was given
            return ""
        if self.follows and told.has_mail:
            from teams_cli.views import steps

            self.follows = steps.READ
        return told.text


class Outcome:
    """An answer that goes with another exit status than 0."""

    def __init__(self, document: Any, status: int) -> None:
        self.document = document
        self.status = status


class Stream:
    """An answer that comes in parts, each as soon as it is there; of a live one each takes the place of the last, and
    *output_of* gives what an agent printed or did, and *answer* takes what the person says to a question, by its id.
    """

    def __init__(
        self,
        parts: Iterator[dict[str, Any]],
        live: bool = False,
        output_of: Callable[[str], list[Any]] = lambda agent: [],
        answer: Callable[[str, str], str] | None = None,
    ) -> None:
        self.parts = parts
        self.live = live
        self.output_of = output_of
        self.answer = answer


class Service:
    """An answer that is a server to run until it ends: *module*, below the package, has `run(call, settings) -> int`;
    *extra* brings what it needs.
    """

    def __init__(self, module: str, extra: str, settings: Mapping[str, Any]) -> None:
        self.module = module
        self.extra = extra
        self.settings = settings


_LARGEST = 4 << 20
_UNDER_WAY: dict[str, ref[Attempt]] = {}
"""The attempts of this process, by their files."""
_BEGINNING = allocate_lock()


class Attempt:
    """A command of these *words*, for a `with` block that makes its change under the uid."""

    def __init__(self, call: Call, *words: str) -> None:
        self._held: int | None = None
        self._call = call
        self._words = "\0".join([call.store.address, call.team, call.agent, *words]).encode(errors="surrogatepass")
        self._path = f"{call.store.root}/tmp/command-{crc32(self._words):08x}"

    def __enter__(self) -> str:
        fresh = f"c-{os.urandom(9).hex()}"
        if not os.path.isdir(self._call.store.root):  # a command that will be refused makes no root
            return fresh
        with _BEGINNING:
            return self._begun(fresh)

    def _begun(self, fresh: str) -> str:
        """The uid to make the change under: that of an attempt that was not answered, or the *fresh* one.

        Raises:
            Busy: Nobody waits for the answer any more, so that a repeat may have begun before.
        """
        if self._call.is_given_up():
            raise errors.Busy("the request was cancelled", "Nothing was changed. Repeat it.")
        try:
            self._held = locks.hold(self._path, self._call.store.root)
            uid, words = self._content()
            uid = uid if words == self._words else fresh
            if self._held is None:  # another is at it: two at once mean it twice, unless that was cancelled
                other = _UNDER_WAY.get(self._path, lambda: None)()
                return uid if other and other._call.is_given_up() else fresh
            _UNDER_WAY[self._path] = ref(self)
            os.ftruncate(self._held, 0)
            os.pwrite(self._held, f"{uid}\n".encode() + self._words, 0)
        except (OSError, errors.TeamsError):  # then its repeat is not known
            return fresh
        return uid

    def __exit__(self, kind: object, failure: BaseException | None, *_: object) -> None:
        if failure is None:
            self._call.once_answered(self._end)
        elif isinstance(failure, errors.TeamsError) and not isinstance(failure, errors.OutcomeUnknown):
            self._end()

    def _content(self) -> tuple[str, bytes]:
        """Under which uid it was tried before, and its words."""
        head, _, words = disk.read_file(self._path, _LARGEST).partition(b"\n")
        return head.decode(errors="replace"), words

    def _end(self) -> None:
        disk.discard(self._path)
        self._release()

    def _release(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            os.close(held)

    def __del__(self) -> None:
        self._release()
