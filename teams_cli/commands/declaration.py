"""Declare a command: its parameters, the function that answers, the docstring that becomes its help, and the lines and
tables that show its answer.
"""

from __future__ import annotations

import errno

from teams_cli import environment, errors
from teams_cli.clock import meanwhile, seconds_in
from teams_cli.names import each_name, is_like_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from teams_cli.commands.call import Call, Words

    Parts = list["str | Table"]


_IN_OTHER_SYSTEMS = {key: f"{key}_id" for key in ("task", "plan", "agent", "message", "shutdown")}
_IN_OTHER_SYSTEMS["question"] = "question_id request_id"
"""The names that these parameters have in the requests of other systems."""


class Parameter:
    """One parameter of a command, for the command line, MCP and HTTP."""

    type: type = str
    """`str`, `int` or `float`. SECONDS and DAYS are `float`, and may be typed with a unit."""
    choices: tuple[str, ...] = ()
    required = False
    needed = False
    """It is required, but can be given in another way at the shell."""
    many = False
    """It may be given several times."""
    listed = False
    """It may be several ids in one word, which the command itself separates."""
    flag = False
    """It takes no value."""
    text = False
    """`-` reads it from standard input."""
    at_shell = False
    """It makes no sense in requests from programs."""
    seldom = False
    """The everyday tools leave it out."""
    else_all = False
    """If it is left out, the command applies to all that it could name."""
    called = ""
    """Its key in requests; by default its word in lower case."""
    also = ""
    """Its names in the requests of other systems."""
    metavar = ""
    """The word for its value in help; by default its first flag in capitals."""
    name = ""
    """The argument of the function that runs the command; by default its first flag."""
    default: Any = None
    least: int | None = None
    """The smallest number that it takes."""
    most: int | None = None
    """The largest number that it takes."""

    def __init__(self, flags: str, help: str, **options: Any) -> None:
        self.flags = flags.split()
        self.positional = not flags.startswith("-")
        self.help = help
        _take(self, options)
        word = self.flags[0].lstrip("-").replace("-", "_")
        self.metavar = self.metavar or ("" if self.flag else word.upper())
        self.name = self.name or word
        self.choices = tuple(self.choices)
        if self.duration:
            self.type = float
            self.least = self.least or 0
        if self.many:
            self.default = ()
        elif self.flag:
            self.default = False

    def is_given(self, value: Any) -> bool:
        """Return whether the value differs from the default."""
        return bool(value) if self.many else value != self.default  # several values may be a list or a tuple

    @property
    def meaning(self) -> str:
        """The help of the parameter, followed by its choices unless the help names them all."""
        if all(choice in self.help for choice in self.choices):
            return self.help
        return f"{self.help} One of: {', '.join(self.choices)}."

    @property
    def is_id(self) -> bool:
        """Whether the value of the parameter is an id, or several ids."""
        return self.metavar == "ID"

    @property
    def duration(self) -> bool:
        """Whether the value of the parameter is a length of time, which may have a unit."""
        return self.metavar in ("SECONDS", "DAYS")

    @property
    def key(self) -> str:
        """The key of the parameter in requests: the one that is declared for it, or else `older_key`."""
        return self.called or self.older_key

    @property
    def older_key(self) -> str:
        """The key of the parameter in requests of older versions: its first flag or its word, without dashes and in
        lower case. If the word is ID or NAME, the key is the attribute `name` instead.
        """
        word = self.flags[0].lstrip("-").replace("-", "_")
        return self.name if word in ("ID", "NAME") else word.lower()

    @property
    def spellings(self) -> Iterable[str]:
        """All names that the parameter may have in requests. Its `key` is the first of them."""
        return dict.fromkeys((self.key, self.older_key, *_IN_OTHER_SYSTEMS.get(self.key, self.also).split()))

    @property
    def usage(self) -> str:
        """The word for a positional parameter in the usage of its command, in brackets if it may be left out."""
        word = self.metavar + ("..." if self.many else "")
        return word if self.required or self.needed else f"[{word}]"

    @property
    def shown(self) -> str:
        """The name of the parameter in errors: its first flag, or its placeholder in the usage line if it has none."""
        return self.usage if self.positional else self.flags[0]

    @property
    def placeholder(self) -> str:
        """The space and the word for the value that follow a flag in the usage; "" if there is no flag or no value."""
        return "" if self.positional or self.flag else f" {self.metavar}"

    def check_bounds(self, value: Any) -> None:
        """Check that the value is within the bounds of the parameter, if it has bounds.

        Raises:
            WrongUsage, InvalidValue: It is too small, too large or NaN.
        """
        is_in_bounds = (self.least is None or value >= self.least) and (self.most is None or value <= self.most)
        if not is_in_bounds:
            refusal = errors.InvalidValue if self.duration else errors.WrongUsage
            most = "" if self.most is None else f" to {self.most}"
            shown = f"{value:g}" if self.duration else value
            raise refusal(f"{shown} is not a valid {self.shown}", f"Give a number from {self.least}{most}.")

    def convert(self, word: str) -> Any:
        """Return the value that *word* means. *word* comes from the command line or from a request. A length of time is
        returned in seconds or, if the parameter takes DAYS, in days, which are also the unit of a bare number.

        Raises:
            ValueError: It is not a number, or not one of the choices.
        """
        if self.choices and word not in self.choices:
            raise ValueError(word)
        if self.metavar == "DAYS":
            has_unit = word[-1:].isalpha()
            seconds = seconds_in(word if has_unit else f"{word}d")  # checks the number, too
            return seconds / seconds_in("1d") if has_unit else float(word)
        return seconds_in(word) if self.duration else self.type(word)


