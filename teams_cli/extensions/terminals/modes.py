"""The last output of a client in a terminal, and its modes, for somebody who attaches later."""

from __future__ import annotations

import re

_KEPT = 1 << 18
_LONGEST = 64
_CHANGE = re.compile(rb"\x1b\[\?([\d;]+)([hl])|\x1b\[([<>])(\d*)u|\x1b\[>(4;?\d*)m|\x1b([=>])")
_WHOLE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[^\[\]])")
_ASKS = rb"\x1b\[[?>=]?[\d;]*c|\x1b\[\??[\d;]*n|\x1b\[\?u|\x1b\[>\d*q|\x1b\[\??\d+\$p|\x1b\[1[1-9]t|\x1b\[2[01]t"
_SAYS = rb"\x1b\](?!8;)[^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[P_](?:[^\x1b]|\x1b\x1b)*\x1b\\"
_NOT_AGAIN = re.compile(b"|".join([_CHANGE.pattern, _ASKS, _SAYS]))
"""What would have an effect again: modes, questions to the terminal, the clipboard, notifications."""
_EMPTY = re.compile(rb"\x1b\[[23]J|\x1bc|\x1b\[\?(?:1049|1047|47)[hl]")
"""After these nothing is seen of what was printed before."""
_ASKED = re.compile(rb"\x1b\[(?:0?(c)|(5)n|(6)n)")
_ON = frozenset((b"7", b"25"))
_OTHER_SCREEN = frozenset((b"47", b"1047", b"1049"))
_AT_ONCE = b"2026"
"""The mode in which what is printed is shown only when that ends."""


class Modes:
    """The modes that a client set in its terminal."""

    def __init__(self) -> None:
        self._set: dict[bytes, bool] = {}
        self._keyboards: list[bytes] = []
        self._keys = b""
        self._pad = b">"
        self._open = b""

    def feed(self, data: bytes) -> None:
        """Look at what it prints next."""
        data = self._open + data
        self._open = unfinished(data)
        for modes, set, keyboard, number, keys, pad in _CHANGE.findall(data):
            if set:
                self._set.update(dict.fromkeys(modes.split(b";"), set == b"h"))
            elif keyboard == b">":
                self._keyboards.append(number or b"0")
            elif keyboard:
                del self._keyboards[-int(number or 1) :]
            elif keys:
                self._keys = keys
            else:
                self._pad = pad

    @property
    def other_screen(self) -> bool:
        """Whether it has the screen that leaves no lines behind."""
        return any(self._set.get(mode) for mode in _OTHER_SCREEN)

    def again(self) -> bytes:
        """What sets them in a terminal that has none."""
        found = [(b"\x1b[?%sh" if on else b"\x1b[?%sl") % mode for mode, on in self._changed()]
        found += [b"\x1b[>%su" % flags for flags in self._keyboards]
        found += [b"\x1b[>%sm" % self._keys] if self._keys else []
        return b"".join(found) + (b"\x1b=" if self._pad == b"=" else b"")

    def undone(self) -> bytes:
        """What leaves the terminal as it was before."""
        found = [b"\x1b[0m"]
        found += [b"\x1b[<%du" % len(self._keyboards)] if self._keyboards else []
        found += [(b"\x1b[?%sl" if on else b"\x1b[?%sh") % mode for mode, on in self._changed()]
        found += [b"\x1b[>4m"] if self._keys else []
        found += [b"\x1b>"] if self._pad == b"=" else []
        return b"".join(found) + (b"\x1b[?1049l" if self.other_screen else b"")

    def _changed(self) -> list[tuple[bytes, bool]]:
        """Those that are not as every terminal has them; which screen it is, is said apart."""
        apart = _OTHER_SCREEN | {_AT_ONCE}
        return [(mode, on) for mode, on in self._set.items() if on != (mode in _ON) and mode not in apart]


class Shown(Modes):
    """These, and its last output."""

    def __init__(self) -> None:
        super().__init__()
        self.last = b""

    def feed(self, data: bytes) -> None:
        """Keep what it prints next."""
        super().feed(data)
        kept = self.last + data
        ends = [found.end() for found in _EMPTY.finditer(kept, max(0, len(self.last) - _LONGEST))]
        self.last = kept[ends[-1] if ends else 0 :]
        if len(self.last) > 2 * _KEPT:
            start = self.last.find(b"\x1b", -_KEPT)
            self.last = self.last[start if start > 0 else -_KEPT :]

    def repeated(self) -> bytes:
        """What shows it in another terminal, which is empty."""
        whole = self.last[: len(self.last) - len(unfinished(self.last))]
        return (b"\x1b[?1049h" if self.other_screen else b"") + _NOT_AGAIN.sub(b"", whole) + self.again()


def answers(data: bytes) -> bytes:
    """What a terminal that nobody looks at says to the questions in what was printed."""
    said = {b"c": b"\x1b[?62c", b"5": b"\x1b[0n", b"6": b"\x1b[1;1R"}
    return b"".join(said[b"".join(found)] for found in _ASKED.findall(data))


def unfinished(data: bytes) -> bytes:
    """The command to the terminal at the end of it that is not all there; empty if it is."""
    start = data.rfind(b"\x1b")
    is_open = start >= 0 and len(data) - start < _LONGEST and not _WHOLE.match(data, start)
    return data[start:] if is_open else b""
