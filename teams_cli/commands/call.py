"""One call of a command: its store, its caller and its team. Also how to repeat a change whose answer was lost, and
answers that are not documents.
"""

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

    from teams_cli.agents.overlaps import ConflictWatch
    from teams_cli.store.pace import Alarm
    from teams_cli.teams.config import Config
    from teams_cli.teams.permission import Caller
    from teams_cli.teams.presence import OnceShown

    T = TypeVar("T")
    Words = Callable[[Any], list[Any]]

    class Person(Protocol):
        """The part of `cli.person.PersonTerminal` that commands use."""

        def ask(self, asker: str, question: str, left: Callable[[], float], open: Callable[[], bool]) -> str | None: ...

        def is_here(self) -> bool: ...
        def beside(self) -> Any: ...
        def agrees(self, question: str) -> bool: ...
        def tell(self, line: str) -> None: ...
        def progress(self) -> Any: ...


_MOST_EXPLAINED = 100
_NEVER = 3600.0
"""The seconds until the next sign of life of a caller that need not give any."""


class Call:
    """The context of a command: who runs it, and where; and what the command adds to its answer.

    *sources* maps each setting, such as `team`, to its value and the source of the value. The function *say* shows a
    line to the person. Agents that the command starts inherit *environ*.
    """

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
        self.sources = sources or {}
        self.say = say or (lambda line: None)
        self.environ = environ or {}
        self.signs = SignsOfLife(self)

        # What is found out, or chosen, while the command runs.
        self.given_team = team
        self.default_team = "" if self.given("team") else self.sources.get("team", ("", ""))[0]
        """The team in which the caller's next command acts if it names none; "" if it then looks for its team."""
        self._team_without_name = ""
        """The team that was found when none was named. The next command finds it, too."""
        self.current_directory = directory
        self._person = person
        self._known_person: Person | None = None
        self._last_message: int | None = None
        """The number of the team's last message, once it was looked up for the answer."""

        # What the command line or a server sets before the command runs.
        self.elsewhere = False
        """Whether the caller works elsewhere than this process, so that the directory says nothing about its work."""
        self.show: Callable[[Any], Any] = lambda document: None
        """Shows a document to the person who started a server, while the server runs."""
        self.begin_answer: Callable[[Any], bool] = lambda document: False
        """Shows the first part of an answer before a wait and returns True, or False if an answer must come whole."""
        self.max_bytes = 0
        """How many bytes of an answer its reader takes before it loses the rest; 0 if there is no limit."""
        self.is_given_up: Callable[[], bool] = lambda: False
        """Whether nobody waits for the answer any more: the client cancelled its request, or has gone."""

        # What the command adds to its document.
        self.problems: list[errors.TeamsError] = []
        self.words: Words | None = None
        """The function that turns the answer into lines for a person, if it is not the command's own."""
        self.remark = ""
        """A line after the answer: what a list left out and how to get it, or why a wait ended without news."""
        self.next_step = ""
        """The next command, for answers in words."""
        self.done_text = ""
        """The text that is shown in place of a next command when nothing is left to do."""
        self.reminds = False
        """Whether a reminder of mail follows although the command itself shows mail, because it has shown none."""
        self.tells_news = False
        """Whether the answer has news. The news does not count as shown if the caller cancels the request meanwhile."""
        self.left_out: set[int] = set()
        """The numbers of messages for which a server's answer has no room. They stay unread."""
        self._to_note: list[Callable[[], object]] = []
        store.on_append = self._wake_recipients

    @property
    def person(self) -> Person | None:
        """The person at the terminal; None if a program makes the call."""
        if self._person and self._known_person is None:
            self._known_person = self._person()
        return self._known_person

    @property
    def team(self) -> str:
        """The name of the team to act in: the one that was named, or else the only one of the `likely_teams`.

        Raises:
            NoTeam: No team was named, and not exactly one is open.
        """
        if not self.given_team:
            likely = self.likely_teams()
            if len(likely) != 1:
                hint = f"Teams: {', '.join(likely[:20])}." if likely else "Create one: teams spawn-team NAME"
                raise errors.NoTeam("say which team", f"Use --team NAME or TEAMS_TEAM. {hint}")
            self.given_team = self._team_without_name = likely[0]
        return self.given_team

    def given(self, setting: str) -> str:
        """Return the value of the setting `team` or `agent` if the command line has it as an option, else ""."""
        value, source = self.sources.get(setting, ("", ""))
        return value if source == "flag" else ""

    def in_team(self, step: str) -> str:
        """Return the text *step*, with `--team` added to each command that would otherwise act in another team."""
        if "teams " not in step or not self.given_team:
            return step
        if self.given_team in (self.default_team, self._team_without_name):  # the next command finds this team, too
            return step
        if not self.default_team and self.only_team() == self.given_team:
            return step
        import re  # slow to import, and rarely needed

        from teams_cli import commands

        def with_team(match: re.Match[str]) -> str:
            command = commands.every().get(match[1])
            return f"{match[0]} --team {self.given_team}" if command and command.in_team else match[0]

        return re.sub(r"\bteams (?!join-team|spawn-team)([a-z]+(?:-[a-z]+)*)\b(?! --team)", with_team, step)

    def name_team(self, document: Any) -> None:
        """Add `--team` to each next command in the *document* that would otherwise act in another team."""
        if not isinstance(document, dict):
            return
        for each in (document, *document.get("messages", ()), *document.get("happened", ())):
            if isinstance(each, dict) and isinstance(each.get("next"), str):
                each["next"] = self.in_team(each["next"])

    def likely_teams(self) -> list[str]:
        """Return the teams in which a command may have to act if it names none: the open teams. If several teams are
        open, return only those that the caller is a member of, if there are any.
        """
        open_teams = self.open_teams()
        own_teams = self.own_teams(open_teams) if len(open_teams) > 1 else []
        return own_teams or open_teams

    def own_teams(self, among: list[str]) -> list[str]:
        """Return the teams in *among* that the caller is a member of; empty for the human, who is in all teams."""
        if self.caller is None or self.caller.is_human:
            return []
        return [name for name in among if (team := self._readable(name)) and team.member(self.agent)]

    def open_teams(self) -> list[str]:
        """Return the teams that are not closed; if all are closed, all teams."""

        def is_open(name: str) -> bool:
            team = self._readable(name)
            return team is None or team.state != "closed"

        return environment.likely_teams(self.store.teams(), is_open)

    def _readable(self, name: str) -> Team | None:
        """Return the team, or None if its file can't be read."""
        try:
            return teams.get(self.store, name)
        except errors.TeamsError:
            return None

    def only_team(self) -> str:
        """Return the team to act in if none is named. Return "" if there is no such team, or several."""
        likely = self.likely_teams()
        return likely[0] if len(likely) == 1 else ""

    def name_sources(self) -> dict[str, tuple[str, str]]:
        """Map each setting of the call to its value and source. If no team was named and only one can be meant, the
        source of the team is `only`.
        """
        if not self.sources["team"][0] and (only_team := self.only_team()):
            return {**self.sources, "team": (only_team, "only")}
        return self.sources

    @property
    def directory(self) -> str:
        """The directory of the caller. InvalidValue is raised if it was removed."""
        if not self.current_directory:
            raise errors.InvalidValue("the current directory is gone", "Change to one that exists.")
        return self.current_directory

    @property
    def workplace(self) -> str:
        """The directory in which the caller works; "" if it is not known."""
        return "" if self.elsewhere else self.current_directory

    @property
    def agent(self) -> str:
        """The name of the caller. NoIdentity is raised if the caller gave none."""
        return self.known_caller.name

    @property
    def known_caller(self) -> Caller:
        """The caller. NoIdentity is raised if the caller gave no name."""
        if self.caller is None:
            raise errors.NoIdentity("say who you are", permission.HOW_TO_SAY_WHO)
        return self.caller

    def load_team(self) -> Team:
        """Load the team to act in."""
        return teams.get(self.store, self.team)

    def ask_human(self, operation: str, about: str) -> bool:
        """Ask the human whether the caller may do an operation. Return False if not, or if the caller has no team."""
        from teams_cli.questions import answering

        team = self.given_team or self.only_team()
        return team in self.store.teams() and answering.ask_human(self.store, team, self.agent, operation, about)

    def refuse_reading(self, command: str) -> None:
        """Refuse the *command*, which only reads, if a rule of the team or of the user forbids it to the caller."""
        if self.caller is None or self.caller.is_human:
            return
        try:
            team = self.load_team()
        except errors.TeamsError:  # the command itself is refused if it needs the team
            return
        if team.roles or self.config.permission or self.config.agent:  # else no rule can forbid reading
            permission.refuse_reading(team, self.caller, command)

    def _wake_recipients(self, team: str, recipients: Sequence[str], message: Any, by: str) -> None:
        """Wake the *recipients* of a message: resume idle agents that `teams` started, and let the waker wake clients
        in terminals. The message is stored, so a failure is only reported.
        """
        from teams_cli.agents import sessions
        from teams_cli.agents.seats import is_seated

        def wake() -> None:
            has_terminals = is_seated(self.store.root, team)
            if has_terminals or any(sessions.find(self.store, team, name) for name in recipients):
                from teams_cli.agents import waking

                is_output = message.type == "output"
                present = teams.get(self.store, team)
                waking.wake(self.store, present, self.config, list(recipients), by, self.environ, is_output)

        self.try_to(wake)

    def try_to(self, follow_up: Callable[[], T]) -> T | None:
        """Call *follow_up* after a change, and return its value. The change is already made. So if *follow_up* fails,
        the error is only reported to the caller, and the result is None.
        """
        try:
            return follow_up()
        except errors.TeamsError as problem:
            self.problems.append(problem)
            return None

    def messages_of_problems(self) -> list[str]:
        """Return what was wrong while the command ran, although it was not refused. Each message is there once."""
        return list(dict.fromkeys(problem.message for problem in self.problems))

    def once_shown(self, note: Callable[[], object]) -> None:
        """Register a function that records that the caller was shown news. It is called once the answer is written. A
        caller without the token of its name does not get the news of that agent marked as shown.
        """
        self.tells_news = True
        if self._is_verified():
            self.once_answered(note)

    def _is_verified(self) -> bool:
        """Whether the caller has the token of its name, if the team asks for tokens."""
        try:
            if self.caller:
                verify(self.load_team(), self.caller)
        except errors.NotAllowed:
            return False
        except errors.TeamsError:  # there is no such team, so it asks for nothing
            pass
        return True

    def once_answered(self, note: Callable[[], object]) -> None:
        """Register a function to be called once the answer is written. `once_shown` is for news that was shown."""
        self._to_note.append(note)

    @property
    def has_notes(self) -> bool:
        """Whether functions wait to be called once the answer is written."""
        return bool(self._to_note)

    def record_shown(self) -> list[errors.TeamsError]:
        """Call all functions that were registered to be called once the answer is written, and return their errors. If
        a function could not record that news was shown, a later answer shows the news again.
        """
        problems = []
        while self._to_note:
            try:
                self._to_note.pop(0)()
            except errors.TeamsError as problem:
                problems.append(problem)
        return problems

    def tending(self) -> Callable[[Alarm], None] | None:
        """Return a function that keeps the merge queue going. A wait calls it each time before it looks for news.
        Return None if the team has no landings.
        """
        if not self._has_landings():
            return None
        from teams_cli.commands.completions import tending

        return tending(self)

    def start_landing(self) -> None:
        """If landings are open, start the process that merges branches. It may have been killed."""
        if self._has_landings():
            from teams_cli.commands.completions import start_lander

            start_lander(self)

    def _has_landings(self) -> bool:
        try:
            return "landing" in self.store.holds(self.team, "landing")
        except errors.TeamsError:  # the command itself is refused if it needs the team
            return False

    def set_next_step(self) -> None:
        """Set the next command, which continues the work of the caller or waits. If nothing is left to do, set the text
        that says this.
        """
        from teams_cli.tasks import overviews
        from teams_cli.views import work

        self.next_step = work.next_step(self.store, self.load_team(), self.known_caller)
        self.done_text = "" if self.next_step else overviews.DONE

    def unexplained(self, *keys: str) -> list[str]:
        """Return the *keys* that no answer has explained to the caller yet. A key stands for a rule or a result. Once
        this answer was shown, they count as explained. Only the latest keys are remembered.
        """
        explained = presence.load(self.store, self.team, self.agent).explained or []
        new_keys = [key for key in keys if key not in explained]
        if new_keys:
            latest = [*explained, *new_keys][-_MOST_EXPLAINED:]
            self.once_shown(lambda: presence.note_facts(self.store, self.team, self.agent, explained=latest))
        return new_keys

    def settle(self, team: str = "") -> None:
        """Send notices of earlier changes that were not sent, for example because a process was killed."""
        try:
            team = team or self.given_team or self.only_team()
            owing = self.store.owing(team) if team else ()
        except errors.TeamsError:  # a later command sends them: this one does not depend on them
            return
        for kind_name, key in owing:  # of each record that owes notices
            from teams_cli import kinds
            from teams_cli.messages import notices

            if kind := kinds.BY_NAME.get(kind_name):
                notices.send_owed_by(self.store, team, kind, key)

    def notify(self, team: Team) -> None:
        """Start the process that runs the person's command for events of the team, if a setting names a command."""
        if any(key.startswith("notify") for key in team.settings):
            from teams_cli.agents import notifying

            self.try_to(lambda: notifying.start(self.store, team, self.environ))

    def losses(self) -> str:
        """Return lines about the tasks that the caller lost since it was last notified; "" if it lost none."""
        team, record = self.signs.team, self.signs.record
        if team is None or record is None:
            return ""
        from teams_cli.messages.messages import MESSAGE
        from teams_cli.views import mail

        try:
            self._last_message = self.store.last(team.name, MESSAGE)
            return mail.losses(self.store, team.name, record, self.once_shown, self._last_message)
        except errors.TeamsError:  # the answer itself is given
            return ""

    def reminder(self, once_shown: OnceShown) -> str:
        """Return lines about news that the caller was not shown yet; "" if there is none. If the lines do not show all
        unread mail in full and the answer has a next command, the next command becomes the one that reads mail.
        """
        # `given_team` is empty if the command acted in no team. Then nothing says in which team to look for news.
        if self.caller is None or self.caller.is_human or not self.given_team:
            return ""
        from teams_cli.views import mail

        try:
            team = self.signs.team or self.load_team()
            verify(team, self.caller)
            if not team.member(self.agent):
                return ""
            name, last_message = self.caller.name, self._last_message
            text, has_unshown_mail = mail.reminder(self.store, team, name, once_shown, self.in_team, last_message)
        except errors.TeamsError:  # the answer itself was given
            return ""
        if self.next_step and has_unshown_mail:
            from teams_cli.views import steps

            self.next_step = steps.READ
        return text


