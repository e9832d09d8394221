"""The events of notices that versions up to 0.2 stored as sentences alone. Nothing else reads sentences."""

from __future__ import annotations

import re

from teams_cli.messages import events

_SENTENCES = [
    (rf"(task-\d+) \(.*\){rest}", event)
    for rest, event in (
        (r" is no longer yours: .* released it \(", events.TASK_RELEASED),
        (r" is no longer yours: ", events.TASK_LOST),
        (r", which was yours: ", events.TASK_TAKEN),
        (r" is (?:assigned to you, blocked by|kept for you; it waits for) ", events.TASK_ASSIGNED_BLOCKED),
        (r" is (?:assigned to|kept for) you", events.TASK_ASSIGNED),
        (r", (?:assigned to|kept for) you, is ready: ", events.TASK_READY),
    )
]


def event_of(sentence: str, about: str) -> tuple[str, str]:
    """The event of the notice and its task, from its words and from what it is *about*; empty if it has none of those
    that are read.
    """
    if about.startswith("edited-"):
        return events.TASK_EDITED, about.removeprefix("edited-")
    if re.match(r"\S+ proposes plan-\d+", sentence):
        return events.PLAN_PROPOSED, ""
    matches = ((re.match(pattern, sentence, re.DOTALL), event) for pattern, event in _SENTENCES)
    match, event = next(((match, event) for match, event in matches if match), (None, ""))
    return event, match[1] if match else ""
