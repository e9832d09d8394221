"""JavaScript and TypeScript by oxlint, which is one program and needs no node."""

from __future__ import annotations

import json
import os
import re
import tempfile

from teams_cli.extensions.review import kinds, tools
from teams_cli.extensions.review.change import content
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
        if not (program := tools.own("oxlint")) or not paths:
            return
        with tempfile.TemporaryDirectory() as place:
            config = os.path.join(place, "oxlint.json")
            with open(config, "w", encoding="utf-8") as file:
                rules = {name: ["warn", *_OPTIONS.get(name, ())] for name in table}
                json.dump({"plugins": _PLUGINS, "env": _WORLDS, "categories": _NO_OTHERS, "rules": rules}, file)
            seen: set[str] = set()
            for document in tools.answers([program, *_WORDS, f"--config={config}"], paths, tree):
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
