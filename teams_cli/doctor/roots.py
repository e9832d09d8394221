"""Whether all clients of the user keep their teams in one root: where their settings say another, they meet nobody."""

from __future__ import annotations

import os

from teams_cli import environment, errors
from teams_cli.clients import json_edits, known, settings_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from teams_cli.store.contract import Finding

_VARIABLES = ("TEAMS_HOME", "XDG_CONFIG_HOME")


def examine(root: str, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Each client whose settings say another root than the one that is looked at."""
    for client in known.all_clients():
        for place in settings_files.of_user(client.name, environ.get("HOME") or "/", environ) if client.home else ():
            for said in _environments(_document(place.path)):
                where = f"{client.name}: {place.path}"
                try:
                    found = environment.root_directory(None, {**environ, **said})[0]
                except errors.TeamsError as error:
                    yield _finding(where, error.message, error.hint)
                    continue
                if os.path.realpath(found) != os.path.realpath(root):
                    what = f"{client.name} keeps its teams in {found}, and this command in {root}"
                    yield _finding(where, what, f"Say the same in both: TEAMS_HOME={root}")


def _finding(where: str, what: str, remedy: str) -> Finding:
    return {"level": "warning", "where": where, "what": what, "remedy": remedy}


def _document(path: str) -> Any:
    """What the settings say; nothing where they can't be read, which is found elsewhere."""
    import json
    import tomllib

    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        return tomllib.loads(text) if path.endswith(".toml") else json.loads(json_edits.without_comments(text))
    except (OSError, ValueError):
        return None


def _environments(document: Any) -> Iterator[dict[str, str]]:
    """The variables of ours that the settings give to what the client starts."""
    if isinstance(document, dict):
        said = {key: document[key] for key in _VARIABLES if isinstance(document.get(key), str) and document[key]}
        if said and not any("{" in value for value in said.values()):  # which the client fills in
            yield said
    for inner in document.values() if isinstance(document, dict) else document if isinstance(document, list) else ():
        yield from _environments(inner)
