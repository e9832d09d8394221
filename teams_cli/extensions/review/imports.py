"""Imports of names that the repository's own modules do not have, and calls that do not fit; in what changed."""

from __future__ import annotations

import ast
import os

from teams_cli.extensions.review import kinds
from teams_cli.extensions.review.change import Change, content
from teams_cli.extensions.review.findings import SERIOUS, Finding
from teams_cli.extensions.review.modules import absolute, functions, guarded, import_names, is_open, names
from teams_cli.extensions.review.python_reading import parsed
from teams_cli.extensions.review.signatures import Signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_PACKAGE = "__init__.py"
_GENERATED = ("_pb2", "_pb2_grpc", "version")


class Modules:
    """The modules of the repository by the names under which they are imported; read when they are asked for."""

    def __init__(self, repo: str, paths: list[str]) -> None:
        self.repo = repo
        self.places = {name: path for path in paths for name in import_names(path)}
        self._read: dict[str, ast.Module | None] = {}

    def tree(self, name: str) -> ast.Module | None:
        """The syntax tree of a module; None if it is not the repository's, or can't be read."""
        if not (path := self.places.get(name)):
            return None
        if path not in self._read:
            self._read[path] = parsed(content(self.repo, path))
        return self._read[path]

    def lacks(self, module: str) -> bool:
        """Whether it would lie in a package of the repository, and does not; what is generated may come later."""
        parent, _, last = module.rpartition(".")
        package = self.places.get(parent, "")
        if module in self.places or last.startswith("_") or last.endswith(_GENERATED) or not package.endswith(_PACKAGE):
            return False
        if any(word in content(self.repo, package) for word in ("__path__", "sys.modules")):
            return False
        return not self._lies_beside(package, last)

    def has(self, module: str, name: str) -> bool:
        """Whether the name may be imported from the module; so it is where that can't be told."""
        if f"{module}.{name}" in self.places or name == "*":
            return True
        tree = self.tree(module)
        if tree is None or is_open(tree) or name in names(tree) or name.startswith("__"):
            return True
        return self._lies_beside(self.places[module], name)

    def _lies_beside(self, path: str, name: str) -> bool:
        """Whether the directory of that file has a directory of that name, or a file with any ending behind it."""
        entries = os.listdir(os.path.dirname(os.path.join(self.repo, path)))
        return any(entry == name or entry.startswith(f"{name}.") for entry in entries)

    def function(self, module: str, name: str) -> Signature | None:
        """What a function of the module takes."""
        tree = self.tree(module)
        return functions(tree).get(name) if tree else None


def findings(change: Change, paths: list[str]) -> Iterator[Finding]:
    """What the changed lines import or call and can't have."""
    modules = Modules(change.repo, paths)
    for path in change.readable():
        file = change.file(path)
        tree = parsed(content(change.head_tree, path)) if kinds.is_python(path) else None
        if file and tree and not kinds.is_foreign(path, change.head_tree):
            yield from (found for found in _of_file(path, tree, modules) if found.line in file.lines)


def _of_file(path: str, tree: ast.Module, modules: Modules) -> Iterator[Finding]:
    known = functions(tree)
    aside = guarded(tree)
    for node in ast.walk(tree):
        if node not in aside:
            yield from _lost(path, node, modules)
        if isinstance(node, ast.ImportFrom) and node not in aside:
            for name in node.names:
                origins = [origin for origin in absolute(path, node) if modules.tree(origin)]
                if origins and not any(modules.has(origin, name.name) for origin in origins):
                    what = f"{name.name} is not in {modules.places[origins[0]]}: the import fails"
                    yield Finding(SERIOUS, path, node.lineno, what, "import")
                for origin in origins:
                    if taken := modules.function(origin, name.name):
                        known[name.asname or name.name] = taken
    yield from _calls(path, tree, known)


def _lost(path: str, node: ast.AST, modules: Modules) -> Iterator[Finding]:
    """Modules that are imported, and that the package they would be in does not have."""
    asked = [{name.name} for name in node.names] if isinstance(node, ast.Import) else []
    asked = [absolute(path, node)] if isinstance(node, ast.ImportFrom) else asked
    for names_of in asked:
        if names_of and all(modules.lacks(name) for name in names_of):
            yield Finding(SERIOUS, path, node.lineno, f"there is no {min(names_of)}: the import fails", "import")  # type: ignore[attr-defined]


def _calls(path: str, tree: ast.Module, known: dict[str, Signature]) -> Iterator[Finding]:
    """Calls by name of functions that are known; a name bound anywhere else in the file may be another thing."""
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    inner = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    bound |= {node.name for node in inner if node not in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in bound:
            taken = known.get(node.func.id)
            if taken and (why := taken.refuses(node)):
                yield Finding(SERIOUS, path, node.lineno, f"{node.func.id}() {why}: this call fails", "call")
