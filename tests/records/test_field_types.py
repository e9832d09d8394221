"""The table of field types checks what is written, and what is read, also where it carries our checksum."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teams_cli import kinds
from teams_cli.errors import DamagedRecord
from teams_cli.records import field_types
from teams_cli.records.validation import check_record
from tests.support.cli import ALPHA, add_tasks, make_team

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
    """One that is not makes each of its records slow to read."""
    assert {kind.name: field_types.knows(kind.record) for kind in kinds.ALL} == {kind.name: [] for kind in kinds.ALL}


@pytest.mark.slow
@settings(max_examples=1500)
@given(data=st.data())
def test_what_fits_is_valid(data: st.DataObject) -> None:
    """The quick look lets nothing pass that the whole one refuses, but what is missing."""
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
    """Write the file with other values in it, and the checksum that fits them."""
    document = {**json.loads(path.read_bytes()), **values}
    document.pop("checksum")
    body = json.dumps(document, indent=2, ensure_ascii=False).encode()[:-2]
    path.write_bytes(b'%s,\n  "checksum": "%08x"\n}\n' % (body, crc32(body)))


FORGED = {
    "an inbox": ("teams/alpha/inboxes/bob.json", {"upTo": "x"}),
    "what is open in it": ("teams/alpha/inboxes/bob.json", {"open": [{"number": "1"}]}),
    "an agent": ("teams/alpha/agents/bob.json", {"lastSeen": "yesterday"}),
    "a task": ("tasks/alpha/task-1.json", {"blockedBy": 7}),
    "a word of a task": ("tasks/alpha/task-1.json", {"status": "nearly"}),
    "a time of a task": ("tasks/alpha/task-1.json", {"createdAt": "2030-13-01T00:00:00Z"}),
    "what came of its check": ("tasks/alpha/task-1.json", {"checked": {"by": "bob"}}),
    "what came of its review": ("tasks/alpha/task-1.json", {"reviewed": {"by": "bob"}}),
    "the team": ("teams/alpha/team.json", {"members": ["bob"]}),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", FORGED)
def test_a_forged_checksum_is_a_damaged_record_and_no_bug(tmp_path: Path, what: str) -> None:
    cli = make_team(tmp_path / "root", "bob")
    add_tasks(cli, "one")
    cli.ok("send-message", "bob", "hello", agent="lea")
    cli.ok("announce", "here", agent="bob")
    cli.ok("ack", "1", agent="bob")
    path, values = FORGED[what]
    forge(cli.root / path, **values)
    for words in (["list-agents"], ["get-tasks"], ["brief"], ["read-messages"], ["claim-task", "1"], ["doctor"]):
        answer = cli(*words, "--json", team=ALPHA, agent="bob")
        assert answer.status != 3, answer
    assert path in cli("doctor").stdout + cli("doctor").stderr
