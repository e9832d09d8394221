"""Answers of commands that are more than a document: with a status, in parts, or a server that runs."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any


class Outcome:
    """An answer that goes with another exit status than 0."""

    def __init__(self, document: Any, status: int) -> None:
        self.document = document
        self.status = status


class Stream:
    """An answer that comes in parts, each as soon as it is there; of a live one each takes the place of the last, and
    *output_of* gives what an agent printed or did, and *answer* takes what the person says to a question, by its id.
    """

    def __init__(
        self,
        parts: Iterator[dict[str, Any]],
        live: bool = False,
        output_of: Callable[[str], list[Any]] = lambda agent: [],
        answer: Callable[[str, str], str] | None = None,
    ) -> None:
        self.parts = parts
        self.live = live
        self.output_of = output_of
        self.answer = answer


class Service:
    """An answer that is a server to run until it ends: *module*, below the package, has `run(call, settings) -> int`;
    *extra* brings what it needs.
    """

    def __init__(self, module: str, extra: str, settings: Mapping[str, Any]) -> None:
        self.module = module
        self.extra = extra
        self.settings = settings