class SignsOfLife:
    """Records signs of life of the caller of a *call*: at the beginning and the end of a command, and while it waits.
    They renew the leases of the caller's tasks, and record where the caller works.
    """

    def __init__(self, call: Call) -> None:
        self._call = call
        self.team: Team | None = None
        """The team as it was at the last sign of life."""
        self.record: presence.Agent | None = None
        """The caller's record as of the beginning of the command, or of its last wait."""
        self._conflict_watch: ConflictWatch | None = None

    def note_return(self) -> None:
        """Remember the caller's record as it is at the beginning of the command. If the caller was silent for a while,
        renew its leases at once: otherwise the command itself might notice the silence, and warn the caller of it.
        """
        call = self._call
        if call.caller is None or call.caller.is_human or not call.given_team:
            return
        try:
            self.record = presence.load(call.store, call.given_team, call.caller.name)
        except errors.TeamsError:  # the command itself is refused if it needs the record
            return
        if self.record.last_seen and presence.was_silent(call.store, self.record):
            self.note_seen(only_leases=True)

    def note_seen(self, reading: bool = False, only_leases: bool = False) -> float:
        """Record a sign of life of the caller and renew its leases. Return the seconds until the next sign is due.
        *reading* says that the command only reads. With *only_leases*, write nothing unless a lease has to be renewed.

        The command can be answered without this, so a failure here is ignored.
        """
        call = self._call
        if call.caller is None or call.caller.is_human or not call.given_team:
            return _NEVER
        try:
            team = self.team = teams.get(call.store, call.given_team)
            if team.state == "closed" or not team.member(call.caller.name):
                return _NEVER
            verify(team, call.caller)
            agent = self.record or presence.load(call.store, team.name, call.caller.name)
            is_due = not presence.renewed_lately(call.store, team, agent)
            if is_due:
                from teams_cli.tasks import leases

                agent = self.record = leases.renew(call.store, team, agent, reading, only_leases)
            checkout = environment.checkout_around(call.workplace)
            if not (reading or only_leases):
                self.note_work(agent, checkout, is_due)
                call.notify(team)
            return presence.seconds_between_signs(team, environment.is_worktree(checkout))
        except errors.TeamsError:
            return _NEVER

    def keep_alive(self, team: str) -> float:
        """Record a sign of life of a caller that waits. Return the seconds until the next sign is due."""
        self.record = None
        return self.note_seen() if team == self._call.given_team else _NEVER

    def note_work(self, agent: presence.Agent, checkout: str, is_due: bool = False) -> None:
        """Record that the caller works in the *checkout*. *agent* is the caller's record as it is stored.

        If the checkout is a worktree, its work is also compared with the work of other agents. Because the comparison
        takes long, it is made only if a sign of life is due (*is_due*) or the record changed, for example after a
        commit.
        """
        if environment.is_worktree(checkout):
            worktree = checkout
            commit = environment.commit_in(checkout)
            main_checkout = ""
        else:
            worktree = commit = ""
            main_checkout = checkout
        store, team = self._call.store, self._call.team
        noted = presence.note_sign_of_life(
            store, team, agent.agent, known=agent, worktree=worktree, commit=commit, checkout=main_checkout
        )
        if (is_due or noted is not agent) and noted.worktree:
            self.notify_of_conflicts()

    def notify_of_conflicts(self) -> None:
        """Notify the agents whose work conflicts with the caller's worktree. Each conflict is reported only once."""
        store, team, name = self._call.store, self._call.team, self._call.agent
        if presence.load(store, team, name).worktree:
            from teams_cli.agents import overlaps

            if self._conflict_watch is None or self._conflict_watch.agent != name:
                self._conflict_watch = overlaps.ConflictWatch(store, team, name)
            if failure := self._conflict_watch.notify_of_conflicts():
                self._call.say(f"your work could not be compared with that of others: {failure}")


