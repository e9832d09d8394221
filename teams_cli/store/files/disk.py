"""Read and write single files and directories. Only regular files are read. After a crash, a file that was being
written is either the old or the new one. The contents of files are remembered, so that unchanged files are not read
again.
"""

from __future__ import annotations

import errno
import os
import stat
import time

from teams_cli import errors
from teams_cli.records.records import Record
from teams_cli.store.documents import MAX_RECORD, decode, decode_unchecked, has_heading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from teams_cli.store.contract import Kind

    R = TypeVar("R", bound=Record)


_READ = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_OVERWRITE = os.O_WRONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
_TEMP = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
_USUAL_SIZE = 8192
"""A size in bytes that most records do not exceed."""
_files_made = 0


def read_file(path: str, limit: int = MAX_RECORD) -> bytes:
    """Read all bytes of a regular file.

    Raises:
        FileNotFoundError: There is no such file.
        DamagedRecord: The path is a link, a directory, a device or a pipe, or the file is larger than *limit* bytes.
        StorageFailed: The system refused.
    """
    return read_with_state(path, limit)[0]


def read_with_state(path: str, limit: int = MAX_RECORD) -> tuple[bytes, os.stat_result]:
    """Return the bytes of a regular file, and its status (from `os.fstat`) just before it was read."""
    try:
        descriptor = os.open(path, _READ)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(path) from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise errors.DamagedRecord(f"{path}: is a symbolic link, not a file", "Remove the link.", path) from None
        if error.errno == errno.ENXIO:
            raise errors.DamagedRecord(f"{path}: is not a regular file", "Remove it.", path) from None
        raise failed("read", path, error) from None
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise errors.DamagedRecord(f"{path}: is not a regular file", "Remove it.", path)
        if state.st_size > limit:
            what = f"{path}: has {state.st_size} bytes, more than the {limit} allowed"
            raise errors.DamagedRecord(what, "Make it smaller.", path)
        data = os.read(descriptor, state.st_size + 1)
        if len(data) != state.st_size:  # else it ends here, because one byte more was asked for
            # The file has grown since, or the system returned only a part of it.
            while len(data) <= limit and (more := os.read(descriptor, 1 << 20)):
                data += more
            if len(data) > limit:
                what = f"{path}: has more than the {limit} bytes allowed"
                raise errors.DamagedRecord(what, "Make it smaller.", path)
        return data, state
    except OSError as error:
        raise failed("read", path, error) from None
    finally:
        release(descriptor)


def glance(path: str) -> bytes:
    """Return the bytes of a small file. Return empty bytes if the file can't be read, or has more bytes than most
    records.

    The function does not check that this is a regular file, because the check would take as long as reading. So use it
    only for files whose content proves that they are complete.
    """
    try:
        descriptor = os.open(path, _READ)
    except OSError:
        return b""
    try:
        data = os.read(descriptor, _USUAL_SIZE)
    except OSError:
        return b""
    finally:
        release(descriptor)
    return data if len(data) < _USUAL_SIZE else b""


