"""Texts with places to fill in: `{{name}}`, `{{item}}`, `{{result.ID}}`. What is filled in is not read again."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_PLACE = re.compile(r"\{\{\s*(.*?)\s*\}\}", re.DOTALL)
RESULT = "result."


def instance(template: str, number: int) -> str:
    """What the task that `each` makes of that template for its item of that number, from 1, is called."""
    return f"{template}-{number}"


def made_of(key: str) -> str:
    """The template of which `each` made the task that is called so; empty where it made none."""
    template, _, number = key.rpartition("-")
    return template if number.isdigit() else ""


def places(text: str) -> list[str]:
    """What the places of *text* ask for, in order."""
    return _PLACE.findall(text)


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with the values in their places; a place without a value stays as it is."""
    return _PLACE.sub(lambda place: values.get(place[1], place[0]), text)
