"""The linters of `teams`: ruff for Python, oxlint for JavaScript and TypeScript, shellcheck for shell scripts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from shutil import which

from teams_cli.extensions.review import kinds
from teams_cli.extensions.review.change import content, lines_of
from teams_cli.extensions.review.findings import NOTE, SERIOUS, WARNING, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    Check = Callable[[str, list[str]], Iterable[Finding]]
    "A function that yields the findings in some files, given the directory that has them and their paths."
    Rules = dict[str, tuple[str, str]]
    "The weight of each rule, and the reason why the rule matters, which is empty if the linter gives it."

_FILES_PER_CALL = 400
"""The maximum number of files for one call of a linter, because the length of a command line is limited."""


class ToolFailed(Exception):
    """Raised when a linter can't be run."""


def rules(*rows: tuple[str, str, str]) -> Rules:
    """Return a table that has the weight of each rule, and the reason why it matters. Each of *rows* has a weight, the
    names of rules with this weight, and their reason.
    """
    return {rule: (weight, reason) for weight, names, reason in rows for rule in names.split()}


def program(name: str) -> str:
    """Return the path of the program called *name*: the one beside this Python, or else the one on the PATH. Return ""
    if there is neither.
    """
    installed = os.path.join(os.path.dirname(sys.executable), name)
    return installed if os.access(installed, os.X_OK) else which(name) or ""


def version(name: str) -> str:
    """Return the name of a program with its version. If the program is not installed, the text says so."""
    if not (path := program(name)):
        return f"{name} is not installed"
    printed = output([path, "--version"], os.getcwd()).split()
    number = next((word for word in printed if word[0].isdigit()), "")
    return f"{name} {number}".strip()


def missing() -> list[str]:
    """Return the names of the linters of `teams` that are not installed."""
    return [name for name in ("ruff", "oxlint", "shellcheck") if not program(name)]


def output(command: list[str], directory: str, seconds: float = 120.0) -> str:
    """Run a linter, and return its output. An exit status of 0 or 1 is not a failure, because many linters end with 1
    if they find something. Any other status is a failure if the linter printed nothing.

    Raises:
        ToolFailed: The linter can't be run, fails, or takes too long.
    """
    name = os.path.basename(command[0])
    try:
        done = subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolFailed(f"{name} can't be run: {error}") from None
    if not done.stdout.strip() and done.returncode not in (0, 1):
        error_lines = done.stderr.decode(errors="replace").strip().splitlines()
        reason = error_lines[-1] if error_lines else f"status {done.returncode}"
        raise ToolFailed(f"{name}: {reason}")
    return done.stdout.decode(errors="replace")


def documents(command: list[str], paths: list[str], directory: str) -> Iterator[Any]:
    """Yield the JSON documents that a linter prints about the files. Each call of the linter gets a few hundred files,
    and prints one document.

    Raises:
        ToolFailed: The linter can't be run, or prints something else.
    """
    for start in range(0, len(paths), _FILES_PER_CALL):
        text = output([*command, "--", *paths[start : start + _FILES_PER_CALL]], directory)
        try:
            yield json.loads(text or "[]")
        except json.JSONDecodeError:
            raise ToolFailed(f"{os.path.basename(command[0])} printed {text[:200]!r}") from None


