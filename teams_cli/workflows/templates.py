"""Texts with places to fill in: `{{name}}`, `{{item}}`, `{{result.ID}}`. What is filled in is not read again."""

from __future__ import annotations

import re

from teams_cli.records.annotations import Mapping

_PLACE = re.compile(r"\{\{\s*(.*?)\s*\}\}", re.DOTALL)
RESULT = "result."


def places(text: str) -> list[str]:
    """What the places of *text* ask for, in order."""
    return _PLACE.findall(text)


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with the values in their places; a place without a value stays as it is."""
    return _PLACE.sub(lambda place: values.get(place[1], place[0]), text)
