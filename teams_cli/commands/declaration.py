"""How a command is declared: parameters, the function that answers, the docstring that becomes its help."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from teams_cli.commands.call import Call

    Run = Callable[..., Any]


class Parameter:
    """One parameter of a command. *type* is `str`, `int` or `float`; *text* ones take `-` for standard input; what is
    *at_shell* has no sense in the requests of programs.
    """

    def __init__(
        self,
        flags: str,
        help: str,
        *,
        type: type = str,
        choices: Iterable[str] = (),
        required: bool = False,
        many: bool = False,
        flag: bool = False,
        text: bool = False,
        at_shell: bool = False,
        metavar: str = "",
        name: str = "",
        default: Any = None,
    ) -> None:
        self.flags = flags.split()
        self.positional = not flags.startswith("-")
        self.help = help
        self.type = type
        self.choices = tuple(choices)
        self.required = required
        self.many = many
        self.flag = flag
        self.text = text
        self.at_shell = at_shell
        self.metavar = metavar or ("" if flag else self.flags[0].lstrip("-").upper().replace("-", "_"))
        self.name = name or self.flags[0].lstrip("-").replace("-", "_")
        self.default = () if many else False if flag else default

    @property
    def key(self) -> str:
        """What it is called in a request: the word that the person types, without its dashes."""
        word = self.flags[0].lstrip("-").replace("-", "_")
        return self.name if word in ("ID", "NAME") else word.lower()

    def convert(self, word: str) -> Any:
        """The value that a word means.

        Raises:
            ValueError: It is no number, or none of the choices.
        """
        if self.choices and word not in self.choices:
            raise ValueError(word)
        return self.type(word)


def argument(word: str, help: str, **options: Any) -> Parameter:
    """A parameter known by its place; required unless said otherwise."""
    options.setdefault("required", True)
    return Parameter(word, help, **options)


def option(flags: str, help: str, **options: Any) -> Parameter:
    """A parameter known by its name."""
    return Parameter(flags, help, **options)


def switch(flags: str, help: str, **options: Any) -> Parameter:
    """A parameter that is given or not."""
    return Parameter(flags, help, flag=True, **options)


JSON = switch("--json", "Answer with one JSON document.", name="as_json")
ROOT = option("--root", "Where the teams are kept, instead of $TEAMS_HOME or the default.", metavar="DIR")
STORE = option(
    "--store",
    "The database that the teams are in, postgresql://…, instead of $TEAMS_STORE or files under the root.",
    metavar="STORE",
)
TEAM = option("--team -t", "The team to act in, instead of $TEAMS_TEAM.")
AS = option("--as", "Who you are, instead of $TEAMS_AGENT_ID.", metavar="AGENT", name="agent")


class Command:
    """One command: *run* takes a `Call` and the parameters, and returns the document to answer with. One that *reads*
    changes nothing and answers at once; one that neither *changes* nor *reads* is no sign of life of its caller. One
    that is *at_shell* is about the terminal, the files or the processes of who types it, so no program may request it.
    """

    def __init__(
        self,
        name: str,
        run: Run,
        *parameters: Parameter,
        doc: Callable[..., Any] | str,
        in_team: bool = True,
        changes: bool = True,
        reads: bool = False,
        at_shell: bool = False,
    ) -> None:
        self.name = name
        self.run = run
        self.own = parameters
        self.doc = doc if isinstance(doc, str) else doc.__doc__ or ""
        self.in_team = in_team
        self.changes = changes and not reads
        self.reads = reads
        self.at_shell = at_shell

    @property
    def parameters(self) -> list[Parameter]:
        """All parameters, those that every command takes last."""
        return [*self.own, *((TEAM, AS) if self.in_team else ()), ROOT, STORE, JSON]

    def answer(self, call: Call, values: dict[str, Any]) -> Any:
        """Run the command; *values* has exactly its own parameters."""
        return self.run(call, **values)


def table(*commands: Command) -> dict[str, Command]:
    """The commands of a module, by name."""
    return {command.name: command for command in commands}
