"""Python modules as others see them: the names to import them by, the names in them, what their functions take."""

from __future__ import annotations

import ast

from teams_cli.extensions.review.signatures import Signature, signature

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def import_names(path: str) -> set[str]:
    """The names by which the module can be imported: from the top, and from the directories that may be the top."""
    stem = path.rpartition(".")[0].removesuffix("/__init__")
    parts = stem.split("/")
    tops = [0] + [index + 1 for index, part in enumerate(parts) if part in ("src", "lib", "python")]
    return {".".join(parts[top:]) for top in tops if parts[top:]}


def is_open(module: ast.Module) -> bool:
    """Whether names may come from where they are not seen: `from x import *`, `__getattr__`, globals()."""
    inside = {inner for node in ast.walk(module) if isinstance(node, _FUNCTIONS) for inner in ast.walk(node)}
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            return True
        if isinstance(node, ast.Name) and (node.id == "globals" or (node.id == "exec" and node not in inside)):
            return True  # what `exec` makes within a function the module does not have
    return any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in module.body)


def names(module: ast.Module) -> set[str]:
    """All names that the module has at its top, whatever is around them."""
    found: set[str] = set()
    waiting: list[ast.AST] = list(module.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found.update((name.asname or name.name).partition(".")[0] for name in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        else:
            waiting += ast.iter_child_nodes(node)
    return found


def functions(module: ast.Module) -> dict[str, Signature]:
    """The functions that are defined once and not wrapped, so that what is written is what is called."""
    nodes = [node for node in module.body if isinstance(node, _FUNCTIONS)]
    names = [node.name for node in nodes]
    return {node.name: signature(node) for node in nodes if not node.decorator_list and names.count(node.name) == 1}


def guarded(tree: ast.Module) -> set[ast.AST]:
    """What stands in `try`: whoever wrote it knows that it may not be there."""
    tries = (node for node in ast.walk(tree) if isinstance(node, ast.Try))
    return {inner for node in tries for part in node.body for inner in ast.walk(part)}


def absolute(path: str, node: ast.ImportFrom) -> set[str]:
    """The names of the module that is imported from; a relative one is counted from where the file is."""
    if not node.level:
        return {node.module or ""}
    found = set()
    for own in import_names(path):
        parts = own.split(".") if path.endswith("__init__.py") else own.split(".")[:-1]
        parts = parts[: len(parts) - node.level + 1]
        found.add(".".join([*parts, *([node.module] if node.module else [])]))
    return found
