"""Events of notices: the values of a message's `event` on which the program acts. Other events are only for readers."""

from __future__ import annotations

from teams_cli.names import SYSTEM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.messages.messages import Message

TASK_ASSIGNED = "task-assigned"
TASK_ASSIGNED_BLOCKED = "task-assigned-blocked"
"""The task is assigned to the reader, and not ready yet."""
TASK_READY = "task-ready"
"""The task is assigned to the reader, and its blockers are completed."""
TASK_LOST = "task-lost"
"""The reader no longer has the task."""
TASK_RELEASED = "task-released"
"""The reader no longer has the task: somebody released it and said why."""
TASK_TAKEN = "task-taken"
"""The reader had the task, and another agent has it now."""
TASK_EDITED = "task-edited"
"""The task is assigned to the reader, who has not claimed it."""
OWN_TASK_EDITED = "owned-task-edited"
"""The reader has the task, or reviews it."""
REVIEW_ASKED = "review-asked"
"""A task waits for the review by the reader."""
REVIEW_ACCEPTED = "review-accepted"
"""A task of the reader was accepted by its reviewer."""
TASK_COMPLETED = "task-completed"
"""A task of the reader's team is completed, and its result follows."""
TASK_COMPLETABLE = "task-completable"
"""The reader has the task, and all tasks that must be completed before this one are completed."""
PLAN_PROPOSED = "plan-proposed"
PLAN_APPROVED, PLAN_REJECTED = "plan-approved", "plan-rejected"
"""The plan of the reader was decided."""


def of(message: Message) -> tuple[str, str]:
    """Return the event of a notice, and the id of the task that the notice is about. "" stands for an event or a task
    that the notice does not have. For a message that is not a notice, both are "".
    """
    if message.from_ != SYSTEM:
        return "", ""
    if message.event:
        return message.event, message.task or ""
    from teams_cli.messages import old_notices  # only messages of older versions have no event

    return old_notices.event_of(message.message, message.about or "")
