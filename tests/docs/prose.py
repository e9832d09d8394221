"""Checks of English that can be counted: the sentences of a text, and their faults.

The list of private words is here alone. `sources` provides the texts of the program.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator

MOST_WORDS = 35
LEAST_SENTENCES_A_RELATIVE = 20
"""The sentences among which one may begin with a bare relative."""
RELATIVE = re.compile(r"(?:What|Who|Whom|Whoever|Whatever|That of|Those of|Of|Where)\b")
PRIVATE = re.compile(
    r"\b(?:(?:is|was|are|were) over|(?:keep|keeps|kept) for(?! you, is ready)|tells?|told|mend(?:s|ed|ing)?|came to"
    r"|comes to|circles?|came back|comes back|but in|no more|so long)\b"
)
"""Private words, for which the field has others: expires, assign, notify, fix, result, cycle, rejected, except, no
longer. One notice keeps such a word, because scripts look for it.
"""
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ITEM = re.compile(r"(?:[*-]|\d+\.|>) +")
_CODE = re.compile(r"`[^`]*`")
_LINK = re.compile(r"!?\[([^]]*)\]\([^)]*\)")
_QUOTED = re.compile(r'"[^"]*"')
_END = re.compile(r"(?<=[.!?])[\"*)]*\s+(?=[A-Z\"*(])")
_NEXT = re.compile(r"^\s*next: (.+)$", re.MULTILINE)
_VALUES = {"N": "1", "SECONDS": "1"}
"""Values for placeholders that are not texts."""


def of_markdown(page: str) -> Iterator[str]:
    """Return the texts of a page: paragraphs, items and cells, without code."""
    plain = _CODE.sub("CODE", _FENCE.sub("", _COMMENT.sub("", page)))
    plain = _LINK.sub(r"\1", plain)
    for block in re.split(r"\n\s*\n", plain):
        text = ""
        for line in block.splitlines():
            if line.startswith("|"):
                yield from (cell.strip() for cell in line.strip("|").split("|") if cell.strip(" -"))
            elif line.startswith("#"):
                yield line.lstrip("# ")
            elif item := _ITEM.match(line):
                yield text
                text = line[item.end() :]
            else:
                text = f"{text} {line.strip()}"
        yield text


def sentences(texts: Iterable[str]) -> list[str]:
    parts = (part for text in texts for part in re.split(r"\n\s*(?=\n|[*-] )", _CODE.sub("CODE", text)))
    return [sentence.strip(" *\n") for part in parts for sentence in _END.split(part) if sentence.strip(" *\n")]


def faults(texts: Iterable[str]) -> list[str]:
    """Return the sentences that are too long, have private words or, if there are too many, begin with a bare
    relative.
    """
    every = sentences(texts)
    found = [f"more than {MOST_WORDS} words: {each}" for each in every if len(each.split()) > MOST_WORDS]
    for each in every:
        found += [f"not the field's word, {word!r}: {each}" for word in PRIVATE.findall(_QUOTED.sub("", each))]
    relative = [each for each in every if RELATIVE.match(each) and not each.endswith("?")]
    if len(relative) * LEAST_SENTENCES_A_RELATIVE > len(every):
        found += [f"begins with a bare relative: {each}" for each in relative]
    return found


def next_commands(text: str) -> Iterator[list[str]]:
    """Return the words of each command that a `next:` line shows, with values for the capitals, up to an ellipsis."""
    for line in _NEXT.findall(text):
        if "<<" in line or line.startswith("…"):
            continue
        for command in line.partition("…")[0].split(", or "):
            yield [_VALUES.get(word, word) for word in shlex.split(command)]
