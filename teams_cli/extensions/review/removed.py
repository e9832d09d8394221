"""What was removed or renamed in Python modules and is still used elsewhere, and calls that no longer fit."""

from __future__ import annotations

import ast
import os

from teams_cli.extensions.review import kinds
from teams_cli.extensions.review.change import Change, ChangedFile, content
from teams_cli.extensions.review.findings import SERIOUS, Finding
from teams_cli.extensions.review.git import Git, GitFailed
from teams_cli.extensions.review.modules import absolute, functions, guarded, import_names, is_open, names
from teams_cli.extensions.review.python_reading import parsed
from teams_cli.extensions.review.signatures import Signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST = 400
"""Files that are looked through for uses."""


class Module:
    """What changed of one module: names that it lost, and functions that take other arguments than before."""

    def __init__(self, path: str, lost: set[str], functions: dict[str, Signature], gone: bool) -> None:
        self.path = path
        self.lost = lost
        self.functions = functions
        self.gone = gone
        self.names = import_names(path)

    def is_called(self, name: str) -> bool:
        """Whether an import of that name means this module."""
        return name in self.names


def findings(change: Change, git: Git) -> Iterator[Finding]:
    """Uses, in any Python file of the repository, of what the change took away."""
    modules = [module for file in change.files if (module := _changed(change, git, file))]
    if not modules:
        return
    words = {name.rpartition(".")[2] for module in modules for name in module.names}
    for path in python_files(git)[:_MOST]:
        text = content(change.repo, path)
        if any(word in text for word in words) and (tree := parsed(text)):
            reader = Reader(path, tree)
            for module in modules:
                if module.path != path or module.functions:
                    yield from reader.uses(module)


def python_files(git: Git) -> list[str]:
    found = git.names("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.py", "*.pyi")
    return [path for path in found if not os.path.islink(path)]


def _changed(change: Change, git: Git, file: ChangedFile) -> Module | None:
    """What the module lost; None if it lost nothing."""
    if not kinds.is_python(file.old) or file.status not in "MDR":
        return None
    before = parsed(_before(change, git, file))
    after = parsed(content(change.head_tree, file.path)) if file.status in "MR" else ast.Module([], [])
    if before is None or after is None or is_open(after):
        return None
    gone = file.status == "D" or (file.status == "R" and import_names(file.old) != import_names(file.path))
    lost = names(before) - names(after)
    functions = {} if gone else _narrowed(before, after)
    if not (lost or functions or gone) or (gone and _twin(change, file)):
        return None
    return Module(file.old, lost, functions, gone)


def _twin(change: Change, file: ChangedFile) -> bool:
    """Whether a package took the module's place, or the other way round, or it moved below `src`."""
    names = import_names(file.old)
    return any(other.status != "D" and import_names(other.path) & names for other in change.files)


def _before(change: Change, git: Git, file: ChangedFile) -> str:
    try:
        return git("cat-file", "blob", f"{change.base}:{file.old}").decode(errors="replace")
    except GitFailed:
        return ""


def _narrowed(before: ast.Module, after: ast.Module) -> dict[str, Signature]:
    """The functions at the top that take other arguments now, as they are now."""
    old, new = functions(before), functions(after)
    return {name: new[name] for name in old.keys() & new.keys() if old[name] != new[name]}


class Reader:
    """Looks through one file for uses of modules that changed."""

    def __init__(self, path: str, tree: ast.Module) -> None:
        self.path = path
        aside = guarded(tree)
        nodes = [node for node in ast.walk(tree) if node not in aside]
        self.froms = [(node, absolute(path, node)) for node in nodes if isinstance(node, ast.ImportFrom)]
        self.imports = [node for node in nodes if isinstance(node, ast.Import)]
        self.attributes = [node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)]
        self.calls = [node for node in nodes if isinstance(node, ast.Call)]

    def uses(self, module: Module) -> Iterator[Finding]:
        """Imports and uses of what the module lost, and calls that it does not take any more."""
        aliases: set[str] = set()
        functions: dict[str, Signature] = dict(module.functions) if self.path == module.path else {}
        for node in self.imports:
            yield from self._import(node, module, aliases)
        for start, origin in self.froms:
            yield from self._from(start, origin, module, aliases, functions)
        if aliases or functions:
            yield from self._used(module, aliases, functions)

    def _import(self, node: ast.Import, module: Module, aliases: set[str]) -> Iterator[Finding]:
        for name in node.names:
            if module.is_called(name.name):
                aliases.add(name.asname or name.name)
                if module.gone:
                    yield _lost(self.path, node.lineno, f"the module {name.name}")

    def _from(
        self,
        node: ast.ImportFrom,
        origin: set[str],
        module: Module,
        aliases: set[str],
        functions: dict[str, Signature],
    ) -> Iterator[Finding]:
        for name in node.names:
            if any(module.is_called(f"{word}.{name.name}" if word else name.name) for word in origin):
                aliases.add(name.asname or name.name)
                if module.gone:
                    yield _lost(self.path, node.lineno, f"the module {name.name}")
            elif any(module.is_called(word) for word in origin):
                if module.gone or name.name in module.lost:
                    yield _lost(self.path, node.lineno, f"{name.name} of {module.path}")
                elif name.name in module.functions:
                    functions[name.asname or name.name] = module.functions[name.name]

    def _used(self, module: Module, aliases: set[str], functions: dict[str, Signature]) -> Iterator[Finding]:
        for node in self.attributes:
            if node.attr in module.lost and not module.gone and _dotted(node.value) in aliases:
                yield _lost(self.path, node.lineno, f"{node.attr} of {module.path}")
        for call in self.calls:
            taken = _signature_of(call, module, aliases, functions)
            if taken and (why := taken.refuses(call)):
                what = f"{_dotted(call.func)}() was changed in {module.path}, and {why}: this call fails"
                yield Finding(SERIOUS, self.path, call.lineno, what, "call", anywhere=True)


def _dotted(node: ast.AST) -> str:
    """The name `a.b.c` as it is written; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    above = _dotted(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{above}.{node.attr}" if above and isinstance(node, ast.Attribute) else ""


def _signature_of(
    call: ast.Call, module: Module, aliases: set[str], functions: dict[str, Signature]
) -> Signature | None:
    if isinstance(call.func, ast.Name):
        return functions.get(call.func.id)
    if isinstance(call.func, ast.Attribute) and call.func.attr in module.functions:
        return module.functions[call.func.attr] if _dotted(call.func.value) in aliases else None
    return None


def _lost(path: str, line: int, what: str) -> Finding:
    return Finding(
        SERIOUS, path, line, f"{what} was removed or renamed, and is still used here", "removed", anywhere=True
    )
