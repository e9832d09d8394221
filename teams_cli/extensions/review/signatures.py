"""The arguments that a function takes, and whether a call gives them."""

from __future__ import annotations

import ast


class Signature:
    """What a function takes: names by place, how many of them must be given, names by keyword, and whether any more."""

    def __init__(self, places: list[str], needed: int, words: dict[str, bool], rest: bool, others: bool) -> None:
        self.places = places
        self.needed = needed
        self.words = words
        self.rest = rest
        self.others = others
        self.hidden = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Signature) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def refuses(self, call: ast.Call) -> str:
        """Why the function does not take this call; empty if it does, or if what is given can't be counted."""
        if any(isinstance(given, ast.Starred) for given in call.args) or any(
            word.arg is None for word in call.keywords
        ):
            return ""
        named = [word.arg for word in call.keywords if word.arg]
        if len(call.args) > len(self.places) and not self.rest:
            return f"takes {len(self.places)} arguments by place, not {len(call.args)}"
        unknown = [name for name in named if name not in self.places[self.hidden :] and name not in self.words]
        if unknown and not self.others:
            return f"has no parameter {unknown[0]}"
        missing = [name for name in self.places[len(call.args) : self.needed] if name not in named]
        missing += [name for name, needed in self.words.items() if needed and name not in named]
        return f"needs {missing[0]}" if missing else ""


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Signature:
    """What that function takes."""
    given = node.args
    places = [argument.arg for argument in (*given.posonlyargs, *given.args)]
    words = {
        argument.arg: default is None for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
    }
    found = Signature(places, len(places) - len(given.defaults), words, bool(given.vararg), bool(given.kwarg))
    found.hidden = len(given.posonlyargs)
    return found