def read_named(path: str, most: int) -> bytes:
    """Return at most *most* bytes of a file that a person named. Only a regular file is read: a pipe could block, and a
    device might never end.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", path)
        return file.read(most)


def write_new(path: str, data: bytes) -> None:
    """Write *data* to a new file that a person named. If that fails, no part of the file is left.

    Raises:
        InvalidValue: There is a file already, or none can be made.
        StorageFailed: The file could not be written, for example because the disk is full.
    """
    try:
        file = open(path, "xb")  # noqa: SIM115  # closed when it is written
    except OSError as error:
        hint = "Give the name of a new file."
        raise errors.InvalidValue(f"{path} can't be written: {error.strerror}", hint) from None
    try:
        with file:
            file.write(data)
    except BaseException as error:
        discard(path)  # a part would look like the whole
        if isinstance(error, OSError):
            raise failed("write", path, error) from None
        raise


def rewrite(path: str, data: bytes | None) -> None:
    """Write *data* to the file at *path*, and keep the mode of an existing file. If *data* is None, remove the file."""
    if data is None:
        discard(path)
        return
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o644
    except OSError as error:
        raise failed("write", path, error) from None
    temp = write_temp(os.path.dirname(path), data)
    os.chmod(temp, mode)
    commit(temp, path)


def release(descriptor: int) -> None:
    """Close a file that was only read, locked or synced. Ignore errors: nothing was written."""
    try:
        os.close(descriptor)
    except OSError:
        return


def write_temp(directory: str, data: bytes) -> str:
    """Write *data* to a new file in *directory*, sync it, and return its path. Nothing is left if this fails."""
    global _files_made
    _files_made += 1
    path = f"{directory}/{os.getpid()}.{_files_made}.{os.urandom(6).hex()}"
    try:
        descriptor = os.open(path, _TEMP, 0o600)
    except OSError as error:
        raise failed("write", path, error) from None
    try:
        try:
            write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        discard(path)
        raise failed("write", path, error) from None
    except BaseException:
        discard(path)
        raise
    return path


class Written:
    """A new file in *directory* with *data*, synced to the disk. A `with` block gets its path, and must move the file
    to its final path. If the block fails, the file is removed.

    Raises:
        StorageFailed: The system refused; nothing is left behind.
    """

    def __init__(self, directory: str, data: bytes) -> None:
        self.path = write_temp(directory, data)

    def __enter__(self) -> str:
        return self.path

    def __exit__(self, failure: object, *_: object) -> None:
        if failure is not None:
            discard(self.path)


def replace_unsynced(path: str, data: bytes) -> None:
    """Replace the content of a file in one step, so that no reader sees an incomplete file. Only the user may read the
    file. Make its directory if it is missing. A power cut may undo the change. If the system refuses, raise OSError.
    """
    directory, name = os.path.split(path)
    os.makedirs(directory, 0o700, exist_ok=True)
    temp = f"{directory}/.{name}.{os.getpid()}"
    descriptor = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(temp, path)
    except OSError:
        discard(temp)
        raise


def overwrite_beginning(temp: str, data: bytes) -> None:
    """Overwrite the beginning of the file *temp* with *data*, without syncing it to the disk."""
    try:
        descriptor = os.open(temp, _OVERWRITE)
        try:
            write_all(descriptor, data)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise failed("write", temp, error) from None


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of *data*, even if the system takes only a part of it at a time."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def discard(path: str) -> None:
    """Remove a file that is no longer needed. Errors are ignored."""
    try:
        os.unlink(path)
    except OSError:
        return


def commit(temp: str, path: str) -> None:
    """Move the file *temp* to *path*, and make the move durable.

    Raises:
        StorageFailed: The system refused to move the file.
        OutcomeUnknown: The file was moved, but the disk did not confirm it.
    """
    put(temp, path)
    confirm(os.path.dirname(path), path)


def put(temp: str, path: str) -> None:
    """Move the file *temp* to *path*; if that fails, remove *temp*. The move is durable once `confirm` returns."""
    try:
        os.rename(temp, path)
    except OSError as error:
        discard(temp)
        raise failed("write", path, error) from None


def confirm(directory: str, path: str) -> None:
    """Make the entries of *directory* durable. The error names *path*, the entry that was changed or is relied upon."""
    try:
        sync_directory(directory)
    except OSError as error:
        raise errors.OutcomeUnknown(
            f"{path} was changed, but the disk did not confirm it: {error.strerror}",
            "Repeat the command: it is safe, and shows whether the change was made.",
        ) from None


def sync_directory(path: str) -> None:
    """Sync the entries of a directory to the disk. Without this, Linux may keep them in memory only."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        release(descriptor)


def make_directories(path: str, root: str) -> None:
    """Make *path* and the missing directories above it, and make the entry of each directory durable.

    A directory that exists may not be durable yet, because another process is making it or was killed while it did so.
    A directory with a lock file is durable, because the lock file is made later.

    Directories above *root* get the mode that the user's umask sets. Only the user may access *root* and directories
    below it.
    """
    if os.path.isdir(path) and (not path.startswith(root) or os.path.lexists(f"{path}/.lock")):
        return
    parent = os.path.dirname(path)
    if parent and parent != path:
        make_directories(parent, root)
    try:
        os.mkdir(path, 0o700 if path.startswith(root) else 0o777)
    except FileExistsError:
        if not os.path.isdir(path):
            raise errors.StorageFailed(f"{path} is not a directory", "Move it away.") from None
    except OSError as error:
        raise failed("make", path, error) from None
    try:
        sync_directory(path)
        sync_directory(parent or ".")
    except OSError as error:
        if path != root or error.errno != errno.EACCES:  # the root may be in a place that its owner can't look into
            raise failed("make", path, error) from None


