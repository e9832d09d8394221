"""Attempts: the uid of a command that adds something, by which its repeat is known where it was killed.

A file in the root's `tmp/` has it from before the change until the answer is out. Who says the same words again and
finds the file was not answered, and adds nothing twice; who was answered means another.
"""

from __future__ import annotations

import os
from _thread import allocate_lock  # `threading` and `weakref` are more to import than a command needs
from _weakref import ref
from zlib import crc32

from teams_cli import errors
from teams_cli.store.files import disk, locks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.commands.call import Call

_LARGEST = 4 << 20
_UNDER_WAY: dict[str, ref[Attempt]] = {}
"""The attempts of this process, by their files."""
_BEGINNING = allocate_lock()


class Attempt:
    """A command of these *words*, for a `with` block that makes its change under the uid."""

    def __init__(self, call: Call, *words: str) -> None:
        self._held: int | None = None
        self._call = call
        self._words = "\0".join([call.store.address, call.team, call.agent, *words]).encode(errors="surrogatepass")
        self._path = f"{call.store.root}/tmp/command-{crc32(self._words):08x}"

    def __enter__(self) -> str:
        fresh = f"c-{os.urandom(9).hex()}"
        if not os.path.isdir(self._call.store.root):  # a command that will be refused makes no root
            return fresh
        with _BEGINNING:
            return self._begun(fresh)

    def _begun(self, fresh: str) -> str:
        """The uid to make the change under: that of an attempt that was not answered, or the *fresh* one.

        Raises:
            Busy: Nobody waits for the answer any more, so that a repeat may have begun before.
        """
        if self._call.is_given_up():
            raise errors.Busy("the request was cancelled", "Nothing was changed. Repeat it.")
        try:
            self._held = locks.hold(self._path, self._call.store.root)
            uid, words = self._content()
            uid = uid if words == self._words else fresh
            if self._held is None:  # another is at it: two at once mean it twice, unless that was cancelled
                other = _UNDER_WAY.get(self._path, lambda: None)()
                return uid if other and other._call.is_given_up() else fresh
            _UNDER_WAY[self._path] = ref(self)
            os.ftruncate(self._held, 0)
            os.pwrite(self._held, f"{uid}\n".encode() + self._words, 0)
        except (OSError, errors.TeamsError):  # then its repeat is not known
            return fresh
        return uid

    def __exit__(self, kind: object, failure: BaseException | None, *_: object) -> None:
        if failure is None:
            self._call.once_answered(self._end)
        elif isinstance(failure, errors.TeamsError) and not isinstance(failure, errors.OutcomeUnknown):
            self._end()

    def _content(self) -> tuple[str, bytes]:
        """Under which uid it was tried before, and its words."""
        head, _, words = disk.read_file(self._path, _LARGEST).partition(b"\n")
        return head.decode(errors="replace"), words

    def _end(self) -> None:
        disk.discard(self._path)
        self._release()

    def _release(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            os.close(held)

    def __del__(self) -> None:
        self._release()
