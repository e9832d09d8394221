"""Our own modules as the interpreter compiled them, found in a third of the time that its own finder takes.

A command loads some sixty small modules, and to look for one and read it takes longer than to run it, since the usual
finder is prepared for everything that can be imported. This one knows what ours are: it reads what `__pycache__` has,
by the same rule of when that is good, and leaves all else to the usual one.
"""

import os
import sys
from marshal import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import CodeType, ModuleType

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
_FUTURE = "__future__"
_EXTENSIONS = frozenset({"zlib", "_json", "_datetime", "fcntl"})
"""Those of the standard library that everyday commands use."""
_LARGEST = 1 << 16
_WORD = 0xFFFFFFFF


def prefer(prefix: str) -> None:
    """Import the modules whose names begin so in this way, where the interpreter keeps them as it usually does."""
    if MAGIC_NUMBER and not (sys.flags.optimize or sys.pycache_prefix):
        sys.meta_path.insert(0, Finder(prefix))


def load(names: "Iterable[str]") -> None:
    """Import modules in a row, for a command that uses them all: each must come behind those that it imports itself.

    To come upon a module in an `import` takes the interpreter longer than to run it: there it is prepared for threads,
    circles and finders that disagree. So this is for the start, with one thread. Without `prefer`, nothing is done, and
    what can't be had is left to the `import`.
    """
    finder = next((found for found in sys.meta_path if type(found) is Finder), None)
    for name in names if finder else ():
        if finder and (whole := f"{finder.prefix}{name}") not in sys.modules and not finder.load(whole):
            return


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
            return self._spec(name, os.path.dirname(os.__file__), name)
        if not (path and name.startswith(self.prefix)):
            return None
        directory, word = path[0], name.rpartition(".")[2]
        package = f"{directory}/{word}"
        return self._spec(name, directory, word) or self._spec(name, package, "__init__", package)

    def load(self, name: str) -> bool:
        """Import the module of that name, the package of which is imported; False if it can't be found."""
        package, _, word = name.rpartition(".")
        above = sys.modules.get(package)
        spec = self.find_spec(name, above.__path__) if above else None
        if spec is None:
            return False
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
        setattr(above, word, module)
        return True

    def _spec(self, name: str, directory: str, word: str, package: str = "") -> "ModuleSpec | None":
        source, compiled = f"{directory}/{word}.py", f"{directory}/__pycache__/{word}{self.suffix}"
        code = _code(source, compiled)
        if code is None:
            return None
        loader = _Loader(name, source)
        loader.code = code
        spec = ModuleSpec(name, loader, origin=source, is_package=bool(package))
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(package)
        spec.cached, spec.has_location = compiled, True
        return spec


def _extension(name: str) -> "ModuleSpec | None":
    """An extension module that comes with the interpreter, which the usual way looks for everywhere else first."""
    directory = next((entry for entry in sys.path if entry.endswith("/lib-dynload")), "")
    library = f"{directory}/{name}{extension_suffixes()[0]}"
    if not (directory and os.path.exists(library)):
        return None
    return ModuleSpec(name, ExtensionFileLoader(name, library), origin=library)


class _Loader(SourceFileLoader):
    """Runs the code that was found; asked again, it looks as usual."""

    code: "CodeType | None" = None

    def get_code(self, fullname: str) -> "CodeType | None":
        code, self.code = self.code, None
        return code or super().get_code(fullname)


def _code(source: str, compiled: str) -> "CodeType | None":
    """The compiled module; None unless it is of this interpreter and of the source as it is now."""
    try:
        descriptor = os.open(compiled, os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.read(descriptor, _LARGEST)
        finally:
            os.close(descriptor)
        now = os.stat(source)
    except OSError:
        return None
    of = (int(now.st_mtime) & _WORD).to_bytes(4, "little") + (now.st_size & _WORD).to_bytes(4, "little")
    if data[:_HEADER] != _BY_TIME + of:
        return None
    try:
        code: CodeType = loads(memoryview(data)[_HEADER:])
    except (ValueError, EOFError, TypeError):  # longer than what was read, or damaged: then so for the usual one
        return None
    return code
