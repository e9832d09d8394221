"""Imports of names that the repository's own modules do not have, and calls that do not fit; in what changed."""

from __future__ import annotations

import ast
import os
import re

from teams_cli.extensions.review import kinds
from teams_cli.extensions.review.change import Change, ChangedFile, Git, GitFailed, content
from teams_cli.extensions.review.findings import SERIOUS, Finding
from teams_cli.extensions.review.python_flow import Signature, parsed, signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


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


_IMPORTED = re.compile(r"(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire\s*\(\s*)[\"'](\.{1,2}/[^\"'?#!]*)[\"']")


def script_findings(change: Change, git: Git) -> Iterator[Finding]:
    """Files that a changed line imports by a relative path, and that neither are there nor are made by a build."""
    for path in change.readable():
        file = change.file(path)
        if file and kinds.is_script(path) and not kinds.is_foreign(path, change.head_tree):
            rows = content(change.head_tree, path).splitlines()
            for number in sorted(file.lines & set(range(1, len(rows) + 1))):
                yield from _of_line(change.repo, git, path, number, rows[number - 1])


def _of_line(repo: str, git: Git, path: str, number: int, row: str) -> Iterator[Finding]:
    if row.lstrip().startswith(("//", "*", "/*")):
        return
    for name in _IMPORTED.findall(row):
        place = os.path.normpath(os.path.join(os.path.dirname(path), name))
        if not place.startswith("..") and not _is_there(repo, place) and not git.said("check-ignore", "--", place):
            yield Finding(SERIOUS, path, number, f"there is no {place}: the import fails", "import")


def _is_there(repo: str, place: str) -> bool:
    """Whether there is that file or directory, or one that an ending was left out of, or that becomes it."""
    directory, name = os.path.split(os.path.join(repo, place))
    stem, end = os.path.splitext(name)
    stems = {name, stem} if end in kinds.SCRIPT else {name}
    try:
        entries = os.listdir(directory)
    except OSError:
        return False
    return any(entry == name or entry.startswith(tuple(f"{one}." for one in stems)) for entry in entries)


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


def removed_findings(change: Change, git: Git) -> Iterator[Finding]:
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
                    yield _lost_names(self.path, node.lineno, f"the module {name.name}")

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
                    yield _lost_names(self.path, node.lineno, f"the module {name.name}")
            elif any(module.is_called(word) for word in origin):
                if module.gone or name.name in module.lost:
                    yield _lost_names(self.path, node.lineno, f"{name.name} of {module.path}")
                elif name.name in module.functions:
                    functions[name.asname or name.name] = module.functions[name.name]

    def _used(self, module: Module, aliases: set[str], functions: dict[str, Signature]) -> Iterator[Finding]:
        for node in self.attributes:
            if node.attr in module.lost and not module.gone and _dotted(node.value) in aliases:
                yield _lost_names(self.path, node.lineno, f"{node.attr} of {module.path}")
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


def _lost_names(path: str, line: int, what: str) -> Finding:
    return Finding(
        SERIOUS, path, line, f"{what} was removed or renamed, and is still used here", "removed", anywhere=True
    )
