"""The events of notices on which the program acts: the values of `event` of a message. Others are for readers."""

from __future__ import annotations

TASK_ASSIGNED = "task-assigned"
TASK_ASSIGNED_BLOCKED = "task-assigned-blocked"
"""It is assigned to the reader, and not ready yet."""
TASK_READY = "task-ready"
"""It is assigned to the reader, and its blockers are completed."""
TASK_LOST = "task-lost"
"""The reader no longer has it."""
TASK_RELEASED = "task-released"
"""The reader no longer has it, because somebody released it, and says why."""
TASK_TAKEN = "task-taken"
"""Another agent has what the reader had."""
TASK_EDITED = "task-edited"
PLAN_PROPOSED = "plan-proposed"
