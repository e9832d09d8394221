"""The entry point, and the one boundary where a failure becomes text and an exit status."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from teams_cli import __version__
from teams_cli.errors import StorageFailed, TeamsError, WrongUsage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from teams_cli.commands.declaration import Command

INTERRUPTED = 130
BUG = 3


def main() -> NoReturn:
    """Run the command in `sys.argv` and exit with its status."""
    status = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains once more at exit
        if not isinstance(error, BrokenPipeError):
            status = status or _refuse(_unwritten(error), as_json=False)
    sys.exit(status)


def run(words: list[str]) -> int:
    """Run one command; its exit status."""
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
        from teams_cli.cli.bugs import report

        return _refuse(report(error, words), as_json, BUG)


def _run(words: list[str]) -> int:
    if words == ["--version"]:
        print(f"teams {__version__}")
        return 0
    from teams_cli.cli.parse import parse

    parsed = parse(words)
    if parsed is None:
        from teams_cli.cli.typer_app import run_with_typer

        return run_with_typer(words, execute)
    return execute(*parsed)


def execute(command: Command, values: dict[str, Any]) -> int:
    """Run a command with the values of all its parameters and print its answer; the exit status."""
    from teams_cli.cli import environment, output
    from teams_cli.commands.call import Outcome, Stream

    as_json = values.pop("as_json")
    for parameter in command.own:
        if parameter.text and values[parameter.name] == "-":
            values[parameter.name] = _standard_input()
    call = environment.make_call(values, os.environ, _ask_person, _talk)
    answer = command.answer(call, values)
    if command.changes:
        call.note_seen()
    for problem in call.problems:
        sys.stderr.write(f"teams: {output.safe(problem.message)}\n")
    status = 0
    if isinstance(answer, Outcome):
        answer, status = answer.document, answer.status
    for part in answer.parts if isinstance(answer, Stream) else [answer]:
        _print(output, command.name, part, as_json)
    return status


def _print(output: Any, name: str, part: Any, as_json: bool) -> None:
    try:
        output.answer(name, part, as_json, sys.stdout)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritten(error) from None


def _standard_input() -> str:
    from teams_cli.text import MAX_RESULT

    if sys.stdin is None:
        raise WrongUsage("there is no standard input to read from", "Pipe the text in, or give it as an argument.")
    data = sys.stdin.buffer.read(MAX_RESULT + 2)
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise WrongUsage("standard input is not UTF-8", "Hand in UTF-8 text.") from None


def _ask_person(operation: str, about: str) -> bool:
    """Ask the person at the terminal, if there is one, whether an operation may go on."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    sys.stderr.write(f"Allow {operation}{f' ({about})' if about else ''}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _talk(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _refuse(error: TeamsError, as_json: bool, status: int = 0) -> int:
    from teams_cli.cli import output

    text = output.refusal(error, as_json, "bug" if status == BUG else error.code)
    with suppress(OSError):
        sys.stderr.write(text)
    return status or error.status


def _unwritten(error: OSError) -> StorageFailed:
    return StorageFailed(f"can't write the answer: {error.strerror}", "What was asked for is done; ask for it again.")
