#!/usr/bin/env python3
"""Write the pages that are made from the program's declarations: `python -m docs.generate`.

commands.md is made from the commands, settings.md from the settings, schemas/ from the models of files. Run it after
changing one of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from teams_cli import commands
from teams_cli.cli.guide import parts_of_help
from teams_cli.commands.declaration import AS, JSON, ROOT, STORE, TEAM, Command, Parameter
from teams_cli.extensions.exchange import schemas
from teams_cli.teams import settings
from teams_cli.teams.settings import Setting

DIRECTORY = Path(__file__).parent
_FOOT = "\n[All pages](README.md)\n"
_COMMANDS = """# Commands

<!-- Made by docs/generate.py. -->

For people and scripts who look up a command. `teams help COMMAND` prints the same. For the exit statuses, the JSON of
answers and the environment variables see [For scripts](scripts.md).

`list-`, `get-` and `show-` at the beginning of a command's name mean the same. As an id, `7`, `#7` and `task-7` mean
the same. Seconds can have a unit: `90s`, `5m`, `2h`, `1d`. If you give `-` as a text, the text is read from standard
input. Write `--` before a text that starts with `-`.
"""
_SETTINGS = """# Settings

<!-- Made by docs/generate.py. -->

For people who adjust a team. `teams settings` lists the settings with their values and where each value comes from.

```console
$ teams spawn-team demo --as human
…
$ teams set staleAfterSeconds 10m --as human
staleAfterSeconds: 600 (team)
```

`teams set KEY VALUE` changes a setting of the team. With `--user` it changes the default for new teams, in
`config.json`. Leaders and `human` may change settings; only `human` may change those that act in the human's name.

`teams set KEY ""`, with an empty text, removes the team's own value or, with `--user`, yours. Then the default counts
again.

| setting | default | values | meaning |
|---|---|---|---|
"""
_OF_THE_MACHINE = {"max_shadows": "2 a processor"}
"""Defaults that differ from machine to machine."""


def pages() -> dict[str, str]:
    """The pages by their file names."""
    files = {
        f"schemas/{name.replace('.', '-')}.schema.json": schemas.as_text(schemas.of(name)) for name in schemas.NAMES
    }
    return {"commands.md": _commands(), "settings.md": _settings(), **files}


def _commands() -> str:
    groups: dict[str, list[Command]] = {}
    for command in commands.every().values():
        groups.setdefault(command.group, []).append(command)
    lines = [_COMMANDS, "| | |", "|---|---|"]
    for group, members in groups.items():
        lines.append(f"| {group} | {' '.join(f'[`{each.name}`](#{each.name})' for each in members)} |")
    lines += ["", "## Options of every command", "", *_table([TEAM, AS, ROOT, STORE, JSON])]
    lines += ["", "`--team` and `--as` are for commands that act in a team.", ""]
    for group, members in groups.items():
        lines += [f"## {group}", ""]
        for command in members:
            lines += _command(command)
    return "\n".join(lines).rstrip("\n") + "\n" + _FOOT


def _command(command: Command) -> Iterator[str]:
    """A command: its usage, its meaning, its parameters, and its refusals."""
    paragraphs, refusals = parts_of_help(command)
    options = " [OPTIONS]" if any(not parameter.positional for parameter in command.own) else ""
    yield from [f"### {command.name}", "", f"`teams {command.whole_usage}{options}`", ""]
    for paragraph in paragraphs:
        yield from [paragraph, ""]
    if command.own:
        yield from [*_table(command.own), ""]
    if refusals:
        yield from [*(f"* {refusal}" for refusal in refusals), ""]
    yield from [f"Example: `teams {command.example}`", ""]


def _table(parameters: list[Parameter] | tuple[Parameter, ...]) -> list[str]:
    rows = [f"| `{', '.join(each.flags)}{each.placeholder}` | {_meaning(each)} |" for each in parameters]
    return ["| | |", "|---|---|", *rows]


def _meaning(parameter: Parameter) -> str:
    return parameter.meaning.replace("|", r"\|")


def _settings() -> str:
    rows = []
    for key, setting in settings.every().items():
        default = _OF_THE_MACHINE.get(key) or str(setting.default) or "none"
        rows.append(f"| `{key}` | {default} | {_values(setting)} | {setting.help} |\n")
    return _SETTINGS + "".join(rows) + _FOOT


def _values(setting: Setting) -> str:
    if setting.choices:
        return ", ".join(f"`{choice}`" for choice in setting.choices)
    if setting.name:
        return "a name"
    if setting.prose:
        return "a text"
    unit = "seconds" if setting.seconds else "a whole number"
    return f"{unit}, {setting.least:.10g} to {setting.most:.10g}"


if __name__ == "__main__":
    for name, page in pages().items():
        (DIRECTORY / name).write_text(page, encoding="utf-8")
