"""JavaScript and TypeScript by oxlint, and shell scripts by shellcheck."""

from __future__ import annotations

import json
import os
import re
import tempfile

from teams_cli.extensions.review import kinds
from teams_cli.extensions.review.change import content
from teams_cli.extensions.review.findings import NOTE, SERIOUS, WARNING, Finding
from teams_cli.extensions.review.linters import documents, program, rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from teams_cli.extensions.review.linters import Rules

SYNTAX: Rules = {}
"""No rule: only what does not parse."""
NAMES = rules(
    (SERIOUS, "no-undef no-const-assign no-import-assign", "it fails when this line runs"),
    (WARNING, "no-redeclare", ""),
    (NOTE, "no-unused-vars", ""),
)
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
MISTAKES = rules((WARNING, _MISTAKES, ""), (NOTE, "eqeqeq ban-ts-comment", ""))
DANGERS = rules(
    (SERIOUS, "no-eval no-implied-eval no-new-func", "an attacker who controls the text can run code"),
    (WARNING, "no-script-url", "it runs the text as code"),
    (WARNING, "no-danger", "what users enter becomes part of the page"),
    (NOTE, "jsx-no-target-blank no-caller", ""),
)
LEFTOVERS = rules(
    (SERIOUS, "no-debugger", "the program stops there"),
    (SERIOUS, "no-focused-tests", "all other tests are left out"),
    (WARNING, "no-alert", ""),
    (NOTE, "no-disabled-tests", "this test is left out"),
    (NOTE, "no-console", "was it left behind?"),
)
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
"""What leaves idioms alone."""
_ALSO_FROM_ELSEWHERE = ("no-undef", "no-unused-vars", "no-unreachable")
"""What a change elsewhere in the file can bring about."""
_MODULE = re.compile(r"^\s*(import|export)\b|\brequire\s*\(|module\.exports", re.MULTILINE)
_FOR_PEOPLE = re.compile(r"cli|bin/|script|tool|example|demo|bench|server|logger|config")


def check(table: Rules) -> Callable[[str, list[str]], Iterator[Finding]]:
    """The check for the rules of that table; that of `SYNTAX` finds what does not parse."""

    def look(tree: str, paths: list[str]) -> Iterator[Finding]:
        if not (oxlint := program("oxlint")):
            return
        with tempfile.TemporaryDirectory() as directory:
            config = os.path.join(directory, "oxlint.json")
            with open(config, "w", encoding="utf-8") as file:
                json.dump({**_CONFIG, "rules": {name: ["warn", *_OPTIONS.get(name, ())] for name in table}}, file)
            command = [oxlint, "--format=json", "--no-ignore", "--threads=2", f"--config={config}"]
            rows = [row for document in documents(command, paths, tree) for row in document.get("diagnostics", ())]
        for row in rows:
            if finding := _finding(row, tree, table):
                yield finding

    return look


def _finding(row: dict[str, Any], tree: str, table: Rules) -> Finding | None:
    labels = row.get("labels") or [{}]
    path, line = row["filename"].removeprefix("./"), labels[-1].get("span", {}).get("line", 0)
    rule = row.get("code", "").partition("(")[2].rstrip(")")
    if not rule:
        what = f"syntax error: {row['message']}"
        return Finding(SERIOUS, path, line, what, "syntax", anywhere=True) if table is SYNTAX else None
    if rule not in table or not _is_meant(rule, row["message"], path, tree):
        return None
    weight, reason = table[rule]
    what = row["message"].rstrip(".") + (f": {reason}" if reason else "")
    return Finding(weight, path, line, what, rule, anywhere=rule in _ALSO_FROM_ELSEWHERE)


def _is_meant(rule: str, message: str, path: str, tree: str) -> bool:
    """Whether the finding is a defect in this file."""
    if rule == "no-undef":  # outside modules, names come from other scripts
        return not path.endswith(".d.ts") and bool(_MODULE.search(content(tree, path)))
    if rule == "no-redeclare":  # TypeScript merges declarations, and its compiler tells which can't be
        return not path.endswith(kinds.TYPED)
    if rule == "no-unused-vars":  # what is at the top of a script others may use, and parameters have their place
        return "Parameter" not in message and "Catch" not in message and bool(_MODULE.search(content(tree, path)))
    if rule == "no-console":
        return not kinds.is_test(path) and not _FOR_PEOPLE.search(path)
    if rule in ("no-focused-tests", "no-disabled-tests"):
        return kinds.is_test(path)
    return rule != "no-unused-expressions" or not kinds.is_test(path)


_LEFT_OUT = (1090, 1091, 2148, 2155, 2034, 2207, 2178, 2120, 2128, 2046)
"""Taste, and what the shell is often meant to do."""
_FRAGILE = (2045, 2068)
"""What shellcheck calls an error, and goes well with most names."""
_READS_IN = re.compile(r"(^|[\s;&|])(\.|source|eval)\s", re.MULTILINE)
_DESTROYS = re.compile(r"\b(rm|mv|cp|chmod|chown|rsync|dd)\b")


def shell_syntax(tree: str, paths: list[str]) -> Iterator[Finding]:
    """Shell scripts that can't be parsed."""
    seen = set()
    for row in _shellcheck(tree, paths):
        path = row["file"]
        if row["code"] < 2000 and row["level"] == "error" and path not in seen:  # one mistake has many consequences
            seen.add(path)
            yield Finding(SERIOUS, path, row["line"], f"syntax error: {row['message']}", "syntax", anywhere=True)


def shell_mistakes(tree: str, paths: list[str]) -> Iterator[Finding]:
    """Find errors and warnings in shell scripts, except taste."""
    for row in _shellcheck(tree, paths):
        code, path, number, is_error = row["code"], row["file"], row["line"], row["level"] == "error"
        text = content(tree, path)
        line = next(iter(text.splitlines()[number - 1 :]), "")
        is_taste = row["level"] in ("info", "style") and not (code == 2086 and _DESTROYS.search(line))
        if code < 2000 or code in _LEFT_OUT or is_taste:
            continue
        weight = SERIOUS if (is_error and code not in _FRAGILE) or code == 2115 else WARNING
        if code == 2154 and "did you mean" not in row["message"]:  # another script may set it
            if not text.startswith("#!") or _READS_IN.search(text):
                continue
            weight = NOTE
        yield Finding(weight, path, number, row["message"], f"SC{code}")


def _shellcheck(tree: str, paths: list[str]) -> Iterator[dict[str, Any]]:
    if shellcheck := program("shellcheck"):
        command = [shellcheck, "--norc", "--format=json"]
        unnamed = [path for path in paths if not kinds.interpreter(path, tree)]
        for rows in documents(command, [path for path in paths if path not in unnamed], tree):
            yield from rows
        for rows in documents([*command, "--shell=bash"], unnamed, tree):
            yield from rows
