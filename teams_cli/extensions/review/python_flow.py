"""Python that is never reached, that swallows errors, or that forgets to wait: what is seen in the syntax tree."""

from __future__ import annotations

import ast
import builtins
import re
import warnings
from itertools import pairwise

from teams_cli.extensions.review import kinds
from teams_cli.extensions.review.change import content
from teams_cli.extensions.review.findings import NOTE, SERIOUS, WARNING, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeGuard


_SAYS_DEBUG = re.compile(
    r"(?i)\b(debug|dbg|xxx|(got )?here|test(ing)?|foo|wtf|remove me)\b|[-=*#>]{3,}|\{\s*[\w.]+\s*=\s*[!:}]"
)
_FOR_PEOPLE = re.compile(
    r"(^|/)(cli|main|__main__|console|setup|manage|commands?|scripts?|tools?|bin|examples?|docs?|demo|benchmarks?|bench)"
    r"[^/]*(/|\.py$)"
)


def parsed(text: str) -> ast.Module | None:
    """The syntax tree; None if there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def left_prints(tree: str, paths: list[str]) -> Iterator[Finding]:
    """`print` that was put in to look for a mistake, and forgotten."""
    for path in paths:
        if kinds.is_test(path) or not (module := parsed(content(tree, path))):
            continue
        calls = [node for node in ast.walk(module) if _is_print(node)]
        speaks = bool(_FOR_PEOPLE.search(path)) or _is_program(module)
        for call in calls:
            said = ast.unparse(call)
            if _SAYS_DEBUG.search(said):
                yield Finding(WARNING, path, call.lineno, f"print debugging: {said[:60]}", "print", anywhere=False)
            elif not speaks and len(calls) < 3 and not _named_for_it(module, call):
                yield Finding(NOTE, path, call.lineno, f"was this left behind? {said[:60]}", "print", anywhere=False)


def _is_print(node: ast.AST) -> TypeGuard[ast.Call]:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("print", "pprint", "pp")
        and not any(word.arg == "file" for word in node.keywords)
    )


def _is_program(module: ast.Module) -> bool:
    return any(isinstance(node, ast.If) and "__name__" in ast.unparse(node.test) for node in module.body)


def _named_for_it(module: ast.Module, call: ast.AST) -> bool:
    """Whether the function around it says by its name that it prints."""
    words = (
        "print",
        "show",
        "display",
        "main",
        "usage",
        "help",
        "report",
        "dump",
        "echo",
        "say",
        "log",
        "output",
        "run",
    )
    return any(
        any(word in node.name.lower() for word in words)
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and call in ast.walk(node)
    )


_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_EXITS = ("sys.exit", "os._exit", "os.abort", "exit", "quit")
_AWAITED = ("asyncio.sleep", "asyncio.wait", "asyncio.wait_for", "asyncio.to_thread")
_OF_TEXTS = (
    "strip",
    "lstrip",
    "rstrip",
    "lower",
    "upper",
    "title",
    "capitalize",
    "casefold",
    "removeprefix",
    "removesuffix",
)
_BROAD = ("Exception", "BaseException")


def check(tree: str, paths: list[str]) -> Iterator[Finding]:
    """What is wrong with the flow of control, file by file."""
    for path in paths:
        if module := parsed(content(tree, path)):
            waited = {*_AWAITED, *(node.name for node in module.body if isinstance(node, ast.AsyncFunctionDef))}
            for node in ast.walk(module):
                for block in _blocks(node):
                    yield from _behind(path, block)
                if isinstance(node, ast.Try):
                    yield from _handlers(path, node)
                if isinstance(node, ast.If):
                    yield from _asked_again(path, node)
                if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                    yield from _for_nothing(path, node.value, waited)


def _for_nothing(path: str, call: ast.Call, waited: set[str]) -> Iterator[Finding]:
    """A call that stands alone, and does nothing so."""
    name = _name(call)
    if name in waited:
        what = f"`await` is missing: {name}() does nothing until it is awaited"
        yield Finding(SERIOUS, path, call.lineno, what, "await")
    elif isinstance(call.func, ast.Attribute) and _gives_a_text(call.func.attr, call):
        what = f"the result of .{call.func.attr}() is lost: texts do not change, a new one is given"
        yield Finding(WARNING, path, call.lineno, what, "result-lost")


def _gives_a_text(method: str, call: ast.Call) -> bool:
    """Whether it can only be a method of texts, which gives a new one; `replace` of two literals is one, too."""
    literals = [arg for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    if call.keywords or len(literals) < len(call.args):
        return False
    return len(literals) == 2 if method == "replace" else method in _OF_TEXTS and len(literals) < 2


def _asked_again(path: str, node: ast.If) -> Iterator[Finding]:
    """The next `elif` that asks what one before it in the chain has asked, so that it is never true."""
    asked = {ast.dump(node.test)}
    while len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If) and not _calls_in(node.test):
        node = node.orelse[0]
        if ast.dump(node.test) in asked:
            what = f"`elif {ast.unparse(node.test)[:60]}` is never reached: one before asks the same"
            yield Finding(WARNING, path, node.lineno, what, "unreachable", anywhere=True)
            return
        asked.add(ast.dump(node.test))


def _calls_in(node: ast.AST) -> bool:
    """Whether it may be another thing each time."""
    return any(isinstance(inner, ast.Call | ast.Await | ast.NamedExpr) for inner in ast.walk(node))


def _name(call: ast.Call) -> str:
    return ast.unparse(call.func) if isinstance(call.func, ast.Name | ast.Attribute) else ""


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block


def _behind(path: str, block: list[ast.stmt]) -> Iterator[Finding]:
    """Statements behind one that always leaves their block."""
    for before, after in pairwise(block):
        if (word := _leaves(before)) and not _marks_a_generator(after):
            yield Finding(
                WARNING, path, after.lineno, f"code behind {word} is never reached", "unreachable", anywhere=True
            )
            return


def _leaves(node: ast.stmt) -> str:
    """What to call a statement that nothing comes after; empty if something does."""
    if isinstance(node, _ENDS):
        return f"`{type(node).__name__.lower()}`"
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        name = ast.unparse(node.value.func)
        return f"`{name}()`" if name in _EXITS else ""
    endless = isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and bool(node.test.value)
    return "a loop without end" if endless and not any(isinstance(n, ast.Break) for n in ast.walk(node)) else ""


def _marks_a_generator(node: ast.stmt) -> bool:
    """`yield` behind `return` makes the function a generator, which is an idiom."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield | ast.YieldFrom)


