"""One call of a command: the store, who calls, in which team, and what was damaged on the way."""

from __future__ import annotations

from teams_cli import agents, teams
from teams_cli.errors import InvalidValue, NoIdentity, NoTeam, TeamsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, Protocol

    from teams_cli.caller import Caller
    from teams_cli.config import Config
    from teams_cli.store.contract import Store
    from teams_cli.teams import Team


if TYPE_CHECKING:

    class Person(Protocol):
        """The person at the terminal, as the console sees them."""

        def ask(self, asker: str, question: str, left: Callable[[], float], open: Callable[[], bool]) -> str | None:
            """Show a question and take the answer: blank for a skip; None when its time was over first.

            Raises:
                Gone: There is nobody any more.
            """

        def tell(self, line: str) -> None:
            """Show a line."""

        def progress(self) -> Any:
            """Show the progress of a run, for the length of a `with` block."""


class Call:
    """What a command is given besides its parameters. *sources* says where each setting of the call came from;
    *say* shows a line of talk to the person, where there is one; agents that are started inherit from *environ*.
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
        person: Person | None = None,
        directory: str = "",
    ) -> None:
        self.store = store
        self.config = config
        self.caller = caller
        self.said_team = team
        self.sources = sources or {}
        self.say = say or (lambda line: None)
        self.environ = environ or {}
        self.person = person
        self.said_directory = directory
        self.show: Callable[[Any], Any] = lambda document: None
        """Shows a document to who started a server, while it runs."""
        self.problems: list[TeamsError] = []

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
                raise NoTeam("say which team", f"Use --team NAME or TEAMS_TEAM. {hint}")
            self.said_team = known[0]
        return self.said_team

    def likely_teams(self) -> list[str]:
        """The teams that are not closed, or all if there is none such: with a closed one there is little to do."""
        open_ones, names = [], self.store.teams()
        for name in names if len(names) > 1 else ():
            try:
                if teams.load(self.store, name).state != "closed":
                    open_ones.append(name)
            except TeamsError:  # damaged: whoever means it has to say so
                open_ones.append(name)
        return open_ones or names

    @property
    def directory(self) -> str:
        """Where the caller is.

        Raises:
            InvalidValue: The directory was removed.
        """
        if not self.said_directory:
            raise InvalidValue("the current directory is gone", "Change to one that exists.")
        return self.said_directory

    @property
    def agent(self) -> str:
        """The name of the caller.

        Raises:
            NoIdentity: Nobody said who calls.
        """
        if self.caller is None:
            raise NoIdentity("say who you are", "Use --as AGENT or TEAMS_AGENT_ID.")
        return self.caller.name

    def load_team(self) -> Team:
        """The team to act in."""
        return teams.load(self.store, self.team)

    def wake(self, *recipients: str) -> None:
        """Resume those of the recipients of the caller's message that `teams` started and that are idle."""
        from teams_cli import sessions

        if any(sessions.find(self.store, self.team, name) for name in recipients):
            from teams_cli import launching

            team = self.load_team()
            launching.wake(self.store, team, self.config, list(recipients), self.agent, self.environ)

    def note_seen(self) -> None:
        """After a change: note that the caller is alive. The change is made, so failing here is no failure."""
        if self.caller is None or self.caller.is_human or not self.said_team:
            return
        try:
            agents.saw(self.store, self.said_team, self.caller.name)
        except TeamsError:
            return


class Gone(Exception):
    """The person went away: standard input was closed."""


class Outcome:
    """An answer that goes with another exit status than 0."""

    def __init__(self, document: Any, status: int) -> None:
        self.document = document
        self.status = status


class Stream:
    """An answer that comes in parts, each as soon as it is there; of a live one each takes the place of the last."""

    def __init__(self, parts: Iterator[dict[str, Any]], live: bool = False) -> None:
        self.parts = parts
        self.live = live


class Service:
    """An answer that is a server to run until it ends: *module*, below the package, has `run(call, settings) -> int`;
    *extra* brings what it needs.
    """

    def __init__(self, module: str, extra: str, settings: Mapping[str, Any]) -> None:
        self.module = module
        self.extra = extra
        self.settings = settings


def public(team: Team) -> dict[str, Any]:
    """The team as JSON for everyone: without the hashes of tokens."""
    document = team.to_json()
    document.pop("humanTokenHash", None)
    document["members"] = [{k: v for k, v in m.items() if k != "tokenHash"} for m in document["members"]]
    return {**document, "secure": True} if team.secure else document