def names_in(path: str) -> list[str]:
    """Return the names in a directory, in any order; an empty list if the directory does not exist."""
    try:
        return os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise failed("list", path, error) from None


def refuse_taken(directory: str, file_name: str, what: str) -> None:
    """Raise an error if the directory already has a file with this *file_name*, even in a different case. *what* names
    the record in the error.
    """
    if any(name.lower() == file_name.lower() for name in names_in(directory)):
        # The caller may rely on the record that exists, even if its writer was killed before it was durable.
        confirm(directory, f"{directory}/{file_name}")
        raise errors.AlreadyExists(f"there is a {what} already", "Choose another name.")


def failed(doing: str, path: str, error: OSError) -> errors.StorageFailed:
    """Return an error that says what the system refused and what helps. *doing* is a verb, and *path* its object."""
    return errors.StorageFailed(f"can't {doing} {path}: {error.strerror or error}", _REMEDIES.get(error.errno or 0, ""))


_REMEDIES = {
    errno.ENOSPC: "The disk is full: make room and repeat the command.",
    errno.EDQUOT: "The quota is used up: make room and repeat the command.",
    errno.EROFS: "The disk is read-only: reading works, changing does not. See --root.",
    errno.EACCES: "Check the owner and the mode of the directory, or choose another with --root.",
    errno.EPERM: "Check the owner and the mode of the directory, or choose another with --root.",
    errno.EIO: "The disk reports an error: check the disk before you repeat the command.",
    errno.ENOTDIR: "A file stands where a directory is needed: move it away.",
    errno.EEXIST: "A file or a broken link stands where a directory is needed: move it away.",
    errno.EMFILE: "Too many files are open: close some, or raise the limit with ulimit -n.",
    errno.ENFILE: "Too many files are open on this machine.",
    errno.EFBIG: "The file would be larger than the limit: see ulimit -f.",
}


_README = """\
This directory holds the teams, tasks and messages of `teams`, as JSON files to read with cat and jq.

teams/<team>/team.json           the team and its members
teams/<team>/messages/           one file a message, never changed; of a closed team, many in packed.json
teams/<team>/inboxes/            what each member has read and handled
tasks/<team>/task-<n>.json       one file a task
index/                           derived, for searching; may be removed
config.json                      optional: permissions, roles, defaults (see the project's README)

The program takes a lock on `.lock` before it changes a file beside it. Edit a file by hand only while nothing runs.
"""
_NETWORK = (" - nfs", " - cifs", " - smb", " - fuse", " - 9p ", " - ceph", " - afs")


def check_owner(root: str) -> None:
    """Refuse a root that belongs to another user, or that other users may write to. A missing root is accepted.

    Raises:
        NotAllowed: Another user could write files there, and this process would trust them.
    """
    try:
        state = os.stat(root)
    except FileNotFoundError:
        return
    except OSError as error:
        raise failed("read", root, error) from None
    if not stat.S_ISDIR(state.st_mode):
        raise errors.StorageFailed(f"{root} is not a directory", "Choose another with --root.")
    if hasattr(os, "geteuid") and state.st_uid != os.geteuid():
        raise errors.NotAllowed(f"{root} belongs to another user", "Choose your own with --root.")
    if state.st_mode & 0o022:
        raise errors.NotAllowed(f"others may write to {root}", f"Run: chmod go-w {root}")


def prepare_root(root: str) -> None:
    """Make the root if it is missing, and check that it is on a local disk.

    Raises:
        StorageFailed: The root can't be made, or is on a network file system, where locks do not exclude other
            machines.
    """
    if not os.path.isdir(f"{root}/tmp") or not os.path.lexists(f"{root}/README"):
        make_directories(f"{root}/tmp", root)
        make_directories(f"{root}/teams", root)
        commit(write_temp(f"{root}/tmp", _README.encode()), f"{root}/README")  # last, since it shows that all is made
    if network := network_file_system(root):
        raise errors.StorageFailed(
            f"{root} is on {network}, where locks do not exclude other machines", "Choose a local disk with --root."
        )


