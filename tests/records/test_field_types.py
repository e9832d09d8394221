"""The table of field types checks what is written and read, even if a record has a valid checksum."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teams_cli import kinds
from teams_cli.errors import DamagedRecord
from teams_cli.records import field_types
from teams_cli.records.types import check_record
from tests.support.cli import ALPHA, Cli, add_tasks

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**60), 2**60),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.sampled_from(
        ["task-1", "msg-0", "ask-12", "bob", "a b", "2030-01-02T03:04:05Z", "2030-02-30T03:04:05Z", "\ud800"]
    ),
    st.sampled_from(["pending", "completed", "closed", "high", "edit", "agents", "plain", "gone", "lost", "requested"]),
)
DOCUMENTS = st.recursive(
    VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)


def test_every_declared_type_is_known() -> None:
    """A type that is not in the table would make its records slow to read."""
    assert [name for kind in kinds.ALL for name in field_types.unknown_types(kind.record)] == []


@pytest.mark.slow
@settings(max_examples=500)
@given(data=st.data())
def test_what_fits_is_valid(data: st.DataObject) -> None:
    """The quick check passes nothing that the full check refuses, except missing fields."""
    kind = data.draw(st.sampled_from(kinds.ALL))
    name = data.draw(st.sampled_from(list(kind.record.fields)))
    key, value = kind.record.fields[name][0], data.draw(DOCUMENTS)
    if not field_types.fits(kind.record, {key: value}):
        return
    try:
        check_record(kind.record, {key: value}, "here")
    except DamagedRecord as damage:
        assert "required" in damage.message, damage.message


def forge(path: Path, **values: Any) -> None:
    """Replace values in the file, and give it the checksum that fits them."""
    document = {**json.loads(path.read_bytes()), **values}
    document.pop("checksum")
    body = json.dumps(document, indent=2, ensure_ascii=False).encode()[:-2]
    path.write_bytes(b'%s,\n  "checksum": "%08x"\n}\n' % (body, crc32(body)))


INBOX, TASK, TEAM = "teams/alpha/inboxes/bob.json", "tasks/alpha/task-1.json", "teams/alpha/team.json"
FORGED: list[tuple[str, dict[str, Any]]] = [
    (INBOX, {"upTo": "x"}),
    (INBOX, {"open": [{"number": "1"}]}),
    ("teams/alpha/agents/bob.json", {"lastSeen": "yesterday"}),
    (TASK, {"blockedBy": 7}),
    (TASK, {"status": "nearly"}),
    (TASK, {"createdAt": "2030-13-01T00:00:00Z"}),
    (TASK, {"checked": {"by": "bob"}}),
    (TASK, {"reviewed": {"by": "bob"}}),
    (TEAM, {"members": ["bob"]}),
]


@pytest.mark.slow
def test_a_forged_checksum_is_a_damaged_record_and_no_bug(cli: Cli, tmp_path: Path) -> None:
    add_tasks(cli, "one")
    cli.ok("send-message", "bob", "hello", agent="lea")
    cli.ok("announce", "here", agent="bob")
    cli.ok("ack", "1", agent="bob")
    shutil.copytree(cli.root, tmp_path / "good")
    for path, values in FORGED:
        forge(cli.root / path, **values)
        for words in ("list-agents", "brief", "read-messages", "claim-task 1"):
            answer = cli(*words.split(), "--json", team=ALPHA, agent="bob")
            assert answer.status != 3, answer
        found = cli("doctor")
        assert path in found.stdout + found.stderr, (path, values)
        shutil.rmtree(cli.root)
        shutil.copytree(tmp_path / "good", cli.root)