def _take(declared: Parameter | Command, values: dict[str, Any]) -> None:
    """Set attributes of *declared* to the *values*. Raise TypeError for a name that its class does not have."""
    for name, value in values.items():
        if not hasattr(type(declared), name):
            raise TypeError(f"{type(declared).__name__} declares no {name}")
        setattr(declared, name, value)


def argument(word: str, help: str, **options: Any) -> Parameter:
    """Return a positional parameter, which is required by default."""
    options.setdefault("required", True)
    return Parameter(word, help, **options)


option = Parameter
"""A parameter that has flags and takes a value."""


EVERY_ROW = 1_000_000
"""The maximum of a limit on rows. No list has more rows, and every database accepts the number."""


def row_limit(help: str, **options: Any) -> Parameter:
    """Return the option that limits the number of rows of a list."""
    return option("--limit", help, type=int, least=1, most=EVERY_ROW, metavar="N", **options)


def switch(flags: str, help: str, **options: Any) -> Parameter:
    """Return an option that takes no value."""
    return Parameter(flags, help, flag=True, **options)


TASK = argument("ID", "The task's id, such as 7, #7 or task-7.", name="task")
AFTER = option(
    "--after",
    "A task that must be completed before this one is completed; work on this one can start earlier.",
    metavar="ID",
    many=True,
    seldom=True,
)
JSON = switch("--json", "Answer with one JSON document.", name="as_json")
ROOT = option("--root", "Where the teams are kept, instead of $TEAMS_HOME or the default.", metavar="DIR")
STORE = option(
    "--store",
    "The database where the teams are kept (postgresql://…), instead of $TEAMS_STORE or files under --root.",
    metavar="STORE",
)
TEAM = option("--team -t", "The team to act in, instead of $TEAMS_TEAM.")
AS = option("--as", "Who you are, instead of $TEAMS_AGENT_ID.", metavar="AGENT", name="agent")


class Table:
    """Rows under headings. On a terminal they are drawn as a table, and in plain text as aligned columns. *empty* is
    shown if there are no rows.
    """

    def __init__(self, columns: list[str], rows: list[list[str]], empty: str = "") -> None:
        self.columns = columns
        self.rows = rows
        self.empty = empty


def present(*lines: str | None) -> Parts:
    """Return the lines that are neither None nor empty."""
    return [line for line in lines if line]


