"""Python by ruff: the rules of `ruff_rules` that stand for mistakes, whatever the repository's taste."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from shutil import which
from typing import Any

from teams_cli.extensions.review import kinds
from teams_cli.extensions.review.change import content
from teams_cli.extensions.review.findings import NOTE, SERIOUS, WARNING, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


NAMES = {
    "F821": (SERIOUS, "it fails when this line runs"),
    "F822": (SERIOUS, "importing * fails"),
    "F823": (SERIOUS, "it fails when this line runs"),
    "F811": (WARNING, "the earlier definition is lost"),
    "F401": (NOTE, ""),
    "F841": (NOTE, ""),
    "F402": (WARNING, "the import is lost"),
    "F403": (NOTE, ""),
}
MISTAKES = {
    "B002": (WARNING, "Python has no increment"),
    "B003": (WARNING, "the environment does not change by it"),
    "B005": (WARNING, "it strips these characters in any order, not the word"),
    "B006": (WARNING, "all calls share it"),
    "B008": (WARNING, "it is called once, when the function is defined"),
    "B012": (WARNING, "it swallows the exception"),
    "B014": (NOTE, ""),
    "B015": (WARNING, "its result is not used"),
    "B016": (SERIOUS, "only exceptions can be raised"),
    "B017": (NOTE, "any mistake in the test passes it"),
    "B018": (WARNING, "it has no effect"),
    "B019": (NOTE, "the cache keeps every object alive"),
    "B020": (WARNING, ""),
    "B021": (WARNING, "it is not a docstring"),
    "B022": (WARNING, "it has no effect"),
    "B023": (WARNING, "all functions see its last value"),
    "B025": (WARNING, "the second is never reached"),
    "B029": (WARNING, "it catches nothing"),
    "B030": (SERIOUS, "it fails when an exception comes"),
    "B031": (WARNING, "the group is used up after the first time"),
    "B032": (WARNING, "it assigns nothing"),
    "B033": (NOTE, ""),
    "B035": (WARNING, "each round overwrites the one before"),
    "B909": (WARNING, "items are skipped"),
    "DTZ003": (NOTE, "it has no time zone, and goes with a later Python; use now(UTC)"),
    "DTZ004": (NOTE, "it has no time zone, and goes with a later Python; use fromtimestamp(…, UTC)"),
    "E711": (NOTE, ""),
    "E712": (NOTE, ""),
    "E713": (NOTE, ""),
    "E714": (NOTE, ""),
    "E721": (NOTE, ""),
    "E722": (WARNING, "it catches KeyboardInterrupt and SystemExit, too"),
    "F502": (SERIOUS, "it fails when this line runs"),
    "F50": (SERIOUS, "it fails when this line runs"),
    "F52": (SERIOUS, "it fails when this line runs"),
    "F541": (NOTE, "perhaps the braces are missing"),
    "F601": (WARNING, "the first value is lost"),
    "F602": (WARNING, "the first value is lost"),
    "F631": (SERIOUS, "it never fails, since the tuple is not empty"),
    "F632": (WARNING, "it compares identity; use =="),
    "F633": (SERIOUS, "it prints nothing"),
    "F634": (SERIOUS, "it is always true, since the tuple is not empty"),
    "F70": (SERIOUS, "it does not compile"),
    "F901": (SERIOUS, "it raises a TypeError; use NotImplementedError"),
    "ISC004": (WARNING, "a comma is missing, or they are one text"),
    "N805": (WARNING, "the first argument of a method is the object"),
    "PLE0704": (NOTE, "it fails unless an exception is being handled"),
    "PLE": (SERIOUS, ""),
    "PLR0124": (WARNING, "it compares a thing with itself"),
    "PLR0133": (WARNING, "it compares two constants"),
    "PLR0206": (SERIOUS, "nobody can give it a value, so reading it fails"),
    "PLW0120": (NOTE, "it always runs"),
    "PLW0127": (WARNING, "it has no effect"),
    "PLW0128": (WARNING, "the first value is lost"),
    "PLW0129": (SERIOUS, "it never fails"),
    "PLW0131": (WARNING, ""),
    "PLW0133": (SERIOUS, "`raise` is missing"),
    "PLW0177": (WARNING, "it is never true"),
    "PLW0211": (WARNING, "it is given no object"),
    "PLW0245": (SERIOUS, "it is not called"),
    "PLW0406": (WARNING, ""),
    "PLW0711": (SERIOUS, "it catches the first only"),
    "PLW1501": (SERIOUS, "opening it fails"),
    "PLW1508": (WARNING, ""),
    "PIE794": (WARNING, "the first value is lost"),
    "PIE796": (WARNING, "it is another name for the first"),
    "RUF008": (SERIOUS, "all objects share it"),
    "RUF009": (WARNING, "it is called once, when the class is defined"),
    "RUF016": (SERIOUS, "it fails when this line runs"),
    "RUF018": (WARNING, "with -O the assignment is gone, too"),
    "RUF024": (WARNING, "all keys share it"),
    "RUF027": (WARNING, "it is printed with the braces"),
    "RUF034": (WARNING, ""),
    "RUF040": (WARNING, ""),
    "S110": (WARNING, "errors vanish without a trace"),
    "S112": (WARNING, "errors vanish without a trace"),
    "SIM115": (NOTE, "it may stay open"),
    "SIM220": (WARNING, "it is always false"),
    "SIM221": (WARNING, "it is always true"),
    "SIM222": (WARNING, "it is always true"),
    "SIM223": (WARNING, "it is always false"),
    "TRY203": (NOTE, ""),
    "W605": (WARNING, "it will be a syntax error"),
    "ASYNC": (WARNING, "it stops all other tasks meanwhile"),
    "RUF006": (NOTE, "the task may vanish before it is done"),
}
DANGERS = {
    "S102": (SERIOUS, "whoever can choose the text runs code"),
    "S103": (WARNING, "others may change it"),
    "S104": (NOTE, "all networks can reach it"),
    "S108": (WARNING, "others can foresee the name; use tempfile"),
    "S113": (WARNING, "it may wait for ever"),
    "S201": (SERIOUS, "whoever reaches it runs code"),
    "S202": (WARNING, "it may write outside the directory"),
    "S301": (WARNING, "whoever can choose the data runs code"),
    "S302": (WARNING, "whoever can choose the data crashes or misuses the program"),
    "S304": (WARNING, "it can be broken; use AES"),
    "S305": (WARNING, "equal blocks are seen to be equal; use GCM"),
    "S306": (WARNING, "another process can take the name first; use mkstemp"),
    "S307": (SERIOUS, "whoever can choose the text runs code"),
    "S308": (WARNING, "what users enter becomes part of the page"),
    "S311": (WARNING, "it can be foreseen; use `secrets`"),
    "S312": (WARNING, "anybody in between can read and change the traffic"),
    "S314": (NOTE, "a hostile document can use up the memory"),
    "S323": (SERIOUS, "anybody in between can read and change the traffic"),
    "S324": (WARNING, "collisions can be made; use SHA-256, or say usedforsecurity=False"),
    "S501": (SERIOUS, "anybody in between can read and change the traffic"),
    "S502": (WARNING, ""),
    "S503": (WARNING, ""),
    "S504": (WARNING, ""),
    "S505": (WARNING, ""),
    "S506": (SERIOUS, "whoever can choose the text runs code; use yaml.safe_load"),
    "S507": (WARNING, "anybody in between can read and change the traffic"),
    "S602": (SERIOUS, "whoever can choose a part of the command runs any"),
    "S604": (WARNING, "whoever can choose a part of the command runs any"),
    "S605": (SERIOUS, "whoever can choose a part of the command runs any"),
    "S608": (SERIOUS, "whoever can choose a part of the query runs any; give parameters"),
    "S609": (WARNING, ""),
    "S610": (WARNING, ""),
    "S611": (WARNING, ""),
    "S612": (WARNING, "whoever reaches the port runs code"),
    "S701": (WARNING, "what users enter becomes part of the page"),
    "S702": (WARNING, "what users enter becomes part of the page"),
    "S704": (WARNING, "what users enter becomes part of the page"),
}
LEFTOVERS = {
    "T100": (SERIOUS, "the program stops there"),
}
FROM_ELSEWHERE = ("F821", "F822", "F823", "F401", "F841", "F811")
"""What a change elsewhere in the file can bring about."""
_IN_TESTS = """
S102 S103 S104 S108 S113 S201 S301 S302 S304 S305 S306 S307 S308 S311 S314 S324 S501 S506 S602 S604 S605 S608
S701 S704 S110 S112 B015 B018 DTZ003 DTZ004 E711 E712 E713 E714 E721 F403 F841 N805
PLR0124 PLR0133 PLW0133 PLW0177 SIM115
"""
NOT_IN_TESTS = frozenset(_IN_TESTS.split())
"""What tests do on purpose."""
CALLED_ONCE = ("now(", "utcnow(", "today(", "time(", "uuid", "random", "token_", "environ", "getenv", "open(", "Lock(")
"""Calls whose result in a default is surely meant anew each time; others, as `Depends()`, are meant so."""
GUESSED = ("token", "secret", "passw", "key", "nonce", "salt", "session", "otp", "pin", "code", "csrf", "reset")
METHODS = ("sort", "reverse", "clear", "close", "flush", "append", "extend", "pop", "commit", "rollback", "write")
"""Methods that nobody names but to call them."""


def known(code: str, table: dict[str, tuple[str, str]]) -> tuple[str, str] | None:
    """The weight and the reason of a rule; a table may name a whole family by how its codes begin."""
    return table.get(code) or next((row for stem, row in table.items() if code.startswith(stem)), None)


PATIENCE = 120.0
_AT_ONCE = 400
"""Files that are named in one call: a command line has an end."""


def own(name: str) -> str:
    """The program that was installed beside this Python, else the one on the PATH; empty if there is none."""
    beside = os.path.join(os.path.dirname(sys.executable), name)
    return beside if os.access(beside, os.X_OK) else which(name) or ""


def answer(words: list[str], directory: str, environ: dict[str, str] | None = None, seconds: float = PATIENCE) -> str:
    """What a program prints, whatever its status: linters end with 1 when they have something to say.

    Raises:
        ToolFailed: It can't be run, or takes too long.
    """
    try:
        done = subprocess.run(
            words, cwd=directory, env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolFailed(f"{os.path.basename(words[0])} can't be run: {error}") from None
    if not done.stdout.strip() and done.returncode not in (0, 1):
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise ToolFailed(f"{os.path.basename(words[0])}: {said[-1] if said else f'status {done.returncode}'}")
    return done.stdout.decode(errors="replace")


class ToolFailed(Exception):
    """A program that was to look at files did not."""


def answers(words: list[str], paths: list[str], directory: str) -> list[Any]:
    """The JSON that a program answers of the files, in as many calls as it needs.

    Raises:
        ToolFailed: It can't be run, or answers something else.
    """
    found = []
    for start in range(0, len(paths), _AT_ONCE):
        text = answer([*words, "--", *paths[start : start + _AT_ONCE]], directory)
        try:
            found.append(json.loads(text or "[]"))
        except json.JSONDecodeError:
            raise ToolFailed(f"{os.path.basename(words[0])} answered {text[:200]!r}") from None
    return found


def version(name: str) -> str:
    """The name of a program with its version, or that it is not there."""
    if not (program := own(name)):
        return f"{name} is not installed"
    words = answer([program, "--version"], os.getcwd()).split()
    number = next((word for word in words if word[0].isdigit()), "")
    return f"{name} {number}".strip()


_WORDS = (
    "check",
    "--isolated",
    "--no-cache",
    "--preview",
    "--quiet",
    "--output-format=json",
    "--no-fix",
    "--exit-zero",
)
_FILLED = re.compile(r"\{([\w.]+)|%\s*\(?([\w.]+)|\+\s*([\w.]+)")
_ATTRIBUTE = re.compile(r"\w+(\.\w+)+")
_NAMED = re.compile(r"\s*(async )?def \w+")
_CONSTANT = re.compile(r"[A-Z_]+\s*=")
_TARGET = "--target-version=py314"


def check(table: dict[str, tuple[str, str]]) -> Callable[[str, list[str]], Iterator[Finding]]:
    """The check for the rules of that table."""

    def look(tree: str, paths: list[str]) -> Iterator[Finding]:
        program = own("ruff")
        words = [program, *_WORDS, _TARGET, f"--select={','.join(table)}"]
        for rows in answers(words, paths, tree) if program and paths else []:
            for row in rows:
                if found := _finding(row, tree, table):
                    yield found

    return look


def _finding(row: dict[str, Any], tree: str, table: dict[str, tuple[str, str]]) -> Finding | None:
    code, path, said = row["code"] or "", os.path.relpath(row["filename"], tree), row["message"]
    rule = known(code, table)
    if not rule or (code in NOT_IN_TESTS and kinds.is_test(path)) or not _meant(row, path, tree):
        return None
    weight, why = rule
    if code == "S602" and "seems safe" in said:
        weight, why = NOTE, "a list of words needs no shell"
    what = said.rstrip(".").partition("; consider")[0]
    return Finding(weight, path, row["location"]["row"], f"{what}{f': {why}' if why else ''}", code, "", _far(code))


def _far(code: str) -> bool:
    return code in FROM_ELSEWHERE


def _meant(row: dict[str, Any], path: str, tree: str) -> bool:
    """Whether the rule is right here; some are so only with more to go by than ruff asks for."""
    code = row["code"]
    if code == "F401":  # a package's `__init__` imports what others shall find in it
        return not path.endswith(("__init__.py", "compat.py"))
    if code == "B018":  # some attributes are read for what that does; of a method the call was forgotten
        said = _line(tree, path, row["location"]["row"]).partition("#")[0].strip()
        return not _ATTRIBUTE.fullmatch(said) or said.rpartition(".")[2] in METHODS
    if code == "F811" and kinds.is_test(path):  # a fixture's name is that of what it gives
        return _line(tree, path, row["location"]["row"]).lstrip().startswith(("def ", "async def ", "class "))
    if code == "B008":
        return any(word in _text(tree, path, row) for word in CALLED_ONCE)
    if code == "F403":
        return not path.endswith("__init__.py")
    if code == "ISC004":  # over several lines it is how a long text is written
        return bool(row["location"]["row"] == row["end_location"]["row"])
    if code in ("S311", "S605", "S108", "S608", "N805"):
        return _meant_by_line(code, row["message"], _text(tree, path, row) + _around(code, tree, path, row))
    return True


def _around(code: str, tree: str, path: str, row: dict[str, Any]) -> str:
    """Where it matters what a value is for: the name of the function that makes it."""
    above = content(tree, path).splitlines()[: row["location"]["row"] - 1] if code == "S311" else []
    return next((found[0] for line in reversed(above) if (found := _NAMED.match(line))), "")


def _meant_by_line(code: str, said: str, line: str) -> bool:
    if code == "S311":
        return any(word in line.lower() for word in GUESSED)
    if code == "S605":
        return "seems safe" not in said
    if code == "S608":  # what is in capitals is a constant of the program
        filled = [name for names in _FILLED.findall(line) for name in names if name]
        return not _CONSTANT.match(line) and (not filled or not all(name.isupper() for name in filled))
    if code == "S108" and '/tmp"' in said:
        return False
    if code == "S108":
        return "open(" in line or "=" in line or "write" in line
    return "self" not in line and "cls" not in line


def _text(tree: str, path: str, row: dict[str, Any]) -> str:
    """The lines that a finding spans; of these the first is not stripped, so that its place is seen."""
    lines = content(tree, path).splitlines()
    return "\n".join(lines[row["location"]["row"] - 1 : row["end_location"]["row"]])


def _line(tree: str, path: str, number: int) -> str:
    with open(os.path.join(tree, path), encoding="utf-8", errors="replace") as file:
        return next((line for count, line in enumerate(file, 1) if count == number), "")