class Outcome:
    """An answer with an exit status other than 0."""

    def __init__(self, document: Any, status: int) -> None:
        self.document = document
        self.status = status


class Stream:
    """An answer that consists of *parts*. If it is *live*, each part replaces the part before. The function *output_of*
    takes the name of an agent, and returns its output or its history. The function *answer* takes the id of a question
    and the person's answer to it.
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
    """An answer that is a server, which runs until it ends. *module* is the module of `teams_cli` that has the function
    `run(call, settings) -> int`. *extra* is the extra of `teams` to install if the server lacks a package.
    """

    def __init__(self, module: str, extra: str, settings: Mapping[str, Any]) -> None:
        self.module = module
        self.extra = extra
        self.settings = settings


_LARGEST = 4 << 20
"""The maximum number of bytes of an attempt's file that are read."""
_UNDER_WAY: dict[str, ref[Attempt]] = {}
"""The attempts of this process, by their files."""
_BEGINNING = allocate_lock()


class Attempt:
    """Gives a change a uid, so that repeating a command whose answer was lost does not make the change twice.

    Use it in a `with` statement, which returns the uid. *words* are the command and its arguments. If an earlier
    attempt with these words ended without an answer, its uid is returned and `is_repeat` is true, else a new uid, which
    ends with *ending*.
    """

    def __init__(self, call: Call, *words: str, ending: str = "") -> None:
        self._lock: int | None = None
        """The file descriptor of the attempt's file, which is locked through it."""
        self.is_repeat = False
        self._new_uid = f"c-{os.urandom(9).hex()}{ending}"
        self._call = call
        self._words = "\0".join([call.store.address, call.team, call.agent, *words]).encode(errors="surrogatepass")
        self._path = f"{call.store.root}/tmp/command-{crc32(self._words):08x}"

    def __enter__(self) -> str:
        uid = self._begin()
        self.is_repeat = uid != self._new_uid
        return uid

    def _begin(self) -> str:
        """Record the attempt, and return its uid."""
        new_uid = self._new_uid
        if not os.path.isdir(self._call.store.root):  # a command that will be refused makes no root
            return new_uid
        with _BEGINNING:
            if self._call.is_given_up():  # the client may already have repeated the request
                raise errors.Busy("the request was cancelled", "Nothing was changed. Repeat it.")
            try:
                self._lock = locks.hold(self._path, self._call.store.root)
                recorded_uid, _, words = disk.read_file(self._path, _LARGEST).partition(b"\n")
                uid = recorded_uid.decode(errors="replace") if words == self._words else new_uid
                if self._lock is None:  # the same command is under way: both are meant, unless the other was cancelled
                    weak_reference = _UNDER_WAY.get(self._path)
                    other = weak_reference() if weak_reference else None
                    return uid if other and other._call.is_given_up() else new_uid
                _UNDER_WAY[self._path] = ref(self)
                os.ftruncate(self._lock, 0)
                os.pwrite(self._lock, f"{uid}\n".encode() + self._words, 0)
            except (OSError, errors.TeamsError):  # the attempt is not recorded, so a repeat changes something again
                return new_uid
            return uid

    def __exit__(self, kind: object, failure: BaseException | None, *_: object) -> None:
        if failure is None:
            self._call.once_answered(self._end)
        elif isinstance(failure, errors.TeamsError) and not isinstance(failure, errors.OutcomeUnknown):
            self._end()  # the change was refused, so a repeat is a new attempt; after other failures, it is the same

    def _end(self) -> None:
        """Forget the attempt, so that the next command with these words counts as a new one."""
        disk.discard(self._path)
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            lock, self._lock = self._lock, None
            os.close(lock)

    def __del__(self) -> None:
        self._release()
