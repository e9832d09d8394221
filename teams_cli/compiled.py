"""Our own modules as the interpreter compiled them, found in a fraction of the time that its own finder takes.

A command loads some sixty small modules, and to look for one and read it takes longer than to run it, since the usual
finder is prepared for everything that can be imported. This one knows what ours are: it reads what `__pycache__` has,
by the same rule of when that is good, and leaves all else to the usual one.

Modules that are always used together stand there together as well, in a row: one file with the code of them all, made
of their sources by the first command that misses it, and good for as long as what each is compiled to would be. Its
name says what it is to whoever puts compiled files away, installers among them: code that was made in another way than
usual.
"""

import builtins
import os
import sys
from marshal import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from types import CodeType, ModuleType

    Coded = tuple[str, str, str, str, CodeType, bytes]
    """A module as a row has it: see `_compiled`."""

try:
    from _frozen_importlib import ModuleSpec
    from _frozen_importlib_external import MAGIC_NUMBER, ExtensionFileLoader, SourceFileLoader
    from _imp import extension_suffixes
except ImportError:  # an interpreter that imports in another way
    ModuleSpec = ExtensionFileLoader = SourceFileLoader = object  # type: ignore[assignment,misc]
    MAGIC_NUMBER = b""  # type: ignore[misc]

_BY_TIME = MAGIC_NUMBER + bytes(4)
"""How a compiled module begins that is good for a source of the time and the size that follow."""
_HEADER = 16
_OF_ROW = MAGIC_NUMBER + b"row in parts"
_SIZE = 4
"""The bytes behind it that say how long is what says which modules the row has, and how long the parts are."""
_FUTURE = "__future__"
_EXTENSIONS = frozenset({"zlib", "_json", "_datetime", "fcntl"})
"""Those of the standard library that everyday commands use."""
_LARGEST = 1 << 16
_LARGEST_PART = 100_000
"""Bytes of code that are read at a time: the memory for a part has the next one too, where that for a whole row, which
is given back to the system, would be asked for anew, a page at a time.
"""
_WORD = 0xFFFFFFFF
_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_DAMAGED = (ValueError, EOFError, TypeError, SystemError, MemoryError)
"""What may be said of a file that is not whole: the interpreter does not look whether a full disk took all of it."""
_missed: "list[tuple[Finder, str, list[str]]]" = []
"""The rows that were not there, or not good any more, with the modules of each."""


def prefer(prefix: str) -> None:
    """Import the modules whose names begin so in this way, where the interpreter keeps them as it usually does."""
    if MAGIC_NUMBER and not (sys.flags.optimize or sys.pycache_prefix):
        sys.meta_path.insert(0, Finder(prefix))


def load(row: str, names: "Iterable[str]") -> None:
    """Import the modules of a row, for a command that uses them all: each stands behind those that it imports itself.

    To come upon a module in an `import` takes the interpreter longer than to run it: there it is prepared for threads,
    circles and finders that disagree. So this is for the start, with one thread. Without `prefer`, nothing is done, and
    what can't be had is left to the `import`.
    """
    finder = next((found for found in sys.meta_path if type(found) is Finder), None)
    if finder is None:
        return
    names = list(names)
    if names and not finder.load_row(row, names):
        _missed.append((finder, row, names))
        for name in names:
            if (whole := f"{finder.prefix}{name}") not in sys.modules and not finder.load(whole):
                return


def keep_rows() -> None:
    """Write the rows that were missed, for the next command, where the modules of them all are kept compiled.

    An interpreter that is told to write nothing (PYTHONDONTWRITEBYTECODE) writes nothing when it imports; containers
    mostly tell it so, in which an installer has compiled all the same.
    """
    while _missed:
        finder, row, names = _missed.pop()
        finder.keep_row(row, names)


