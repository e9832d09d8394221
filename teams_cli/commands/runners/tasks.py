"""Creating the tasks that a file lists."""

from __future__ import annotations

import os

from teams_cli import errors
from teams_cli.commands.call import Call
from teams_cli.commands.task_documents import refuse_stopped
from teams_cli.tasks import creating
from teams_cli.tasks.tasks import Task


def created_from(call: Call, said: str) -> list[Task]:
    """The tasks of a list: in the file of that name, or what standard input had."""
    from teams_cli.workflows import files, roster

    if not said.strip():
        raise errors.WrongUsage(
            "the list of tasks is empty", "Name a file, or give the list on standard input: - {title: TITLE}"
        )
    as_text = "\n" in said or said.startswith(("[", "{", "- "))
    content = said if as_text else files.content_of(os.path.join(call.directory, said))
    planned = []
    for one in roster.read_task_list(content, roster.ListedTask):
        draft = creating.of_template(call.team, one, call.directory)
        if one.keep_for:
            refuse_stopped(call, one.keep_for)
        planned.append(creating.Planned(one.id, draft, list(one.blocked_by), one.keep_for, list(one.after)))
    return creating.create_all(call.store, call.team, call.caller, planned)
