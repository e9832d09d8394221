"""The entry point: runs a command, and turns a failure into text and an exit status."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module

from teams_cli import __version__, errors, streams
from teams_cli.environment import FLAGS, split_option, to_install
from teams_cli.text import MOST_ANSWER, one_part, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from teams_cli.commands.call import Call, Service, Words
    from teams_cli.commands.declaration import Command

BUG = 3
_HELP = {"--help", "-h"}
_SECONDS_FOR_REPORT = 2
"""The seconds that an interrupted wait has for its report. Then the process ends even without it."""


def main() -> int:
    """Run the command in `sys.argv`. Return its exit status once its output is written."""
    streams.prepare()
    status = run(sys.argv[1:])
    streams.finish()
    return status


def run(words: list[str]) -> int:
    """Run one command and return its exit status. KeyboardInterrupt is not caught."""
    words = _command_first(words)
    if words[:1] == ["hook"] and not _HELP.intersection(words):
        from teams_cli.hooks import entry

        return entry.main(words[1:])
    try:
        return _run(words)
    except errors.TeamsError as error:
        return _refuse(error, words)
    except BrokenPipeError:  # `| head -1` has what it wants
        return 0
    except Exception as error:
        # Python reports an interrupt while it makes a class as the cause of another error.
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise error.__cause__ from None
        return _refuse_unexpected(error, words)


def _refuse_unexpected(error: Exception, words: list[str]) -> int:
    """Report an error that no command expects: a bug in the program, unless its cause is known. Return the status."""
    if isinstance(error, OverflowError):
        why = f"a number or a time is out of range: {error}"
        return _refuse(errors.InvalidValue(why, "Give another value."), words)
    if isinstance(error, FileNotFoundError) and _is_directory_gone():
        gone = errors.InvalidValue("the current directory is gone", "Change to one that exists.")
        return _refuse(gone, words)
    return _refuse(errors.report_bug(error, words), words, BUG)


def _is_directory_gone() -> bool:
    """Return whether the current directory was removed. An error caused by its removal is not a bug."""
    try:
        os.getcwd()
    except OSError:
        return True
    return False


def _command_first(words: list[str]) -> list[str]:
    """Return the words with the command first. Global options that stood before the command follow it."""
    index = 0
    while index < len(words) and words[index].startswith("-"):
        flag, equals, _ = words[index].partition("=")
        if flag != "--json" and flag not in FLAGS:  # no global option, such as --help
            return words
        index += 1 if equals or flag == "--json" else 2  # its value is the next word
    return [*words[index : index + 1], *words[:index], *words[index + 1 :]]


def _run(words: list[str]) -> int:
    """Answer a shell that wants completions, show help or the version, or run a command. Return the exit status."""
    is_completion = "_TEAMS_COMPLETE" in os.environ
    if is_completion:
        from teams_cli.cli import completing

        if completion := completing.answer(os.environ):
            text, status = completion
            streams.written(lambda: print(text))
            return status
    if is_completion or words[:1] in (["--install-completion"], ["--show-completion"]):
        from teams_cli.cli import typer_app

        return typer_app.run(words)
    if words == ["--version"]:
        streams.written(lambda: print(f"teams {__version__}"))
        return 0
    if words == ["--man"]:
        from teams_cli.cli import guide

        streams.written(lambda: print(guide.page(), end=""))
        return 0
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    before_texts = words[: words.index("--")] if "--" in words else words  # behind `--`, --help is a text
    if not words or _HELP.intersection(before_texts):
        return _help(words)
    from teams_cli.cli.command_line import parse

    try:
        command, values = parse(words)
    except errors.WrongUsage:
        _call_after_sign_of_life(words)
        raise
    return execute(command, values)


def _call_after_sign_of_life(words: list[str]) -> Call | None:
    """Return the call for a command line that asks for help or has a mistake, so that the help fits the caller's team.
    If the command line names an agent, record that this agent is alive.

    Return None if the call can't be made, or if the command line has a mistake and names no agent.
    """
    from teams_cli.environment import look_up

    flags = dict.fromkeys(FLAGS.values(), "")
    for word, next_word in zip(words, [*words[1:], ""], strict=False):
        flag, _, value = split_option(word)
        if flag in FLAGS:
            flags[FLAGS[flag]] = value or next_word
    is_named = bool(look_up("agent", flags["agent"], os.environ)[0])
    is_help = not words or bool(_HELP.intersection(words))
    if not (is_named or is_help):
        return None
    from teams_cli.cli import command_line

    try:
        call = command_line.make_call(flags, os.environ, _ask_person, _write_stderr)
        call.given_team = call.given_team or call.only_team()
        if is_named:
            call.signs.note_seen(only_leases=True)
        return call
    except errors.TeamsError:  # help is shown all the same, and a mistake is explained
        return None


def _help(words: list[str]) -> int:
    """Show the help of a command, of the everyday commands or, with `--all`, of all commands. On a terminal, the help
    is drawn in boxes. Return the exit status.
    """
    from teams_cli.cli import guide

    call = _call_after_sign_of_life(words)
    wants_all = words[:1] == ["--all"]
    command = None if wants_all else _command_to_explain(words)
    if sys.stdout.isatty():
        from teams_cli.cli import typer_app

        streams.written(lambda: typer_app.show_help(command, call, wants_all))
        return 0 if words else errors.WrongUsage.status
    if command:
        text = guide.of_command(command)
    elif wants_all:
        text = guide.all_commands(call)
    else:
        text = guide.guide(call)
    streams.written(lambda: print(text, end=""))
    return 0 if words else errors.WrongUsage.status


def _command_to_explain(words: list[str]) -> Command | None:
    """Return the command whose help is wanted, by its name or a synonym; None for help in general."""
    if not words or words[0] in {*_HELP, "help"}:
        return None
    from teams_cli import commands

    name = words[0]
    command = commands.find(name)
    if command is None:
        from teams_cli.cli import mistakes

        more_words = [word for word in words[1:] if word not in _HELP]
        command = None if more_words else mistakes.command_called(name)
        if command is None:
            raise mistakes.unknown(name, more_words)
    return command


def execute(command: Command, values: dict[str, Any]) -> int:
    """Run a command with the values of all its parameters, print its answer, and return the exit status."""
    from teams_cli.cli import command_line
    from teams_cli.clock import Ended, meanwhile

    as_json = values.pop("as_json")
    for parameter in command.own:
        if parameter.text and values[parameter.name] == "-":
            values[parameter.name] = _standard_input()
    flags = {name: values.pop(name, None) for name in {*FLAGS.values()}}
    call = command_line.make_call(
        flags, os.environ, _ask_person, lambda line: _write_stderr(one_part(line)), command.for_person
    )
    call.max_bytes = 0 if as_json else MOST_ANSWER  # 0: no limit
    try:
        meanwhile.around_sleep = _around_sleep if command.sleeps else None
        status = _answer(command, call, values, as_json)
    except Ended as ended:  # say how to continue the wait, and end as if SIGTERM had killed the process
        from teams_cli.cli import output

        error = errors.WaitRanOut("the wait was interrupted", call.in_team(ended.hint))
        _write_stderr(output.refusal(error, as_json, error.code).removesuffix("\n"))
        return _die()
    except errors.TeamsError as error:
        error.hint = call.in_team(error.hint or "")
        if as_json or not isinstance(error, errors.CheckFailed):
            raise
        status = _refuse(error, [])
        _remind_after_failed_check(call)
        return status
    _print_ending(command, call, as_json)
    return status


def _print_ending(command: Command, call: Call, as_json: bool) -> None:
    """Print the next command and a reminder of news. Record which news the caller was shown."""
    problems = call.record_shown()  # before the reminder, which is about news that this answer has not shown
    notes_of_reminder: list[Callable[[], object]] = []
    reminder = ""
    if not as_json and (call.reminds or not command.quiet):
        reminder = call.reminder(notes_of_reminder.append)  # may change the next step, so this comes first
    last_line = f"next: {call.in_team(call.next_step)}" if call.next_step else call.done_text
    if last_line and not as_json:
        streams.written(lambda: print(last_line))
    was_printed = True
    if reminder:
        was_printed = _write_stderr(_line_break_between_streams() + one_part(reminder))
    if was_printed:
        for note in notes_of_reminder:
            call.once_shown(note)
    for problem in problems + call.record_shown():
        _write_stderr(
            f"teams: this will be shown again, because it could not be marked as shown: {safe(problem.message)}"
        )


def _remind_after_failed_check(call: Call) -> None:
    """Print a reminder of news, which may say why the check failed. Other refusals have none: they change nothing, not
    even what the caller was shown.
    """
    notes: list[Callable[[], object]] = []
    reminder = call.reminder(notes.append)
    if reminder and _write_stderr(one_part(reminder)):
        for note in notes:
            call.try_to(note)  # if it fails, the news is shown again


def _around_sleep(asleep: bool) -> None:
    """Choose how SIGTERM is handled. While the command is *asleep*, SIGTERM only wakes it, so that it can say how to
    continue. While it works, SIGTERM ends it at once, because its work may be half done.
    """
    import signal  # slow to import; few commands sleep

    # After SIGTERM, the command needs this module to say how to continue. It is imported before the sleep, because
    # another version of `teams` may be installed meanwhile.
    from teams_cli.cli import output  # noqa: F401

    if asleep and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _wake)
    elif not asleep and signal.getsignal(signal.SIGTERM) is _wake:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _wake(number: int, _frame: FrameType | None) -> None:
    """Handle SIGTERM in a sleeping command: its wait ends, and it has a few seconds to report how to continue."""
    import signal

    from teams_cli.clock import Ended

    signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, lambda *_: _die())
    signal.alarm(_SECONDS_FOR_REPORT)
    raise Ended


def _die() -> int:
    """End the process by SIGTERM, so that its parent sees the signal. Return the status in case it runs on briefly."""
    import signal

    os.kill(os.getpid(), signal.SIGTERM)
    return 128 + signal.SIGTERM


def _answer(command: Command, call: Call, values: dict[str, Any], as_json: bool) -> int:
    """Run the command and print its answer; if the answer is a server, run the server. Return the exit status."""
    from teams_cli.commands.call import Outcome, Service, Stream

    def begin(document: Any) -> bool:  # shows the first part of an answer before a wait
        _print(command, document, as_json, call.words)
        return True

    if not as_json:
        call.begin_answer = begin
    answer = command.answer(call, values)
    call.name_team(answer)
    for message in call.messages_of_problems():
        _write_stderr(f"teams: {one_part(message)}")
    if isinstance(answer, Service):
        call.show = lambda document: _print(command, document, as_json, None)
        return serve(call, answer)
    if isinstance(answer, Stream):
        from teams_cli.cli import output

        if answer.live and not as_json and output.is_fancy(sys.stdout):
            from teams_cli.cli import live

            live.show(answer.parts, sys.stdout, answer.output_of, answer.answer)
        else:
            for part in answer.parts:
                _print(command, part, as_json, call.words)
    elif isinstance(answer, Outcome):
        _print(command, answer.document, as_json, call.words)
    else:
        # Lost tasks change what the reader does next, whatever the command was.
        if not (as_json or command.quiet or call.tells_news) and (losses := call.losses()):
            streams.written(lambda: print(one_part(losses)))
        _print(command, answer, as_json, call.words)
    if call.remark and as_json:
        _write_stderr(f"teams: {call.remark}")
    elif call.remark:
        streams.written(lambda: print(call.remark))
    return answer.status if isinstance(answer, Outcome) else 0


def _print(command: Command, document: Any, as_json: bool, words: Words | None) -> None:
    from teams_cli.cli import output

    streams.written(lambda: output.answer(command, document, as_json, sys.stdout, words))


def _standard_input() -> str:
    """Return the text that replaces an argument `-`."""
    from teams_cli.text import MAX_RESULT

    if sys.stdin is None:
        raise errors.WrongUsage(
            "there is no standard input", "Pipe the text into the command, or give it as an argument."
        )
    data = sys.stdin.buffer.read(MAX_RESULT + 2)
    if len(data) > MAX_RESULT + 1:
        raise errors.InvalidValue(
            f"standard input has more than the {MAX_RESULT} bytes allowed",
            "Shorten it, or put it in a file and give its path.",
        )
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise errors.WrongUsage("standard input is not UTF-8", "Give UTF-8 text.") from None


def _ask_person(operation: str, about: str) -> bool | None:
    """Return whether the person at the terminal allows an operation; None if nobody is there."""
    from teams_cli.cli.person import is_person_there

    if not is_person_there():
        return None
    about_in_brackets = f" ({one_part(about)})" if about else ""
    sys.stderr.write(f"Allow {operation}{about_in_brackets}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _line_break_between_streams() -> str:
    """Return a line break if stdout and stderr go to different places, else "". Tools that join the two streams later
    drop the last line break of stdout.
    """
    try:
        is_same_stream = os.path.samestat(os.fstat(sys.stdout.fileno()), os.fstat(sys.stderr.fileno()))
        return "" if is_same_stream or sys.stderr.isatty() else "\n"
    except (OSError, ValueError):  # one of them is closed
        return ""


def _write_stderr(line: str) -> bool:
    """Write a line to standard error. Return whether somebody may read it there."""
    try:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
        return not os.path.samestat(os.fstat(sys.stderr.fileno()), os.stat(os.devnull))
    except (OSError, ValueError):  # nobody reads it: the answer itself is what counts
        return False


def _refuse(error: errors.TeamsError, words: list[str], status: int = 0) -> int:
    """Print why the command line *words* is refused. Return *status* or, if *status* is 0, the status of the error."""
    from teams_cli.cli import output

    text = output.refusal(error, output.is_json_wanted(words), "bug" if status == BUG else error.code)
    _write_stderr(text.removesuffix("\n"))
    return status or error.status


def serve(call: Call, service: Service) -> int:
    """Run the server of *service* until it ends, and return the exit status.

    Raises:
        ExtensionMissing: A Python package that the server needs is not installed.
    """
    gc.set_threshold(700, 10, 10)  # Python's own values: commands, which are short, collect less often
    try:
        module = import_module(f"teams_cli.{service.module}")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("teams_cli"):
            raise
        raise errors.ExtensionMissing(
            f"this needs the Python package {error.name}, which is not installed", to_install(service.extra)
        ) from None
    return int(module.run(call, service.settings))