PYTHON_RULES: dict[str, Rules] = {
    "names": rules(
        (SERIOUS, "F821 F822 F823", "it fails when this line runs"),
        (WARNING, "F811 F402", "the earlier one is lost"),
        (NOTE, "F401 F841 F403", ""),
    ),
    "mistakes": rules(
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
        (NOTE, "PLE0704 PLW0120 B014 B017 B019 B033 DTZ003 DTZ004 E711 E712 E713 E714 E721 F541", ""),
        (NOTE, "RUF006 SIM115 TRY203", ""),
        (SERIOUS, "PLE", ""),
    ),
    "dangers": rules(
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
    ),
    "leftovers": rules(
        (SERIOUS, "T100", "the program stops there"),
        (NOTE, "T201 T203", "was it left behind?"),
    ),
}
"""The rules of ruff by subject. A rule also stands for all rules whose codes begin with it; rules with longer codes
come first.
"""
_ANYWHERE = ("F821", "F822", "F823", "F401", "F841", "F811", "no-undef", "no-unused-vars", "no-unreachable")
"""Rules whose findings can be caused by a change elsewhere in the file."""
_IN_TESTS = """
S102 S103 S104 S108 S113 S201 S301 S302 S304 S305 S306 S307 S308 S311 S314 S324 S501 S506 S602 S604 S605 S608
S701 S704 S110 S112 B015 B018 DTZ003 DTZ004 E711 E712 E713 E714 E721 F403 F811 F841 N805 PLR0124 PLR0133 PLW0133
PLW0177 SIM115 T201 T203
"""
_NOT_IN_TESTS = frozenset(_IN_TESTS.split())
"""Rules that are not applied to tests, because tests break them on purpose."""
_RUFF = (
    *("check", "--isolated", "--no-cache", "--preview", "--quiet", "--output-format=json", "--no-fix"),
    *("--exit-zero", "--target-version=py314"),
)
_CALLED_ONCE = ("now(", "utcnow(", "today(", "time(", "uuid", "random", "token_", "environ", "getenv", "open(", "Lock(")
"""Calls that are surely a mistake as the default of a parameter: the default is computed only once, but a new value is
wanted for each call. Other calls, such as `Depends()`, do no harm.
"""
_SECRET_WORDS = ("token", "secret", "passw", "key", "nonce", "salt", "session", "otp", "pin", "code", "csrf", "reset")
_METHODS = ("sort", "reverse", "clear", "close", "flush", "append", "extend", "pop", "commit", "rollback", "write")
"""Names of methods. A statement that only names one of them without calling it is a mistake."""
_FIXED_COMMAND = "seems safe"
"""Ruff's words for a command that no attacker controls, because it is hard-coded in the program."""
_ATTRIBUTE = re.compile(r"\w+(\.\w+)+")
_DEFINITION = re.compile(r"\s*(async )?def \w+")
_CONSTANT_IN_BRACES = re.compile(r"\{[A-Z_]+\}")
_MAY_PRINT_PYTHON = re.compile(
    r"(^|/)(cli|main|__main__|console|setup|manage|commands?|scripts?|tools?|bin|examples?|docs?|demo|benchmarks?|bench)"
    r"[^/]*(/|\.py$)"
)


def check_python(subject: str, tree: str, paths: list[str]) -> Iterator[Finding]:
    """Check Python files by the rules of *subject*. If ruff is not installed, nothing is found."""
    if ruff := program("ruff"):
        rules = PYTHON_RULES[subject]
        command = [ruff, *_RUFF, f"--select={','.join(rules)}"]
        for rows in documents(command, paths, tree):
            findings = (_ruff_finding(row, tree, rules) for row in rows)
            yield from filter(None, findings)  # without rows that are no defects


def _ruff_finding(row: dict[str, Any], tree: str, rules: Rules) -> Finding | None:
    """Return the finding for a row of ruff's output; None for a false alarm, or a rule that is not in *rules*."""
    code = row["code"] or ""  # a syntax error has no code
    path, line = os.path.relpath(row["filename"], tree), row["location"]["row"]
    beginnings = (key for key in rules if code.startswith(key))  # longer keys come first
    key = code if code in rules else next(beginnings, None)
    if key is None or (code in _NOT_IN_TESTS and kinds.is_test(path)) or not _is_python_defect(row, path, tree):
        return None
    weight, reason = rules[key]
    if code == "S602" and _FIXED_COMMAND in row["message"]:
        weight, reason = NOTE, "a list of words needs no shell"
    message = row["message"].rstrip(".").partition("; consider")[0]  # without the advice of ruff
    if reason:
        message += f": {reason}"
    return Finding(weight, path, line, message, code, anywhere=code in _ANYWHERE)