class Finder:
    """Finds modules in `__pycache__`; it has no opinion on what is not there, or was changed since."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.suffix = f".{sys.implementation.cache_tag}.pyc"

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        """What is to be loaded under the name."""
        if name in _EXTENSIONS:
            return _extension(name)
        if name == _FUTURE:
            path = [os.path.dirname(os.__file__)]
        elif not (path and name.startswith(self.prefix)):
            return None
        found = self._found(path[0], name.rpartition(".")[2])
        return _spec(name, *found[:-1]) if found else None

    def load(self, name: str) -> bool:
        """Import the module of that name, the package of which is imported; False if it can't be found."""
        above = sys.modules.get(name.rpartition(".")[0])
        spec = self.find_spec(name, above.__path__) if above else None
        if spec:
            _run(spec)
        return spec is not None

    def load_row(self, row: str, names: "list[str]") -> bool:
        """Import the modules of a row from its file; False if it has others, the source of one was changed, or the
        package of one was not imported: what comes before it in another row could not be had there.
        """
        directory, prefix, modules = self._directory(), self.prefix, sys.modules
        before, builtins.__import__ = builtins.__import__, _import
        try:
            for name, source, compiled, package, code, of in _row(self._file_of(row), names):
                if prefix + name not in modules:
                    source = directory + source
                    if _of(source) != of or (prefix + name).rpartition(".")[0] not in modules:
                        return False
                    _run(_spec(prefix + name, source, directory + compiled, package and directory + package, code))
        finally:
            builtins.__import__ = before
        return all(prefix + name in modules for name in names)

    def keep_row(self, row: str, names: "list[str]") -> None:
        """Write the file of a row, if it can be written and each of its modules is compiled."""
        file = self._file_of(row)
        beside = f"{file}.{os.getpid()}.pyc"
        try:
            with open(beside, "wb") as written:  # first: where nothing can be written, nothing is to be read for it
                parts = _parts(self._compiled(names))
                head = dumps((names, [len(part) for part in parts]))
                written.write(_OF_ROW + len(head).to_bytes(_SIZE, "little") + head + b"".join(parts))
            os.replace(beside, file)
        except (OSError, SyntaxError, ValueError):  # what is compiled is not kept either where it can't be, nor a half
            _remove(beside)

    def _compiled(self, names: "list[str]") -> "list[Coded]":
        """Modules as a row has them: their names, and what `_found` says, the paths from where the modules are, and the
        code without what no command asks for.

        Raises:
            FileNotFoundError: One is not compiled, or was changed meanwhile.
            SyntaxError, ValueError: One is half written.
        """
        directory, found = self._directory(), []
        for name in names:
            inside, _, word = f"{directory}{name.replace('.', '/')}".rpartition("/")
            if (one := self._found(inside, word)) is None:
                raise FileNotFoundError(name)
            code = _bare(one[0])
            if _of(one[0]) != one[4]:
                raise FileNotFoundError(name)
            source, compiled, package = (path[len(directory) :] for path in one[:3])
            found.append((name, source, compiled, package, code, one[4]))
        return found

    def _directory(self) -> str:
        """Where the modules are, with the slash behind it."""
        return f"{sys.modules[self.prefix[:-1]].__path__[0]}/"

    def _file_of(self, row: str) -> str:
        return f"{self._directory()}__pycache__/{row}.{sys.implementation.cache_tag}.opt-row.pyc"

    def _found(self, directory: str, word: str) -> "tuple[str, str, str, CodeType, bytes] | None":
        """A module: its source, its compiled file, the directory if it is a package, its code, its source's state."""
        plain = f"{directory}/{word}"
        for source, compiled, package in (
            (f"{plain}/__init__.py", f"{plain}/__pycache__/__init__{self.suffix}", plain),  # first, as the usual way
            (f"{plain}.py", f"{directory}/__pycache__/{word}{self.suffix}", ""),
        ):
            if found := _code(source, compiled):
                return source, compiled, package, *found
        return None


_usual_import = builtins.__import__


def _import(
    name: str,
    globals: "Mapping[str, object] | None" = None,
    locals: "Mapping[str, object] | None" = None,
    fromlist: "Sequence[str] | None" = (),
    level: int = 0,
) -> "ModuleType":
    """What `from module import word` takes the words from, while a row is loaded: mostly one that is there already. The
    usual way makes sure of that with an exception, as a module has no `__path__`, which costs more than all the rest.
    """
    if fromlist and not level and (module := sys.modules.get(name)):
        own = module.__dict__
        for word in fromlist if "__path__" in own else ():
            if word not in own:  # a module of the package that is not there yet
                break
        else:
            return module
    return _usual_import(name, globals, locals, fromlist, level)


class _Loader(SourceFileLoader):
    """Runs the code that was found; asked again, it looks as usual."""

    code: "CodeType | None" = None

    def get_code(self, fullname: str) -> "CodeType | None":
        code, self.code = self.code, None
        return code or super().get_code(fullname)


def _spec(name: str, source: str, compiled: str, package: str, code: "CodeType") -> "ModuleSpec":
    """What the interpreter wants to know of a module before it runs its code."""
    loader = _Loader(name, source)
    loader.code = code
    spec = ModuleSpec(name, loader, origin=source, is_package=bool(package))
    if spec.submodule_search_locations is not None:
        spec.submodule_search_locations.append(package)
    spec.cached, spec.has_location = compiled, True
    spec._initializing = False  # type: ignore[attr-defined]  # each import of it asks, and an answer saves an exception
    return spec


