"""Hooks for schemathesis: most requests are of a member in the team that there is, nothing waits for long, and nothing
that was made up is run as a command.
"""

from __future__ import annotations

from typing import Any

import schemathesis

_SHORT = {"read-messages": "wait", "join-team": "wait", "wait": "timeout", "ask-others": "timeout"}


@schemathesis.hook
def map_query(context: Any, query: Any) -> Any:
    """The query of a request, four times in five of somebody who is there."""
    if not isinstance(query, dict) or len(str(query)) % 5 == 0:
        return query
    return {**query, "team": "alpha", "as": ("human", "lea", "bob")[len(str(query)) % 3]}


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    """The body of a request, made harmless."""
    name = context.operation.path.rpartition("/")[2]
    if not isinstance(body, dict):
        return body
    body = {key: value for key, value in body.items() if (name, key) != ("join-team", "answer")}
    return {**body, _SHORT[name]: 0.01} if name in _SHORT else body
