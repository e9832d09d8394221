"""The events of notices that versions up to 0.2 stored without an event, only as sentences. No other module reads
sentences.
"""

from __future__ import annotations

import re

_SENTENCES = [
    (rf"(task-\d+) \(.*\){rest}", event)
    for rest, event in (
        (r" is no longer yours: .* released it \(", "task-released"),
        (r" is no longer yours: ", "task-lost"),
        (r", which was yours: ", "task-taken"),
        (r" is (?:assigned to you, blocked by|kept for you; it waits for) ", "task-assigned-blocked"),
        (r" is (?:assigned to|kept for) you", "task-assigned"),
        (r", (?:assigned to|kept for) you, is ready: ", "task-ready"),
    )
]


def event_of(sentence: str, about: str) -> tuple[str, str]:
    """Return the event of a notice, and the id of its task. Both are found in its *sentence* and its field *about*.
    Each is "" if these do not show it.
    """
    if about.startswith("edited-"):
        return "task-edited", about.removeprefix("edited-")
    if re.match(r"\S+ proposes plan-\d+", sentence):
        return "plan-proposed", ""
    for pattern, event in _SENTENCES:
        if match := re.match(pattern, sentence, re.DOTALL):
            return event, match[1]
    return "", ""
