"""Python that is never reached, that swallows errors, or that forgets to wait: what is seen in the syntax tree."""

from __future__ import annotations

import ast
import builtins
from itertools import pairwise

from teams_cli.extensions.review.change import content
from teams_cli.extensions.review.findings import NOTE, SERIOUS, WARNING, Finding
from teams_cli.extensions.review.python_reading import parsed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

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
