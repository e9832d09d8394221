"""Making a team: it is there when its `team.json` is."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.records.records import Record
from teams_cli.store.documents import encode
from teams_cli.store.files import disk
from teams_cli.store.files.layout import Layout
from teams_cli.store.files.locks import Lock


def create_team(layout: Layout, team: str, record: Record, lock: Lock) -> bytes:
    """Make the file of a team, under the *lock* of the directory of all; an empty directory of a crashed creation is
    taken over.

    Raises:
        AlreadyExists: There is one of that name, but for the case of its letters.
    """
    parent, directory = layout.teams, layout.team(team)
    disk.make_directories(parent, layout.root)
    with disk.Written(layout.temp, data := encode(record)) as temp, lock:
        for name in disk.names_in(parent):
            if name.lower() == team.lower() and "team.json" in disk.names_in(f"{parent}/{name}"):
                disk.confirm(f"{parent}/{name}", f"{parent}/{name}/team.json")
                raise errors.AlreadyExists(f"there is a team {name} already", "Choose another name, or join it.")
        disk.make_directories(directory, layout.root)
        disk.make_directories(layout.tasks(team), layout.root)
        disk.commit(temp, f"{directory}/team.json")
    return data
