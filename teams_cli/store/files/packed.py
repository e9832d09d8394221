"""Messages of closed teams that older versions packed: those of one directory in one file, below their file names.

    "messages to number 999, 999 of them"
    "1.bob.4f0c9d21a7b3e865.json"
    {
      "id": "msg-1",
      …
    }
    "2.@.81d25b0c6e9f4a73.json"
    {
      …

It is a row of JSON values, for people to read with `cat` and programs with `jq`. Lines of a message begin with a brace
or two spaces, so one that begins with a quote is a name.
"""

from __future__ import annotations

from teams_cli.store.files import disk
from teams_cli.store.files.layout import PACKED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME = b'\n"'
_BEHIND = b'"\n'


class Packed:
    """What is packed in a directory, by the names of the files; nothing where there is no such file."""

    def __init__(self, directory: str) -> None:
        self.path = f"{directory}/{PACKED}"
        try:
            self.heading, *parts = disk.read_file(self.path).split(_NAME)
        except FileNotFoundError:
            self.heading, parts = b"", []
        named = (part.partition(_BEHIND) for part in parts)
        self._files = {name.decode("ascii", "replace"): text.rstrip(b"\n") + b"\n" for name, _, text in named}

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def get(self, name: str) -> bytes | None:
        """The bytes of the file that had that name; None if it is not here."""
        return self._files.get(name)

    @property
    def announced(self) -> int:
        """How many messages there are by what the heading says; 0 if it does not say."""
        words = self.heading.decode("ascii", "replace").split(" ")
        return int(words[4]) if len(words) > 4 and words[4].isdecimal() else 0
