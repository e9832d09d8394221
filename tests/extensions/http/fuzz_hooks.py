"""Hooks for schemathesis: most requests come from a member of the existing team, waits are short, and no
generated text is run as a command.
"""

from __future__ import annotations

from typing import Any

import schemathesis

_SHORT = {"read-messages": "wait", "join-team": "wait", "wait": "timeout", "ask-others": "timeout"}


@schemathesis.hook
def map_query(context: Any, query: Any) -> Any:
    """The query of a request, in four of five cases with the existing team and one of its members."""
    if not isinstance(query, dict) or len(str(query)) % 5 == 0:
        return query
    return {**query, "team": "alpha", "as": ("human", "lea", "bob")[len(str(query)) % 3]}


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    """The body of a request with short waits, and without the command that `join-team` would store."""
    name = context.operation.path.rpartition("/")[2]
    if not isinstance(body, dict):
        return body
    body = {key: value for key, value in body.items() if (name, key) != ("join-team", "answer")}
    return {**body, _SHORT[name]: 0.01} if name in _SHORT else body
