"""What people and agents read is plain English, as far as that can be counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pytest

from teams_cli import errors
from teams_cli.cli import command_line
from teams_cli.views import steps
from tests.docs import prose, sources
from tests.docs.pages import GENERATED, OTHERS, PAGES, text_of


def _page(name: str) -> Callable[[], Iterable[str]]:
    return lambda: prose.of_markdown(text_of(name))


SOURCES: dict[str, Callable[[], Iterable[str]]] = {
    **{name: _page(name) for name in [*PAGES, *OTHERS] if name not in GENERATED},
    "help": sources.help_texts,
    "settings": sources.setting_texts,
}
"""Each source with the function that returns its texts."""
IN_THE_SOURCE: dict[str, Callable[[], Iterable[str]]] = {
    "errors": sources.error_texts,
    "answers and notices": sources.other_texts,
    "module docstrings": sources.module_texts,
}
"""Sources for which the whole program is parsed."""


def test_it_is_plain() -> None:
    assert _faults(SOURCES) == {}


@pytest.mark.slow
def test_what_stands_in_the_source_is_plain() -> None:
    assert _faults(IN_THE_SOURCE) == {}


def _faults(texts_of: Mapping[str, Callable[[], Iterable[str]]]) -> dict[str, list[str]]:
    found = {name: prose.faults(texts()) for name, texts in texts_of.items()}
    return {name: faults for name, faults in found.items() if faults}


def test_it_names_no_class_of_the_program() -> None:
    for source, texts in SOURCES.items():
        text = " ".join(texts())
        assert [name for name in errors.kinds() if f"{name}:" in text] == [], source


def test_what_is_next_can_be_run() -> None:
    for page in [*PAGES, *OTHERS]:
        for words in prose.next_commands(text_of(page)):
            assert words[0] == "teams" and command_line.parse(words[1:]), f"{page}: {words}"


def test_what_answers_say_is_next_can_be_run() -> None:
    """An agent runs the `next:` lines as they are; every alternative in them is a command."""
    found = [value for value in vars(steps).values() if isinstance(value, str) and value.startswith("teams ")]
    found += [steps.decide("plan-1"), steps.end("shutdown-1"), steps.review("task-1"), steps.outside("a", [], "bob")]
    found += [steps.propose("task-1"), steps.revise("plan-1", "task-1"), steps.complete("task-1"), steps.reply("msg-1")]
    for step in found:
        for words in prose.next_commands(f"next: {step.partition(chr(10))[0].partition(' <<')[0]}"):
            assert words[0] == "teams" and command_line.parse(words[1:]), step


def test_a_line_of_the_changelog_is_one_that_a_user_can_act_on() -> None:
    """It is short and says which kind of change it is."""
    text = text_of("CHANGELOG.md")
    changes = text[text.index("\n## ") :]
    for line in filter(None, changes.splitlines()):
        assert line.startswith(("## ", "* Added: ", "* Changed: ", "* Fixed: ")), line
        assert len(line) <= 160, line


def test_the_counting_finds_what_it_is_for() -> None:
    bad = ["What is told is over. Who asks hears. " + "word " * 36 + "."]
    assert len(prose.faults(bad)) == 5
    assert prose.faults(["What is next? The claim expires. See [it](a)."]) == []
    page = "# A\n\n* one\n  two\n* three `x y`\n\n| a | b |\n|---|---|\n\n```\nx is over\n```\n"
    assert list(filter(None, prose.of_markdown(page))) == ["A", "one two", "three CODE", "a", "b"]
    assert list(prose.next_commands("next: teams wait --timeout N, or teams ack ID\n")) == [
        ["teams", "wait", "--timeout", "1"],
        ["teams", "ack", "ID"],
    ]
