"""Texts that are not to be taken for more than text."""

from __future__ import annotations

ESCAPES = "\x1b[2J\x1b]0;title\x07 \u202egnp.exe \x9b31m \u200bend"
