"""JavaScript and TypeScript by oxlint, which is one program and needs no node."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import warnings

from teams_cli.extensions.review import kinds, python_lint
from teams_cli.extensions.review.change import content
from teams_cli.extensions.review.data_files import data_problems, is_data
from teams_cli.extensions.review.findings import NOTE, SERIOUS, WARNING, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


SYNTAX = "syntax"
NAMES = {
    "no-undef": (SERIOUS, "it fails when this line runs"),
    "no-unused-vars": (NOTE, ""),
    "no-const-assign": (SERIOUS, "it fails when this line runs"),
    "no-redeclare": (WARNING, ""),
    "no-import-assign": (SERIOUS, "it fails when this line runs"),
}
_MISTAKES = """
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
MISTAKES = {**dict.fromkeys(_MISTAKES.split(), (WARNING, "")), "eqeqeq": (NOTE, ""), "ban-ts-comment": (NOTE, "")}
DANGERS = {
    "no-eval": (SERIOUS, "whoever can choose the text runs code"),
    "no-implied-eval": (SERIOUS, "whoever can choose the text runs code"),
    "no-new-func": (SERIOUS, "whoever can choose the text runs code"),
    "no-script-url": (WARNING, "it runs the text as code"),
    "no-danger": (WARNING, "what users enter becomes part of the page"),
    "jsx-no-target-blank": (NOTE, ""),
    "no-caller": (NOTE, ""),
}
LEFTOVERS = {
    "no-debugger": (SERIOUS, "the program stops there"),
    "no-alert": (WARNING, ""),
    "no-focused-tests": (SERIOUS, "all other tests are left out"),
    "no-disabled-tests": (NOTE, "this test is left out"),
    "no-console": (NOTE, "was it left behind?"),
}
_WORDS = ("--format=json", "--no-ignore", "--threads=2")
_PLUGINS = ["eslint", "typescript", "unicorn", "oxc", "react", "jest"]
_WORLDS = {"browser": True, "node": True, "es2024": True, "jest": True, "mocha": True, "jquery": True, "worker": True}
_OPTIONS: dict[str, tuple[object, ...]] = {
    "eqeqeq": ("always", {"null": "ignore"}),
    "no-redeclare": ({"builtinGlobals": False},),
    "no-unused-expressions": ({"allowShortCircuit": True, "allowTernary": True, "allowTaggedTemplates": True},),
}
"""What leaves idioms alone."""
_NO_OTHERS = {"correctness": "off"}
_FAR = ("no-undef", "no-unused-vars", "no-unreachable")
_MODULE = re.compile(r"^\s*(import|export)\b|\brequire\s*\(|module\.exports", re.MULTILINE)


def check(table: dict[str, tuple[str, str]]) -> Callable[[str, list[str]], Iterator[Finding]]:
    """The check for the rules of that table; the empty one finds what does not parse."""

    def look(tree: str, paths: list[str]) -> Iterator[Finding]:
        if not (program := python_lint.own("oxlint")) or not paths:
            return
        with tempfile.TemporaryDirectory() as place:
            config = os.path.join(place, "oxlint.json")
            with open(config, "w", encoding="utf-8") as file:
                rules = {name: ["warn", *_OPTIONS.get(name, ())] for name in table}
                json.dump({"plugins": _PLUGINS, "env": _WORLDS, "categories": _NO_OTHERS, "rules": rules}, file)
            seen: set[str] = set()
            for document in python_lint.answers([program, *_WORDS, f"--config={config}"], paths, tree):
                for row in document.get("diagnostics", []) if isinstance(document, dict) else []:
                    found = _finding(row, tree, table)
                    if found and (table or found.path not in seen):  # one mistake makes the parser stumble many times
                        seen.add(found.path)
                        yield found

    return look


