"""The entry point, and the one boundary where a failure becomes text and an exit status."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import partial

from teams_cli import __version__
from teams_cli.cli import streams
from teams_cli.errors import InvalidValue, TeamsError, WrongUsage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from teams_cli.commands.declaration import Command

INTERRUPTED = 130
BUG = 3
_WITH_VALUE = ("--root", "--store", "--team", "-t", "--as")


def main() -> NoReturn:
    """Run the command in `sys.argv` and exit with its status."""
    streams.prepare()
    status = run(sys.argv[1:])
    streams.finish()
    sys.exit(status)


def run(words: list[str]) -> int:
    """Run one command; its exit status."""
    words = _command_first(words)
    if words[:1] == ["hook"] and not {"--help", "-h"}.intersection(words):
        from teams_cli.cli import hook

        return hook.main(words[1:])
    as_json = "--json" in words[: words.index("--")] if "--" in words else "--json" in words
    try:
        return _run(words)
    except TeamsError as error:
        return _refuse(error, as_json)
    except KeyboardInterrupt:
        sys.stderr.write("\nteams: interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:  # `| head -1` has what it wants
        return 0
    except Exception as error:
        from teams_cli.bugs import report

        return _refuse(report(error, words), as_json, BUG)


def _command_first(words: list[str]) -> list[str]:
    """The words with the options of every command, where they stand before it, behind it."""
    place = 0
    while place < len(words) and words[place].startswith("-"):
        flag, equals, _ = words[place].partition("=")
        if flag != "--json" and flag not in _WITH_VALUE:
            return words
        place += 1 if equals or flag == "--json" else 2
    return [*words[place : place + 1], *words[:place], *words[place + 1 :]]


def _run(words: list[str]) -> int:
    if words == ["--version"]:
        streams.written(lambda: print(f"teams {__version__}"))
        return 0
    from teams_cli.cli.parse import parse

    parsed = parse(words)
    if parsed is None:
        from teams_cli.cli.typer_app import run_with_typer

        if not words:
            streams.written(lambda: run_with_typer(["--help"], execute))
            return WrongUsage.status
        if not {"--help", "-h"}.intersection(words):
            return run_with_typer(words, execute)
        return int(streams.written(lambda: run_with_typer(words, execute)))
    return execute(*parsed)


def execute(command: Command, values: dict[str, Any]) -> int:
    """Run a command with the values of all its parameters and print its answer; the exit status."""
    from teams_cli.cli import environment, output
    from teams_cli.commands.call import Outcome, Service, Stream

    as_json = values.pop("as_json")
    for parameter in command.own:
        if parameter.text and values[parameter.name] == "-":
            values[parameter.name] = _standard_input()
    call = environment.make_call(values, os.environ, _ask_person, _talk)
    answer = command.answer(call, values)
    if command.changes:
        call.note_seen()
    for problem in call.problems:
        _talk(f"teams: {output.safe(problem.message)}")
    if isinstance(answer, Service):
        from teams_cli.cli import services

        call.show = lambda shown: streams.written(partial(output.answer, command.name, shown, as_json, sys.stdout))
        return services.run(call, answer)
    status = 0
    if isinstance(answer, Outcome):
        answer, status = answer.document, answer.status
    if isinstance(answer, Stream) and answer.live and not as_json and output.is_fancy(sys.stdout):
        from teams_cli.cli import live

        live.show(answer.parts, sys.stdout)
        return status
    for part in answer.parts if isinstance(answer, Stream) else [answer]:
        streams.written(partial(output.answer, command.name, part, as_json, sys.stdout))
    return status


def _standard_input() -> str:
    from teams_cli.text import MAX_RESULT

    if sys.stdin is None:
        raise WrongUsage("there is no standard input to read from", "Pipe the text in, or give it as an argument.")
    data = sys.stdin.buffer.read(MAX_RESULT + 2)
    if len(data) > MAX_RESULT + 1:
        raise InvalidValue(
            f"standard input has more than the {MAX_RESULT} bytes allowed",
            "Shorten it, or put it in a file and give its path.",
        )
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise WrongUsage("standard input is not UTF-8", "Hand in UTF-8 text.") from None


def _ask_person(operation: str, about: str) -> bool | None:
    """Ask the person at the terminal whether an operation may go on; None when there is nobody."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    sys.stderr.write(f"Allow {operation}{f' ({about})' if about else ''}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _talk(line: str) -> None:
    with suppress(OSError):
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


def _refuse(error: TeamsError, as_json: bool, status: int = 0) -> int:
    from teams_cli.cli import output

    text = output.refusal(error, as_json, "bug" if status == BUG else error.code)
    with suppress(OSError):
        sys.stderr.write(text)
    return status or error.status
