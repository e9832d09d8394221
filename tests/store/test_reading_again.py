"""A store that has read a message before reads it again: the present content of the file counts."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from teams_cli.errors import DamagedRecord
from teams_cli.messages.messages import MESSAGE
from teams_cli.store.documents import heading
from teams_cli.store.files.engine import FileStore
from tests.store.test_packed import pack
from tests.support.cli import ALPHA, make_team

HEAD = heading(MESSAGE, 1)


def rewritten(old: bytes, new: bytes) -> Callable[[Path], object]:
    return lambda file: file.write_bytes(file.read_bytes().replace(old, new))


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a power failure took its number": (rewritten(HEAD, b"{".ljust(len(HEAD))), "hello"),
    "a power failure took a part of its number": (rewritten(HEAD, HEAD[:7].ljust(len(HEAD))), "hello"),
    "edited": (rewritten(b"hello", b"hallo"), "hallo"),
    "damaged": (rewritten(b'"message"', b'"massage"'), ""),
    "renamed": (lambda file: file.rename(file.with_name(file.name.replace("1.bob", "1.mia"))), ""),
    "packed": (lambda file: pack(file.parent), "hello"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_in_the_file_now_counts(tmp_path: Path, change: str) -> None:
    make_team(tmp_path / "root", "bob").ok("send-message", "bob", "hello", agent="lea")
    (file,) = (tmp_path / f"root/teams/{ALPHA}/messages/0").glob("1.*.json")
    time.sleep(0.05)  # so that the file is old enough to be remembered
    store = FileStore(str(tmp_path / "root"))
    store.get(ALPHA, MESSAGE, "msg-1")[0].message = "changed by a reader for itself"
    assert store.get(ALPHA, MESSAGE, "msg-1")[0].message == "hello"
    act, text = CHANGES[change]
    act(file)
    for _ in range(2):
        if text:
            found = store.get(ALPHA, MESSAGE, "msg-1")[0]
            assert (found.id, found.number, found.to, found.message) == ("msg-1", 1, "bob", text)
        else:
            with pytest.raises(DamagedRecord):
                store.get(ALPHA, MESSAGE, "msg-1")