def _finding(row: dict[str, Any], tree: str, table: dict[str, tuple[str, str]]) -> Finding | None:
    labels = row.get("labels") or [{}]
    path, line = row["filename"].removeprefix("./"), labels[-1].get("span", {}).get("line", 0)
    code = row.get("code", "")
    if not code:
        what = f"syntax error: {row['message']}"
        return None if table else Finding(SERIOUS, path, line, what, SYNTAX, anywhere=True)
    name = code.partition("(")[2].rstrip(")")
    if name not in table or not _meant(name, row["message"], path, tree):
        return None
    weight, why = table[name]
    what = f"{row['message'].rstrip('.')}{f': {why}' if why else ''}"
    return Finding(weight, path, line, what, name, anywhere=name in _FAR)


def _meant(name: str, said: str, path: str, tree: str) -> bool:
    """Whether the rule is right here."""
    if name == "no-undef":  # outside modules, names come from other scripts
        return not path.endswith(".d.ts") and bool(_MODULE.search(content(tree, path)))
    if name == "no-redeclare":  # TypeScript merges declarations, and its compiler tells which can't be
        return not path.endswith(kinds.TYPED)
    if name == "no-unused-vars":  # what is at the top of a script others may use, and parameters have their place
        return "Parameter" not in said and "Catch" not in said and bool(_MODULE.search(content(tree, path)))
    if name == "no-console":
        return not kinds.is_test(path) and "console.log" in said + content(tree, path) and not _speaks(path)
    if name in ("no-focused-tests", "no-disabled-tests"):
        return kinds.is_test(path)
    return name != "no-unused-expressions" or not kinds.is_test(path)


def _speaks(path: str) -> bool:
    return any(
        word in path
        for word in ("cli", "bin/", "script", "tool", "example", "demo", "bench", "server", "logger", "config")
    )


_LEFT_OUT = (
    "SC1090",
    "SC1091",
    "SC2148",
    "SC2155",
    "SC2034",
    "SC2207",
    "SC2178",
    "SC2120",
    "SC2128",
    "SC2046",
)
_TASTE = ("info", "style")
_FRAGILE = ("SC2045", "SC2068")
"""What shellcheck calls an error, and goes well with most names."""
_READS_IN = re.compile(r".*(^|[\s;&|])(\.|source|eval)\s")
_DESTROYS = re.compile(r"\b(rm|mv|cp|chmod|chown|rsync|dd)\b")
_DANGERS = (
    (
        re.compile(r"\b(curl|wget)\b[^|;#]*\|\s*(sudo\s+)?(ba|z|da)?sh\b"),
        SERIOUS,
        "curl-sh",
        "runs what a server sends",
    ),
    (re.compile(r"\bchmod\s+(-\w+\s+)*(0?777|a\+rwx|o\+w)\b"), WARNING, "chmod-777", "lets everybody change it"),
    (
        re.compile(r"\b(curl\b[^|;]*\s(-k|--insecure)\b|wget\b[^|;]*--no-check-certificate)"),
        SERIOUS,
        "insecure",
        "does not look whose server it is",
    ),
    (re.compile(r"(^|[;&|]\s*)eval\s+[^;]*\$"), SERIOUS, "eval", "runs whatever the variable holds"),
    (re.compile(r">\s*/tmp/[\w.-]+(\s|$|\$\$)"), NOTE, "temp-name", "others can foresee the name; use mktemp"),
)


def syntax(tree: str, paths: list[str]) -> Iterator[Finding]:
    """Scripts that the shell can't read."""
    for path in paths:
        shell = python_lint.own(kinds.interpreter(path, tree)) or python_lint.own("bash") or python_lint.own("sh")
        if shell and os.path.basename(shell) in ("sh", "bash", "dash", "ksh"):
            done = subprocess.run(
                [shell, "-n", "--", path], cwd=tree, stdin=subprocess.DEVNULL, capture_output=True, timeout=30
            )
            if done.returncode:
                said = done.stderr.decode(errors="replace").strip().splitlines()
                first = said[0].partition(f"{path}:")[2] if said else "syntax error"
                line = re.search(r"(?:line )?(\d+)", first)
                what = re.sub(r"^\s*(line )?\d+:\s*", "", first)
                yield Finding(
                    SERIOUS, path, int(line[1]) if line else 0, f"the shell says: {what}", "syntax", anywhere=True
                )