def _run(spec: "ModuleSpec") -> None:
    """Import a module as the interpreter does, without what it is prepared for beside that."""
    name = spec.name
    package, _, word = name.rpartition(".")
    sys.modules[name] = module = type(sys)(name)
    own, within = module.__dict__, spec.submodule_search_locations
    own["__spec__"], own["__loader__"], own["__file__"] = spec, spec.loader, spec.origin
    own["__cached__"], own["__package__"] = spec.cached, (package if within is None else name)
    if within is not None:
        own["__path__"] = within
    try:
        exec(spec.loader.get_code(name), own)  # type: ignore[union-attr]
    except BaseException:
        del sys.modules[name]
        raise
    setattr(sys.modules[package], word, module)


def _extension(name: str) -> "ModuleSpec | None":
    """An extension module that comes with the interpreter, which the usual way looks for everywhere else first."""
    directory = next((entry for entry in sys.path if entry.endswith("/lib-dynload")), "")
    library = f"{directory}/{name}{extension_suffixes()[0]}"
    if not (directory and os.path.exists(library)):
        return None
    return ModuleSpec(name, ExtensionFileLoader(name, library), origin=library)


_MODULE = [str, str, str, str, type(load.__code__), bytes]
"""The types of what a row says of a module."""


def _row(file: str, names: "list[str]") -> "Iterator[Coded]":
    """The modules of a row in the order of the names, as far as the file is whole; none unless it is of these."""
    try:
        descriptor = os.open(file, _READ)
    except OSError:
        return
    try:
        if os.read(descriptor, _HEADER) == _OF_ROW:
            kept, sizes = loads(os.read(descriptor, int.from_bytes(os.read(descriptor, _SIZE), "little")))
            for size in sizes if kept == names else ():
                part = loads(os.read(descriptor, size))
                if not all(type(module) is tuple and list(map(type, module)) == _MODULE for module in part):
                    return
                yield from part
    except (OSError, OverflowError, *_DAMAGED):
        return
    finally:
        os.close(descriptor)


def _parts(modules: "Iterable[Coded]") -> "list[bytes]":
    """The modules of a row as they are written, as many together as one part may have."""
    parts: list[list[Coded]] = []
    left = 0
    for module in modules:
        size = len(dumps(module))
        if size > left:
            parts.append([])
            left = _LARGEST_PART
        parts[-1].append(module)
        left -= size
    return [dumps(part) for part in parts]


def _code(source: str, compiled: str) -> "tuple[CodeType, bytes] | None":
    """The compiled module, and the state of its source; None unless it is of this interpreter and of the source now."""
    try:
        data = _read(compiled, _LARGEST)
    except OSError:
        return None
    if data[:_HEADER] != _BY_TIME + (of := _of(source)):
        return None
    try:
        return loads(memoryview(data)[_HEADER:]), of
    except _DAMAGED:
        if len(data) < _LARGEST:  # else there is more of it than what was read
            _remove(compiled)  # the usual way fails for it, every time, and makes it anew where there is none
        return None


def _bare(source: str) -> "CodeType":
    """The code of a source without the annotations of its functions: to read them takes a command a fortieth of its
    time, and it asks for none. Those of classes are what records are, and docstrings are the help. What it takes from
    `__future__`, which the compiler knows without it, is not imported when it runs.
    """
    import __future__

    from ast import AsyncFunctionDef, FunctionDef, ImportFrom, arg, parse, walk

    with open(source, "rb") as file:
        module = parse(file.read())
    features = [node for node in module.body if isinstance(node, ImportFrom) and node.module == _FUTURE]
    module.body = [node for node in module.body if node not in features]
    flags = [getattr(__future__, alias.name).compiler_flag for node in features for alias in node.names]
    for node in walk(module):
        if isinstance(node, arg):
            node.annotation = None
        elif isinstance(node, FunctionDef | AsyncFunctionDef):
            node.returns = None
    code: CodeType = compile(module, source, "exec", flags=sum({*flags}), dont_inherit=True)
    return code


def _of(source: str) -> bytes:
    """The time and the size of a source, as a compiled module has them; nothing if there is none."""
    try:
        now = os.stat(source)
    except OSError:
        return b""
    return (int(now.st_mtime) & _WORD).to_bytes(4, "little") + (now.st_size & _WORD).to_bytes(4, "little")


def _remove(file: str) -> None:
    """Remove a file, if that can be done."""
    try:
        os.unlink(file)
    except OSError:
        return


def _read(file: str, most: int) -> bytes:
    descriptor = os.open(file, _READ)
    try:
        return os.read(descriptor, most)
    finally:
        os.close(descriptor)
