"""Python by ruff: the rules that stand for mistakes, whatever the taste of the repository."""

from __future__ import annotations

import os
import re

from teams_cli.extensions.review import kinds
from teams_cli.extensions.review.change import content
from teams_cli.extensions.review.findings import NOTE, SERIOUS, WARNING, Finding
from teams_cli.extensions.review.linters import documents, program, rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from teams_cli.extensions.review.linters import Rules

# A rule may stand for a whole family, by how its codes begin; the longer name comes first.
NAMES = rules(
    (SERIOUS, "F821 F822 F823", "it fails when this line runs"),
    (WARNING, "F811 F402", "the earlier one is lost"),
    (NOTE, "F401 F841 F403", ""),
)
MISTAKES = rules(
    (SERIOUS, "F502 F50 F52 RUF016", "it fails when this line runs"),
    (SERIOUS, "B016 B030 F633 F70 F901 PLR0206 PLW0711 PLW1501 RUF008", ""),
    (SERIOUS, "F631 F634 PLW0129", "the result is always the same"),
    (SERIOUS, "PLW0133", "`raise` is missing"),
    (SERIOUS, "PLW0245", "it is not called"),
    (WARNING, "S110 S112", "errors vanish without a trace"),
    (WARNING, "E722", "it catches KeyboardInterrupt and SystemExit, too"),
    (WARNING, "B012", "it swallows the exception"),
    (WARNING, "B006 RUF024", "all calls share it"),
    (WARNING, "B008 RUF009", "it is called once, when the definition is read"),
    (WARNING, "F601 F602 PIE794 PLW0128 B035", "the first value is lost"),
    (WARNING, "B015 B018 B022 PLW0127", "it has no effect"),
    (WARNING, "B023", "all functions see its last value"),
    (WARNING, "B909", "items are skipped"),
    (WARNING, "ISC004", "a comma is missing, or they are one text"),
    (WARNING, "RUF018", "with -O the assignment is gone, too"),
    (WARNING, "RUF027", "it is printed with the braces"),
    (WARNING, "ASYNC", "it stops all other tasks meanwhile"),
    (WARNING, "F632 PLR0124 PLR0133 PLW0177 SIM220 SIM221 SIM222 SIM223", ""),
    (WARNING, "B002 B003 B005 B020 B021 B025 B029 B031 B032 N805 PIE796 PLW0131 PLW0211 PLW0406 PLW1508", ""),
    (WARNING, "RUF034 RUF040 W605", ""),
    (NOTE, "PLE0704 PLW0120 B014 B017 B019 B033 DTZ003 DTZ004 E711 E712 E713 E714 E721 F541 RUF006 SIM115 TRY203", ""),
    (SERIOUS, "PLE", ""),
)
DANGERS = rules(
    (SERIOUS, "S102 S307", "an attacker who controls the text can run code"),
    (SERIOUS, "S201", "an attacker who reaches it can run code"),
    (SERIOUS, "S323 S501", "anybody in between can read and change the traffic"),
    (SERIOUS, "S506", "an attacker who controls the text can run code; use yaml.safe_load"),
    (SERIOUS, "S602 S605", "an attacker who controls a part of the command can run any command"),
    (SERIOUS, "S608", "an attacker who controls a part of the query can run any query; give parameters"),
    (WARNING, "S301", "an attacker who controls the data can run code"),
    (WARNING, "S302", "an attacker who controls the data can crash or misuse the program"),
    (WARNING, "S103", "others may change it"),
    (WARNING, "S108", "others can foresee the name; use tempfile"),
    (WARNING, "S306", "another process can take the name first; use mkstemp"),
    (WARNING, "S113", "it may wait for ever"),
    (WARNING, "S202", "it may write outside the directory"),
    (WARNING, "S304 S305", "it can be broken; use AES in GCM"),
    (WARNING, "S308 S701 S702 S704", "what users enter becomes part of the page"),
    (WARNING, "S311", "it can be foreseen; use `secrets`"),
    (WARNING, "S312 S507", "anybody in between can read and change the traffic"),
    (WARNING, "S324", "collisions can be made; use SHA-256, or say usedforsecurity=False"),
    (WARNING, "S604", "an attacker who controls a part of the command can run any command"),
    (WARNING, "S612", "an attacker who reaches the port can run code"),
    (WARNING, "S502 S503 S504 S505 S609 S610 S611", ""),
    (NOTE, "S104", "all networks can reach it"),
    (NOTE, "S314", "a hostile document can use up the memory"),
)
LEFTOVERS = rules(
    (SERIOUS, "T100", "the program stops there"),
    (NOTE, "T201 T203", "was it left behind?"),
)
_ALSO_FROM_ELSEWHERE = ("F821", "F822", "F823", "F401", "F841", "F811")
"""What a change elsewhere in the file can bring about."""
_IN_TESTS = """
S102 S103 S104 S108 S113 S201 S301 S302 S304 S305 S306 S307 S308 S311 S314 S324 S501 S506 S602 S604 S605 S608
S701 S704 S110 S112 B015 B018 DTZ003 DTZ004 E711 E712 E713 E714 E721 F403 F811 F841 N805 PLR0124 PLR0133 PLW0133
PLW0177 SIM115 T201 T203
"""
_NOT_IN_TESTS = frozenset(_IN_TESTS.split())
"""What tests do on purpose."""
_COMMAND = ("check", "--isolated", "--no-cache", "--preview", "--quiet", "--output-format=json", "--no-fix")
_CALLED_ONCE = ("now(", "utcnow(", "today(", "time(", "uuid", "random", "token_", "environ", "getenv", "open(", "Lock(")
"""Calls whose result in a default is surely meant anew each time; others, as `Depends()`, are meant so."""
_SECRET = ("token", "secret", "passw", "key", "nonce", "salt", "session", "otp", "pin", "code", "csrf", "reset")
_METHODS = ("sort", "reverse", "clear", "close", "flush", "append", "extend", "pop", "commit", "rollback", "write")
"""Methods that nobody names but to call them."""
_ATTRIBUTE = re.compile(r"\w+(\.\w+)+")
_DEFINITION = re.compile(r"\s*(async )?def \w+")
_CONSTANT_FILLED = re.compile(r"\{[A-Z_]+\}")
_FOR_PEOPLE = re.compile(
    r"(^|/)(cli|main|__main__|console|setup|manage|commands?|scripts?|tools?|bin|examples?|docs?|demo|benchmarks?|bench)"
    r"[^/]*(/|\.py$)"
)