def network_file_system(path: str) -> str:
    """Return the type of the network file system on which *path* is; empty if *path* is on a local disk."""
    try:
        if os.major(os.stat(path).st_dev):  # on a device of this machine; network file systems have none
            return ""
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            table = file.read()
    except OSError:
        return ""
    if not any(mark in table for mark in _NETWORK):
        return ""
    # The path is on the file system with the longest mount point above it; if several have this point, on the last.
    real_path = os.path.realpath(path)
    longest, line_of_path = -1, ""
    for line in table.splitlines():
        mount_point = line.split(" ")[4].replace("\\040", " ")
        is_above_path = f"{real_path}/".startswith(mount_point.rstrip("/") + "/")
        if is_above_path and len(mount_point) >= longest:
            longest, line_of_path = len(mount_point), line
    if not any(mark in line_of_path for mark in _NETWORK):
        return ""
    return line_of_path.partition(" - ")[2].split(" ")[0]  # the type of the file system


_STEP = 20_000_000
"""Two changes of a file that are at least this many nanoseconds apart give it different times. Kernels count file times
in steps of up to 10 ms.
"""
_COARSE_STEP = 2_100_000_000
"""The same as `_STEP` for file systems whose times are whole seconds, or even numbers of seconds."""
_REMEMBERED = 1024
_LARGEST = 64 * 1024
"""The size in bytes of the largest file that is remembered. All remembered files together take at most 64 MB."""


class Contents:
    """The contents of the files that this process read or wrote, by path.

    A file counts as unchanged as long as its inode, size and times are the same. Two changes in quick succession can
    leave the same times. So a file that had changed just before it was read is read again the next time. Records are
    not kept, because callers may change them.
    """

    def __init__(self) -> None:
        self._read: dict[str, tuple[tuple[int, ...], bytes]] = {}
        """The state and the bytes of each file that was read. Files that had changed just before are left out."""
        self._valid: dict[str, tuple[bytes, list[str] | None]] = {}
        """The bytes of each valid record, and its marks. The marks are None unless this process wrote the record."""

    def read(self, path: str) -> bytes:
        """Return all bytes of a file, as it is now."""
        state, data = self._read.get(path, (None, b""))
        if state and state == _state_of(path):
            return data
        began = time.time_ns()
        data, stat_result = read_with_state(path)
        step = _STEP if stat_result.st_ctime_ns % 1_000_000_000 else _COARSE_STEP
        is_long_unchanged = stat_result.st_ctime_ns + step < began  # so a further change would show in its times
        if len(data) <= _LARGEST and is_long_unchanged:
            if len(self._read) >= _REMEMBERED:
                self._read.clear()
            self._read[path] = _state(stat_result), data
        return data

    def decode(self, data: bytes, kind: Kind[R], key: str, path: str) -> R:
        """Return the record of the file at *path*, whose bytes are *data*. If this process found the same bytes valid
        at *path* before, or wrote them there, they are not checked again.
        """
        if self.is_valid(path, data):
            return decode_unchecked(data, kind)
        record = decode(data, kind, key, path)
        if has_heading(data, kind, key):  # `decode_unchecked` needs it
            self.remember(path, data)
        return record

    def is_valid(self, path: str, data: bytes) -> bool:
        """Whether *data* are the bytes that this process last found valid, or wrote, at *path*."""
        remembered = self._valid.get(path)
        return remembered is not None and remembered[0] == data

    def marks(self, path: str, data: bytes) -> list[str] | None:
        """Return the marks by which the record with the bytes *data* is found. None if this process did not write the
        record, and so does not know its marks.
        """
        return self._valid[path][1] if self.is_valid(path, data) else None

    def remember(self, path: str, data: bytes, marks: list[str] | None = None) -> None:
        """Remember that the file at *path* has the bytes *data*, and that they are a valid record. *marks* are the
        marks by which this record is found; None if they are not known.
        """
        if len(data) <= _LARGEST:
            if len(self._valid) >= _REMEMBERED:
                self._valid.clear()
            self._valid[path] = data, marks


def _state_of(path: str) -> tuple[int, ...] | None:
    try:
        return _state(os.lstat(path))
    except OSError:  # the attempt to read the file says what is wrong
        return None


def _state(result: os.stat_result) -> tuple[int, ...]:
    return result.st_ino, result.st_size, result.st_mtime_ns, result.st_ctime_ns