class Command:
    """One command, for the command line, MCP and HTTP.

    The function *run* takes a `Call` and the values of the command's own *parameters*, and returns the document to
    answer with. *doc* becomes the help, which also shows the *example*. *traits* names those of the attributes below
    that are true for the command.

    *also* lists words that users may type instead of the name. Such a word is refused, and the refusal shows a usage:
    the one given for the word, or else the usage of this command. `word/ID` stands for the word followed by a task, and
    `word/TO` for the word followed by an agent and more.
    """

    group = ""
    """The group under which the help shows it."""
    want = ""
    """What the command is for, in the words of the guide."""
    held: str | None = None
    """The parameters that an agent with permissions below `all` may give; None if it may not run the command.
    `name=a,b` allows these values, `name=.` only its own team, and `name/` paths below its working directory. `name>`
    is like `name/` for a file that the command writes, and is refused at the level `ask`.
    """
    words: Words | None = None
    """The function that turns the document into lines and tables for a person."""
    answers: Any = None
    """The type of the document: a record, or a list of records."""
    gist: Sequence[str] = ()
    """The fields that the rows of a list keep where space is short."""
    newest_last = False
    """The list in its answer begins with the oldest row. Where space is short, this row is left out first."""
    in_team = True
    """It is about one team, and is run by a member of it."""
    changes = True
    """It changes something. A command that neither changes nor reads records its caller itself."""
    reads = False
    """It changes nothing, and answers at once."""
    at_shell = False
    """It uses the terminal, the files or the processes of its caller, so programs can't request it."""
    long = False
    """It may wait, so it must not block other requests."""
    sleeps = False
    """It may sleep. If it is interrupted then, it says how to continue."""
    repeatable = False
    """Repeating it has no further effect."""
    adding = False
    """It only adds, and changes nothing that exists."""
    daily = False
    """It is one of the everyday tools."""
    outside = False
    """It is also offered to an agent that is not in a team yet."""
    quiet = False
    """It shows unread mail itself, so its answer needs no reminder of mail."""
    whole = False
    """Its answer is never cut, because it shows in full what other answers cut, or because it goes into a file."""
    moves = False
    """It may change the rights of its caller."""
    for_person = False
    """If it is run at a terminal without a name, the caller is the human."""

    def __init__(
        self,
        name: str,
        run: Callable[..., Any],
        *parameters: Parameter,
        doc: Callable[..., Any] | str,
        example: str,
        also: str | Mapping[str, str] = "",
        traits: str = "",
        **more: Any,
    ) -> None:
        self.name = name
        self.own = parameters
        self.doc = doc if isinstance(doc, str) else doc.__doc__ or ""
        self.example = example
        synonyms = {also: ""} if isinstance(also, str) else also
        self.also = {word: how or self.usage for words, how in synonyms.items() for word in words.split()}
        _take(self, dict.fromkeys(traits.split(), True) | more)
        self.changes = self.changes and not self.reads
        self.run = run

    @property
    def parameters(self) -> list[Parameter]:
        """All parameters of the command. The parameters that every command takes come last."""
        return [*self.own, *((TEAM, AS) if self.in_team else ()), ROOT, STORE, JSON]

    @property
    def places(self) -> list[Parameter]:
        """The positional parameters of the command."""
        return [parameter for parameter in self.own if parameter.positional]

    @property
    def options(self) -> dict[str, Parameter]:
        """The parameters of the command that have flags. A parameter with several flags is listed under each."""
        return {flag: each for each in self.parameters if not each.positional for flag in each.flags}

    @property
    def usage(self) -> str:
        """Return the command with the arguments that it needs."""
        return " ".join([self.name, *(place.usage for place in self.places if place.required or place.needed)])

    @property
    def whole_usage(self) -> str:
        """Return the command with all positional arguments that it takes."""
        return " ".join([self.name, *(place.usage for place in self.places)])

    def goes_beyond_held(self, values: Mapping[str, Any]) -> bool:
        """Return whether the command, or one of the given *values*, is closed or limited for agents with restricted
        permissions ("held" ones).
        """
        if self.held is None:
            return True
        opened = self.held.split()
        return any(
            parameter.is_given(values[parameter.name]) and parameter.name not in opened for parameter in self.own
        )

    def answer(self, call: Call, values: dict[str, Any]) -> Any:
        """Run the command with the *values* of all its own parameters. Before that, send notices of earlier changes
        that were not sent yet.

        Record that the caller is alive: when the command ends, and from time to time while it waits.

        Raises:
            NotAllowed: The permissions of the calling agent do not allow this.
            OutcomeUnknown: A change was made, but its follow-up failed.
        """
        if environment.holder(call.environ) or self.moves or self.goes_beyond_held(values):
            from teams_cli.commands import held

            values = held.allowed_values(self, call, values)
        if self.in_team:
            if self.reads:
                call.refuse_reading(self.name)
            call.settle()
            call.signs.note_return()
        notes_caller = self.changes or not self.at_shell
        # Waits call this function from time to time.
        act_before, meanwhile.act = meanwhile.act, call.signs.keep_alive
        changes_before = call.store.changed
        try:
            document = self._run_each(call, values)
        except OSError as failure:
            if failure.errno in _OWN_FAULTS:
                raise
            refused = errors.StorageFailed(f"the system refused: {failure.strerror}", "Check the disk and its limits.")
            raise (refused if call.store.changed == changes_before else _after_a_change(refused)) from None
        except (errors.StorageFailed, errors.Busy) as failure:
            if call.store.changed == changes_before or isinstance(failure, errors.OutcomeUnknown):
                raise
            raise _after_a_change(failure) from None
        except errors.TeamsError:
            if notes_caller:
                call.signs.note_seen(only_leases=True)  # the caller is alive, although the command is refused
            raise
        finally:
            meanwhile.act = act_before
        if notes_caller:
            call.signs.note_seen(reading=not self.changes)
        return document

    def _check_and_split(self, values: dict[str, Any]) -> None:
        """Check that each value is within the bounds of its parameter, such as `--limit`. In a parameter that takes
        many ids, split words that contain several ids.
        """
        for parameter in self.own:
            name, value = parameter.name, values[parameter.name]
            if value is not None:
                parameter.check_bounds(value)
            if parameter.is_id and value and parameter.many:
                if not all(each_name([word]) for word in value):  # an empty variable of a script
                    raise errors.InvalidValue(
                        f"{parameter.shown} is blank", f"Give an id, or leave {parameter.shown} out."
                    )
                values[name] = tuple(each_name(value))

    def _single_id(self, values: dict[str, Any]) -> Parameter | None:
        """Return the parameter that takes one id. If it is given several ids, the command runs once for each. Return
        None if the command has no such parameter, or if the parameter has no value.
        """
        for parameter in reversed(self.own):  # `--task` is last, and counts first
            takes_one_id = parameter.is_id and not parameter.many and not parameter.listed
            if takes_one_id and values[parameter.name] and (parameter.positional or parameter.name == "task"):
                return parameter
        return None

    def _run_each(self, call: Call, values: dict[str, Any]) -> Any:
        """Run the command and return its document. If the parameter that takes one id got several, run the command for
        each, and return a list of the documents.
        """
        self._check_and_split(values)
        id_parameter = self._single_id(values)
        ids = each_name([values[id_parameter.name]]) if id_parameter else []
        if id_parameter is None or len(ids) < 2 or not all(map(is_like_id, ids)):
            return self.run(call, **values)
        documents: list[Any] = []
        is_list = False  # whether the command answers with a list for a single id
        for key in dict.fromkeys(ids):
            try:
                document = self.run(call, **{**values, id_parameter.name: key})
            except errors.TeamsError as refused:
                if documents and not self.reads:
                    refused.message = f"{refused.message} ({', '.join(ids[: ids.index(key)])}: done)"
                raise
            is_list = isinstance(document, list)
            documents += document if is_list else [getattr(document, "document", document)]
        words = call.words or self.words
        if words and not is_list:  # each document is shown as that of a command for one id
            call.words = lambda answer: [part for each in answer for part in words(each)]
        return documents


_OWN_FAULTS = (errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.EBADF, errno.EPIPE)
"""Errors of the operating system that show a bug in this program, or that the reader of its output has gone."""


def _after_a_change(failure: errors.TeamsError) -> errors.OutcomeUnknown:
    """Return the error to report for a *failure* after a change was stored: it says that something was changed."""
    hint = "Repeat the command: what is done stays done."
    if isinstance(failure, errors.StorageFailed) and failure.hint:  # a repeat alone would fail again
        hint = f"{failure.hint} What is done stays done: a repeat does the rest."
    return errors.OutcomeUnknown(f"something was changed, then this failed: {failure.message}", hint)


def in_group(group: str, *commands: Command) -> dict[str, Command]:
    """Return the *commands* of a module, each under its name. The help shows them under the heading *group*."""
    for command in commands:
        command.group = group
    return {command.name: command for command in commands}