def _is_python_defect(row: dict[str, Any], path: str, tree: str) -> bool:
    """Return whether a row of ruff's output is a real defect, and not a false alarm. For some rules, ruff reports code
    that is usually right; such a row is a defect only if the code shows further signs of one.
    """
    code = row["code"]
    start = row["location"]["row"]
    end = row["end_location"]["row"]
    code_lines = lines_of(content(tree, path))
    text = "\n".join(code_lines[start - 1 : end])
    if code in ("F401", "F403"):  # a package's `__init__` imports names for others
        return not path.endswith("__init__.py")
    if code == "B018":  # reading an attribute may have an effect, but a method alone was meant to be called
        expression = text.partition("#")[0].strip()
        return not _ATTRIBUTE.fullmatch(expression) or expression.rpartition(".")[2] in _METHODS
    if code == "B008":  # only where each call wants a new value
        return any(word in text for word in _CALLED_ONCE)
    if code == "ISC004":  # a long text is written on several lines on purpose
        return bool(start == end)
    if code == "S311":  # only where the line, or the name of its function, says that it is for a secret
        definitions = (_DEFINITION.match(line) for line in reversed(code_lines[:start]))
        definition = next((match[0] for match in definitions if match), "")
        return any(word in (text + definition).lower() for word in _SECRET_WORDS)
    if code == "S108":  # only where a file is written there
        return '/tmp"' not in row["message"] and any(word in text for word in ("open(", "=", "write"))
    if code == "S605":
        return _FIXED_COMMAND not in row["message"]
    if code == "S608":  # a name in capitals is a constant of the program
        return not _CONSTANT_IN_BRACES.search(text)
    if code in ("T201", "T203"):  # programs for the command line print on purpose
        return not _MAY_PRINT_PYTHON.search(path) and "__name__" not in content(tree, path) and "file=" not in text
    return True


_SCRIPT_MISTAKES = """
bad-array-method-on-arguments bad-char-at-comparison bad-comparison-sequence bad-min-max-func
bad-object-literal-comparison bad-replace-all-arg const-comparisons constructor-super double-comparisons erasing-op
for-direction getter-return missing-throw no-async-promise-executor no-class-assign no-compare-neg-zero no-cond-assign
no-constant-binary-expression no-constant-condition no-dupe-class-members no-dupe-else-if no-dupe-keys
no-duplicate-case no-empty no-empty-character-class no-empty-pattern no-ex-assign no-fallthrough no-func-assign
no-global-assign no-invalid-regexp no-loss-of-precision no-new-native-nonconstructor no-obj-calls no-self-assign
no-self-compare no-setter-return no-shadow-restricted-names no-sparse-arrays no-thenable no-this-before-super
no-unreachable no-unsafe-finally no-unsafe-negation no-unsafe-optional-chaining no-unused-expressions
no-useless-catch number-arg-out-of-range uninvoked-array-callback use-isnan valid-typeof
no-delete-var no-duplicate-enum-values no-extend-native no-extra-non-null-assertion no-misused-new no-new-wrappers
no-non-null-asserted-optional-chain no-unassigned-vars no-unsafe-declaration-merging no-useless-backreference no-with
array-callback-return jsx-key jsx-no-duplicate-props no-direct-mutation-state rules-of-hooks
void-dom-elements-no-children
"""
SCRIPT_RULES: dict[str, Rules] = {
    "syntax": {},  # no rule: only what does not parse
    "names": rules(
        (SERIOUS, "no-undef no-const-assign no-import-assign", "it fails when this line runs"),
        (WARNING, "no-redeclare", ""),
        (NOTE, "no-unused-vars", ""),
    ),
    "mistakes": rules((WARNING, _SCRIPT_MISTAKES, ""), (NOTE, "eqeqeq ban-ts-comment", "")),
    "dangers": rules(
        (SERIOUS, "no-eval no-implied-eval no-new-func", "an attacker who controls the text can run code"),
        (WARNING, "no-script-url", "it runs the text as code"),
        (WARNING, "no-danger", "what users enter becomes part of the page"),
        (NOTE, "jsx-no-target-blank no-caller", ""),
    ),
    "leftovers": rules(
        (SERIOUS, "no-debugger", "the program stops there"),
        (SERIOUS, "no-focused-tests", "all other tests are left out"),
        (WARNING, "no-alert", ""),
        (NOTE, "no-disabled-tests", "this test is left out"),
        (NOTE, "no-console", "was it left behind?"),
    ),
}
"""The rules of oxlint by subject."""
_CONFIG = {
    "plugins": ["eslint", "typescript", "unicorn", "oxc", "react", "jest"],
    "env": dict.fromkeys(("browser", "node", "es2024", "jest", "mocha", "jquery", "worker"), True),
    "categories": {"correctness": "off"},
}
_OPTIONS: dict[str, tuple[object, ...]] = {
    "eqeqeq": ("always", {"null": "ignore"}),
    "no-redeclare": ({"builtinGlobals": False},),
    "no-unused-expressions": ({"allowShortCircuit": True, "allowTernary": True, "allowTaggedTemplates": True},),
    "no-console": ({"allow": ["error", "warn", "info"]},),
}
"""Options of oxlint rules that allow common idioms."""
_MODULE = re.compile(r"^\s*(import|export)\b|\brequire\s*\(|module\.exports", re.MULTILINE)
_MAY_PRINT_SCRIPT = re.compile(r"cli|bin/|script|tool|example|demo|bench|server|logger|config")