def check(table: Rules) -> Callable[[str, list[str]], Iterator[Finding]]:
    """The check for the rules of that table."""

    def look(tree: str, paths: list[str]) -> Iterator[Finding]:
        if ruff := program("ruff"):
            command = [ruff, *_COMMAND, "--exit-zero", "--target-version=py314", f"--select={','.join(table)}"]
            for rows in documents(command, paths, tree):
                yield from filter(None, (_finding(row, tree, table) for row in rows))

    return look


def _finding(row: dict[str, Any], tree: str, table: Rules) -> Finding | None:
    code, path, line = row["code"] or "", os.path.relpath(row["filename"], tree), row["location"]["row"]
    rule = table.get(code) or next((rule for family, rule in table.items() if code.startswith(family)), None)
    if not rule or (code in _NOT_IN_TESTS and kinds.is_test(path)) or not _is_meant(row, path, tree):
        return None
    weight, reason = rule
    if code == "S602" and "seems safe" in row["message"]:
        weight, reason = NOTE, "a list of words needs no shell"
    what = row["message"].rstrip(".").partition("; consider")[0]
    what += f": {reason}" if reason else ""
    return Finding(weight, path, line, what, code, anywhere=code in _ALSO_FROM_ELSEWHERE)


def _is_meant(row: dict[str, Any], path: str, tree: str) -> bool:
    """Whether the finding is real: some rules need more evidence than ruff looks for."""
    code, start, end = row["code"], row["location"]["row"], row["end_location"]["row"]
    lines = content(tree, path).splitlines()
    text = "\n".join(lines[start - 1 : end])
    if code in ("F401", "F403"):  # a package's `__init__` imports what others shall find in it
        return not path.endswith("__init__.py")
    if code == "B018":  # some attributes are read for what that does; of a method the call was forgotten
        expression = text.partition("#")[0].strip()
        return not _ATTRIBUTE.fullmatch(expression) or expression.rpartition(".")[2] in _METHODS
    if code == "B008":
        return any(word in text for word in _CALLED_ONCE)
    if code == "ISC004":  # over several lines it is how a long text is written
        return bool(start == end)
    if code == "S311":  # only where the line, or the name of its function, says that it is for a secret
        definition = next((found[0] for line in reversed(lines[:start]) if (found := _DEFINITION.match(line))), "")
        return any(word in (text + definition).lower() for word in _SECRET)
    if code == "S108":  # the path of a file that is made there
        return '/tmp"' not in row["message"] and any(word in text for word in ("open(", "=", "write"))
    if code == "S605":
        return "seems safe" not in row["message"]
    if code == "S608":  # what is in capitals is a constant of the program
        return not _CONSTANT_FILLED.search(text)
    if code in ("T201", "T203"):  # programs that print are meant to
        return not _FOR_PEOPLE.search(path) and "__name__" not in content(tree, path) and "file=" not in text
    return True
