"""A store that has read a message before reads it as if it had not: what is in the file now counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from teams_cli.errors import DamagedRecord
from teams_cli.messages.messages import MESSAGE
from teams_cli.store.documents import heading
from teams_cli.store.files.engine import FileStore
from tests.store.test_packed import pack
from tests.support.cli import ALPHA, make_team

LOST: dict[str, Callable[[bytes], bytes]] = {
    "all of it": lambda head: b"{".ljust(len(head)),
    "a part": lambda head: head[:7] + b" " * (len(head) - 7),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file of a message."""
    cli = make_team(tmp_path / "root", "bob")
    cli.ok("send-message", "bob", "hello", agent="lea")
    (path,) = (tmp_path / f"root/teams/{ALPHA}/messages/0").glob("1.*.json")
    return path


@pytest.fixture
def store(file: Path) -> FileStore:
    """A store that has read it."""
    made = FileStore(str(file.parents[4]))
    assert text(made) == "hello"
    return made


def text(store: FileStore) -> str:
    found = store.get(ALPHA, MESSAGE, "msg-1")[0]
    assert (found.id, found.number, found.to) == ("msg-1", 1, "bob")
    return found.message


@pytest.mark.parametrize("lost", LOST.values(), ids=LOST)
def test_one_whose_number_a_power_failure_took(store: FileStore, file: Path, lost: Callable[[bytes], bytes]) -> None:
    head = heading(MESSAGE, 1)
    file.write_bytes(lost(head) + file.read_bytes().removeprefix(head))
    assert [text(store), text(store)] == ["hello", "hello"]


def test_one_that_was_edited(store: FileStore, file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b"hello", b"hallo"))
    assert [text(store), text(store)] == ["hallo", "hallo"]


def test_one_that_was_damaged(store: FileStore, file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b'"message"', b'"massage"'))
    for _ in range(2):
        with pytest.raises(DamagedRecord):
            text(store)


def test_one_that_was_renamed(store: FileStore, file: Path) -> None:
    file.rename(file.with_name(file.name.replace("1.bob", "1.mia")))
    for _ in range(2):
        with pytest.raises(DamagedRecord):
            text(store)


def test_one_that_was_packed_since(store: FileStore, file: Path) -> None:
    pack(file.parent)
    assert not file.exists() and [text(store), text(store)] == ["hello", "hello"]


def test_one_that_another_reader_changed_for_itself(store: FileStore) -> None:
    store.get(ALPHA, MESSAGE, "msg-1")[0].message = "mine"
    assert text(store) == "hello"