def check_scripts(subject: str, tree: str, paths: list[str]) -> Iterator[Finding]:
    """Check JavaScript and TypeScript files by the rules of *subject*. If oxlint is not installed, nothing is found."""
    if not (oxlint := program("oxlint")):
        return
    with tempfile.TemporaryDirectory() as directory:
        config = os.path.join(directory, "oxlint.json")
        rules = {name: ["warn", *_OPTIONS.get(name, ())] for name in SCRIPT_RULES[subject]}
        with open(config, "w", encoding="utf-8") as file:
            json.dump({**_CONFIG, "rules": rules}, file)
        command = [oxlint, "--format=json", "--no-ignore", "--threads=2", f"--config={config}"]
        rows = [row for document in documents(command, paths, tree) for row in document.get("diagnostics", ())]
    findings = (_oxlint_finding(row, tree, subject) for row in rows)
    yield from filter(None, findings)  # without rows that are no defects


def _oxlint_finding(row: dict[str, Any], tree: str, subject: str) -> Finding | None:
    """Return the finding for a row of oxlint's output; None for a false alarm, or a rule not of *subject*."""
    labels = row.get("labels") or [{}]  # without a label, the line is 0
    path, line = row["filename"].removeprefix("./"), labels[-1].get("span", {}).get("line", 0)
    rule = row.get("code", "").partition("(")[2].rstrip(")")  # a code is written `plugin(rule)`
    if not rule:  # the file can't be parsed
        if subject != "syntax":
            return None
        return Finding(SERIOUS, path, line, f"syntax error: {row['message']}", "syntax", anywhere=True)
    if rule not in SCRIPT_RULES[subject] or not _is_script_defect(rule, row["message"], path, tree):
        return None
    weight, reason = SCRIPT_RULES[subject][rule]
    message = row["message"].rstrip(".") + (f": {reason}" if reason else "")
    return Finding(weight, path, line, message, rule, anywhere=rule in _ANYWHERE)


def _is_script_defect(rule: str, message: str, path: str, tree: str) -> bool:
    """Return whether a message of oxlint about *rule* is a real defect, and not a false alarm."""
    if rule == "no-undef":  # outside modules, names come from other scripts
        return not path.endswith(".d.ts") and bool(_MODULE.search(content(tree, path)))
    if rule == "no-redeclare":  # TypeScript merges declarations, and its compiler refuses those that it can't merge
        return not path.endswith(kinds.TYPED)
    if rule == "no-unused-vars":  # other scripts may use a name at the top, and a parameter may be needed for its place
        return "Parameter" not in message and "Catch" not in message and bool(_MODULE.search(content(tree, path)))
    if rule == "no-console":
        return not kinds.is_test(path) and not _MAY_PRINT_SCRIPT.search(path)
    if rule in ("no-focused-tests", "no-disabled-tests"):
        return kinds.is_test(path)
    if rule == "no-unused-expressions":
        return not kinds.is_test(path)
    return True


