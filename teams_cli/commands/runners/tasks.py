"""Creating the tasks that a file lists."""

from __future__ import annotations

import os

from teams_cli.commands.call import Call
from teams_cli.commands.task_documents import refuse_stopped, whole
from teams_cli.tasks import creating, touching
from teams_cli.tasks.tasks import Task


def created_from(call: Call, said: str) -> list[Task]:
    """The tasks of a list: in the file of that name, or what standard input had."""
    from teams_cli.workflows import files, task_lists

    as_text = "\n" in said or said.startswith(("[", "{"))
    content = said if as_text else files.content_of(os.path.join(call.directory, said))
    planned = []
    for one in task_lists.read(content, task_lists.ListedTask):
        draft = Task(
            team_name=call.team,
            title=one.title,
            description=one.description,
            priority=one.priority,
            created_at="",
            require=list(one.require),
            touches=touching.checked(one.touches) or None,
            run=one.run,
            prompt=one.prompt,
            plan_required=one.plan_required or None,
            check=one.check,
            check_in=one.check_in and whole(call, one.check_in),
            review_by=one.review_by,
        )
        if one.keep_for:
            refuse_stopped(call, one.keep_for)
        planned.append(creating.Planned(one.id, draft, list(one.blocked_by), one.keep_for))
    return creating.create_all(call.store, call.team, call.caller, planned)