def check_shell(tree: str, paths: list[str]) -> Iterator[Finding]:
    """What shellcheck calls an error or a warning, less what is taste."""
    program = python_lint.own("shellcheck")
    if not program or not paths:
        return
    words = [program, "--norc", "--format=json", "--shell=bash"]
    plain = [path for path in paths if not kinds.interpreter(path, tree)]
    for more, some in (([], [path for path in paths if path not in plain]), (words[-1:], plain)):
        for rows in python_lint.answers([*words[:-1], *more], some, tree) if some else []:
            for row in rows:
                if found := _shell_finding(row, tree):
                    yield found


def _shell_finding(row: dict[str, Any], tree: str) -> Finding | None:
    code, path, number = f"SC{row['code']}", row["file"], row["line"]
    lines = content(tree, path).splitlines()
    line = lines[number - 1] if 0 < number <= len(lines) else ""
    destroys = code == "SC2086" and _DESTROYS.search(line)
    if code in _LEFT_OUT or (row["level"] in _TASTE and not destroys) or row["code"] < 2000:
        return None
    if (
        code == "SC2154" and "did you mean" not in row["message"]
    ):  # it may be set where this is read in, or by what it reads
        alone = lines[0].startswith("#!") and not any(_READS_IN.match(each) for each in lines)
        return Finding(NOTE, path, number, row["message"], code) if alone else None
    weight = SERIOUS if (row["level"] == "error" and code not in _FRAGILE) or code == "SC2115" else WARNING
    return Finding(weight, path, number, row["message"], code)


def dangers(tree: str, paths: list[str]) -> Iterator[Finding]:
    """Lines that hand the machine to others."""
    for path in paths:
        for number, line in enumerate(content(tree, path).splitlines(), 1):
            if not line.lstrip().startswith("#"):
                for pattern, weight, rule, why in _DANGERS:
                    if (found := pattern.search(line)) and not (rule == "temp-name" and kinds.has_commands(path)):
                        yield Finding(weight, path, number, f"`{found[0].strip()[:60]}` {why}", rule)


RULE = "syntax"
_BY_PROGRAM = {"gofmt": (".go",), "ruby": (".rb",), "php": (".php",)}
_PARSER_WORDS = {"gofmt": ["gofmt", "-e"], "ruby": ["ruby", "-wc"], "php": ["php", "-l"]}


def wanted(path: str) -> bool:
    """Whether the file is of a language that is parsed here."""
    return kinds.is_python(path) or is_data(path) or path.endswith(tuple(e for es in _BY_PROGRAM.values() for e in es))


def check_parsing(tree: str, paths: list[str]) -> Iterator[Finding]:
    """What does not parse. Wherever the parser stumbles, it is the change that made it stumble."""
    for path in paths:
        if kinds.is_python(path):
            yield from _python(tree, path)
        elif is_data(path):
            yield from data_problems(path, content(tree, path))
        else:
            yield from _by_program(tree, path)


def _python(tree: str, path: str) -> Iterator[Finding]:
    try:
        with warnings.catch_warnings(), open(os.path.join(tree, path), "rb") as file:
            warnings.simplefilter("ignore")  # ruff tells of these
            compile(file.read(), "<file>", "exec", dont_inherit=True)
    except SyntaxError as error:
        yield Finding(SERIOUS, path, error.lineno or 0, f"syntax error: {error.msg}", RULE, anywhere=True)
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        yield Finding(SERIOUS, path, 0, f"does not compile: {error}", RULE, anywhere=True)


def _by_program(tree: str, path: str) -> Iterator[Finding]:
    """By the language's own parser, where it is installed."""
    from shutil import which

    name = next(name for name, ends in _BY_PROGRAM.items() if path.endswith(ends))
    if not (program := which(name)):
        return
    done = subprocess.run(
        [program, *_PARSER_WORDS[name][1:], "--", path],
        cwd=tree,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
    )
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        first = next((line for line in said if path in line), said[0] if said else name)
        digits = first.partition(path)[2].lstrip(":").split(":")[0]
        line = int(digits) if digits.isdigit() else 0
        yield Finding(SERIOUS, path, line, f"{name} can't read it: {first[:200]}", RULE, anywhere=True)