_UNQUOTED_VARIABLE, _MAY_DELETE_ROOT, _UNASSIGNED_VARIABLE = 2086, 2115, 2154
"""Numbers of shellcheck rules."""
_FIRST_BEYOND_SYNTAX = 2000
"""Shellcheck rules with smaller numbers are about syntax."""
_LEFT_OUT = (1090, 1091, 2148, 2155, 2034, 2207, 2178, 2120, 2128, 2046)
"""Numbers of the shellcheck rules that are left out: matters of taste, and things that scripts often do on purpose."""
_HARMLESS_FOR_MOST_NAMES = (2045, 2068)
"""Numbers of the rules that shellcheck counts as errors, although a script that breaks them works with most file
names.
"""
_INCLUDES_SCRIPT = re.compile(r"(^|[\s;&|])(\.|source|eval)\s", re.MULTILINE)
_DESTROYS = re.compile(r"\b(rm|mv|cp|chmod|chown|rsync|dd)\b")


def shell_syntax(tree: str, paths: list[str]) -> Iterator[Finding]:
    """Yield a finding for each shell script that can't be parsed."""
    broken = set()
    for row in _shellcheck(tree, paths):
        path = row["file"]
        is_syntax_error = row["code"] < _FIRST_BEYOND_SYNTAX and row["level"] == "error"
        if is_syntax_error and path not in broken:  # one mistake causes many errors, so only the first is reported
            broken.add(path)
            yield Finding(SERIOUS, path, row["line"], f"syntax error: {row['message']}", "syntax", anywhere=True)


def shell_mistakes(tree: str, paths: list[str]) -> Iterator[Finding]:
    """Yield a finding for each error and warning of shellcheck in shell scripts, except matters of taste."""
    for row in _shellcheck(tree, paths):
        if weight := _shell_weight(row, content(tree, row["file"])):
            yield Finding(weight, row["file"], row["line"], row["message"], f"SC{row['code']}")


def _shell_weight(row: dict[str, Any], text: str) -> str:
    """Return the weight of a row of shellcheck's output about a script with this *text*; "" if it is not reported."""
    code, level = row["code"], row["level"]
    if code < _FIRST_BEYOND_SYNTAX or code in _LEFT_OUT:  # `shell_syntax` reports syntax errors
        return ""
    if level in ("info", "style"):  # a matter of taste, unless a name with blanks makes a command destroy other files
        line = next(iter(lines_of(text)[row["line"] - 1 :]), "")
        if code != _UNQUOTED_VARIABLE or not _DESTROYS.search(line):
            return ""
    is_typo = "did you mean" in row["message"]  # a similar name is assigned
    if code == _UNASSIGNED_VARIABLE and not is_typo:
        is_included = not text.startswith("#!")  # then the script that includes it may assign the variable
        return "" if is_included or _INCLUDES_SCRIPT.search(text) else NOTE
    is_serious = (level == "error" and code not in _HARMLESS_FOR_MOST_NAMES) or code == _MAY_DELETE_ROOT
    return SERIOUS if is_serious else WARNING


def _shellcheck(tree: str, paths: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of shellcheck's output. A script whose first line names no interpreter is read as bash."""
    if shellcheck := program("shellcheck"):
        command = [shellcheck, "--norc", "--format=json"]
        with_interpreter = [path for path in paths if kinds.interpreter(path, tree)]
        others = [path for path in paths if path not in with_interpreter]
        for rows in documents(command, with_interpreter, tree):
            yield from rows
        for rows in documents([*command, "--shell=bash"], others, tree):
            yield from rows
