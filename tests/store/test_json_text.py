"""Our JSON functions do what `json` does, with the interpreter's own parts and without them."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teams_cli.store import documents

FLAT = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(
    FLAT, lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.booleans() | st.none(), inner)
)
FINITE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def same(one: Any, other: Any) -> bool:
    """Whether both are equal and of the same type; NaN equals NaN here."""
    return json.dumps(one) == json.dumps(other) and type(one) is type(other)


@settings(max_examples=15)
@given(VALUES)
def test_writes_what_json_writes(value: Any) -> None:
    for dumps, indented, _ in BOTH:
        assert dumps(value) == json.dumps(value)
        try:
            wanted = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
        except ValueError:
            with pytest.raises(ValueError):
                indented(value)
            continue
        assert indented(value) == wanted


@settings(max_examples=15)
@given(FINITE, st.text(" \t\n\r"), st.text(" \t\n\r"), st.sampled_from([None, 2]))
def test_reads_what_json_reads(value: Any, before: str, behind: str, indent: int | None) -> None:
    text = before + json.dumps(value, indent=indent) + behind
    for _, _, loads in BOTH:
        assert same(loads(text), json.loads(text))


@given(st.text('{}[]",:0123456789.-+eEtruefalsnNaIity\\/ \n\ufeff') | st.text())
def test_refuses_what_json_refuses(text: str) -> None:
    for _, _, loads in BOTH:
        try:
            wanted = json.loads(text)
        except ValueError as refused:
            with pytest.raises(ValueError) as found:
                loads(text)
            assert type(found.value) is type(refused)
            continue
        assert same(loads(text), wanted)


def test_refuses_values_that_json_lacks() -> None:
    for dumps, indented, loads in BOTH:
        assert math.isnan(loads("NaN")) and loads("-Infinity") == -math.inf
        with pytest.raises(ValueError):
            indented({"a": [math.nan]})
        for write in (dumps, indented):
            with pytest.raises(TypeError):
                write({"a": object()})
            with pytest.raises(RecursionError):
                deep: list[Any] = []
                for _ in range(100_000):
                    deep = [deep]
                write(deep)


def by_library() -> Any:
    """The module as it is if the interpreter has no parts of its own."""
    source = documents.__loader__.get_source(documents.__name__)  # type: ignore[union-attr]
    found: dict[str, Any] = {"__name__": "documents_by_library"}
    exec(source.replace("from _json import", "from _no_such_json import"), found)
    return found


OTHER = by_library()
BOTH = [
    (documents.dumps, documents.indented, documents.loads),
    (OTHER["dumps"], OTHER["indented"], OTHER["loads"]),
]