def _handlers(path: str, node: ast.Try) -> Iterator[Finding]:
    caught: list[type] = []
    for handler in node.handlers:
        own = _caught(handler)
        if caught and own and all(any(issubclass(kind, wide) for wide in caught) for kind in own):
            kind = ast.unparse(handler.type) if handler.type else ""
            what = f"`except {kind}` is never reached: one before catches it"
            yield Finding(WARNING, path, handler.lineno, what, "unreachable", anywhere=True)
        caught += own
        if _is_broad(handler) and (word := _swallows(handler.body)):
            what = f"every error ends in `{word}`, and nobody learns of it"
            weight = NOTE if word.startswith("return") else WARNING
            yield Finding(weight, path, handler.lineno, what, "swallowed")


def _caught(handler: ast.ExceptHandler) -> list[type]:
    """The built-in exceptions that it catches; none where others are among them."""
    nodes = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    found = [getattr(builtins, node.id, None) if isinstance(node, ast.Name) else None for node in nodes]
    kinds = [kind for kind in found if isinstance(kind, type)]
    return kinds if len(kinds) == len(nodes) else []


def _is_broad(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or (isinstance(handler.type, ast.Name) and handler.type.id in _BROAD)


def _swallows(body: list[ast.stmt]) -> str:
    """What a handler does that does nothing with the error; `pass` alone is what ruff tells of."""
    if len(body) != 1:
        return ""
    node = body[0]
    if isinstance(node, ast.Return) and (node.value is None or ast.unparse(node.value) == "None"):
        return ast.unparse(node)
    return "..." if isinstance(node, ast.Expr) and ast.unparse(node) == "..." else ""


class Signature:
    """What a function takes: names by place, how many of them must be given, names by keyword, and whether any more."""

    def __init__(self, places: list[str], needed: int, words: dict[str, bool], rest: bool, others: bool) -> None:
        self.places = places
        self.needed = needed
        self.words = words
        self.rest = rest
        self.others = others
        self.hidden = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Signature) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def refuses(self, call: ast.Call) -> str:
        """Why the function does not take this call; empty if it does, or if what is given can't be counted."""
        if any(isinstance(given, ast.Starred) for given in call.args) or any(
            word.arg is None for word in call.keywords
        ):
            return ""
        named = [word.arg for word in call.keywords if word.arg]
        if len(call.args) > len(self.places) and not self.rest:
            return f"takes {len(self.places)} arguments by place, not {len(call.args)}"
        unknown = [name for name in named if name not in self.places[self.hidden :] and name not in self.words]
        if unknown and not self.others:
            return f"has no parameter {unknown[0]}"
        missing = [name for name in self.places[len(call.args) : self.needed] if name not in named]
        missing += [name for name, needed in self.words.items() if needed and name not in named]
        return f"needs {missing[0]}" if missing else ""


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Signature:
    """What that function takes."""
    given = node.args
    places = [argument.arg for argument in (*given.posonlyargs, *given.args)]
    words = {
        argument.arg: default is None for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
    }
    found = Signature(places, len(places) - len(given.defaults), words, bool(given.vararg), bool(given.kwarg))
    found.hidden = len(given.posonlyargs)
    return found
