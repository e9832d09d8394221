"""The latest tool calls of an agent, by what they were given: noted at each, and looked at now and then.

They are in `inboxes/<agent>.calls`, nine bytes each. From when on they have been the same again and again says the time
of `inboxes/<agent>.circling`, which is not there while they are others.
"""

import os
from binascii import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.hooks.entry import Standpoint

_WINDOW = 24
_KEPT = _WINDOW // 2
_FEW = 3
"""So few different calls in a window are the same again and again."""
_SIZE = 9
_ENDS = (b'"tool_response"', b'"tool_use_id"', b'"tool_output"')


def note(standpoint: "Standpoint", given: bytes) -> float:
    """Note the calls of the event; since when they have been the same, where it is time to look at that, else 0.

    Waiting is no call. Of who is no member nothing is noted: they have no file of what they have seen.
    """
    base = f"{standpoint.root}/teams/{standpoint.team}/inboxes/{standpoint.agent}"
    found = b"".join(b"%08x\n" % crc32(call) for call in _calls(given) if b"teams wait" not in call)
    if not found or not os.path.exists(f"{base}.seen"):
        return 0.0
    descriptor = os.open(f"{base}.calls", os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(descriptor, found)
        if os.fstat(descriptor).st_size < _WINDOW * _SIZE:
            return 0.0
        calls = os.pread(descriptor, 1 << 16, 0).split()[-_WINDOW:]
        os.ftruncate(descriptor, 0)
        os.write(descriptor, b"".join(call + b"\n" for call in calls[-_KEPT:]))
    finally:
        os.close(descriptor)
    return _since(f"{base}.circling", len(set(calls)) <= _FEW)


def _calls(given: bytes) -> list[bytes]:
    """What each tool of the event was given, without what came of it: as it stands there, unread."""
    parts = given.split(b'"tool_input"')[1:]
    return [min((part.partition(end)[0] for end in _ENDS), key=len) for part in parts]


def _since(path: str, same: bool) -> float:
    """Since when the calls have been the same; 0 where they are not, or just began to be."""
    if not same:
        if os.path.exists(path):
            os.unlink(path)
        return 0.0
    try:
        return os.stat(path).st_mtime
    except FileNotFoundError:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        return 0.0
