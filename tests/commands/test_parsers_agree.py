"""The strict parser against Typer, which it stands in for: what it takes means the same to both, for every command."""

from __future__ import annotations

from functools import cache
from typing import Any

import click
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st

from teams_cli import commands
from teams_cli.cli import typer_app
from teams_cli.cli.parse import parse
from teams_cli.commands.declaration import Command, Parameter

pytestmark = pytest.mark.slow

EVERY = sorted(commands.every())
ODD = ["", " ", "-", "--", "---", "-1", " 7", "1_0", "07", "٣", "1e3", "nan", "=", "a=b", "é", "a b", "\n", "\udcff"]


@cache
def lenient(name: str) -> Any:
    """Typer's command, which answers with the values instead of running anything."""
    seen: list[dict[str, Any]] = []

    def execute(command: Command, values: dict[str, Any]) -> int:
        seen.append(values)
        return 0

    return typer.main.get_command(typer_app.build([commands.get(name)], execute)), seen


def read_by_typer(name: str, words: list[str]) -> dict[str, Any]:
    """The values that Typer finds.

    Raises:
        ClickException: It refuses.
    """
    command, seen = lenient(name)
    seen.clear()
    command(args=[name, *words], prog_name="teams", standalone_mode=False)
    (values,) = seen
    return values


def values_of(parameter: Parameter) -> st.SearchStrategy[str]:
    """Words that may stand for its value, right or wrong."""
    right = st.sampled_from(parameter.choices) if parameter.choices else st.integers(0, 99).map(str)
    return right | st.sampled_from(ODD) | st.text(max_size=5)


def options_of(parameter: Parameter) -> st.SearchStrategy[list[str]]:
    """Ways to write an option, also such as only Typer knows."""
    flag = st.sampled_from(parameter.flags)
    if parameter.flag:
        return flag.map(lambda f: [f]) | flag.map(lambda f: [f"{f}=1"])
    pair = st.tuples(flag, values_of(parameter))
    return (
        pair.map(list)
        | pair.map(lambda p: [f"{p[0]}={p[1]}"])
        | pair.map(lambda p: [p[0] + p[1]])
        | pair.map(lambda p: [p[0][:-1], p[1]])
        | flag.map(lambda f: [f])
    )


def lines_of(command: Command) -> st.SearchStrategy[list[str]]:
    """Words behind the name of the command, in any order and number."""
    parts = [options_of(p) if not p.positional else values_of(p).map(lambda v: [v]) for p in command.parameters]
    some = st.lists(st.one_of(*parts, st.sampled_from(ODD).map(lambda word: [word])), max_size=6)
    whole = st.tuples(*(p for p, q in zip(parts, command.parameters, strict=True) if q.required))
    return (
        st.tuples(whole, some)
        .flatmap(lambda t: st.permutations([*t[0], *t[1]]))
        .map(lambda t: [w for p in t for w in p])
    )


def test_what_the_strict_one_takes_typer_takes_alike() -> None:
    def holds(words: list[str]) -> None:
        name = words.pop(0)
        found = parse([name, *words])
        listed = found is not None and any(p.is_id and "," in str(found[1].get(p.name)) for p in found[0].parameters)
        if found is not None and not listed:  # several ids are joined to one word, which Typer does not do
            try:
                assert repr(found[1]) == repr(read_by_typer(name, words))
            except click.ClickException as refused:
                raise AssertionError(f"Typer refuses {words}: {refused.format_message()}") from refused

    for name in EVERY:
        lines = given(lines_of(commands.get(name)).map(lambda words, name=name: [name, *words]))
        settings(max_examples=25, deadline=None, database=None)(lines(holds))()
