"""The library, and how a call of it becomes a result or an exception."""

from __future__ import annotations

import contextlib
import os
import pathlib
import threading
import weakref
from typing import Any, Iterator, Optional

from ._binding import ffi as _ffi
from ._headers import STATUSES

FOLDER = pathlib.Path(__file__).resolve().parent
_NAMES = {value: name for name, value in STATUSES.items()}

ffi: Any = _ffi
lib: Any = ffi.dlopen(str(FOLDER / "lib" / "libdpinfer_full.so"))


class Error(Exception):
    """What the library says when it cannot do what was asked.

    status: the name of its code, as "ARG" (dpinfer/status.h). offset: where in a file the fault
    was found, in bytes, or None.
    """

    status = ""
    release: Any = None  # of a run that failed: what was released

    def __init__(self, message: str, offset: Optional[int] = None) -> None:
        super().__init__(message)
        self.offset = offset


class ArgumentError(Error, ValueError):
    """A value is not allowed: the message has its name, what was found and what is allowed."""


class OutOfMemory(Error, MemoryError):
    """There is not enough memory."""


class FileError(Error, OSError):
    """A file cannot be read or written."""


class FormatError(Error, ValueError):
    """A file is malformed; `offset` says where, if it is known."""


class Unsupported(Error):
    """Not supported, or not proven: the message says why."""


class LimitError(Error):
    """A limit was exceeded."""


class EntropyError(Error):
    """The operating system gave no randomness."""


class NumericError(Error, ArithmeticError):
    """A number that must be finite is not."""


class BudgetExceeded(Error):
    """The privacy budget does not allow this.

    spent, asked, left: what the ledger's dataset was charged, what this would add, and what is
    left, as Renyi divergences of the dataset's order; None where no ledger is asked.
    """

    spent: Optional[float] = None
    asked: Optional[float] = None
    left: Optional[float] = None


class StateError(Error):
    """Called in the wrong order, or from two threads at once."""


class Cancelled(Error):
    """The work was cancelled."""


class SystemFailure(Error):
    """The system failed."""


_ERRORS = {
    "ARG": ArgumentError, "MEMORY": OutOfMemory, "IO": FileError, "FORMAT": FormatError,
    "UNSUPPORTED": Unsupported, "LIMIT": LimitError, "ENTROPY": EntropyError,
    "NUMERIC": NumericError, "BUDGET": BudgetExceeded, "STATE": StateError,
    "CANCELLED": Cancelled, "SYSTEM": SystemFailure,
}
for _status, _error in _ERRORS.items():
    _error.status = _status

_interrupted = threading.local()


def keep_error(kind: Any, error: Any, traceback: Any) -> None:
    """What a function of Python has raised that the library called: failure() raises it again."""
    _interrupted.error = error


def _cancel(user: Any) -> int:
    """Lets Python see a signal in the middle of a long call: its exception ends that call."""
    return 0


cancel: Any = ffi.callback("int32_t(void *)", _cancel, error=1, onerror=keep_error)


def status_name(status: int) -> str:
    return _NAMES.get(status, "DPI_STATUS_UNKNOWN")[len("DPI_STATUS_"):]


def failure(status: int, err: Any) -> BaseException:
    """The exception of a status that is not OK: what a signal has raised meanwhile goes first."""
    raised: Optional[BaseException] = getattr(_interrupted, "error", None)
    if raised is not None:
        _interrupted.error = None
        return raised
    name = status_name(status)
    offset = None if err.offset == 2**64 - 1 else int(err.offset)
    return _ERRORS.get(name, Error)(text(err.message), offset)


def call(function: Any, *args: Any) -> None:
    """Calls a function of the library whose last argument is a dpi_error."""
    err = ffi.new("dpi_error *")
    status = function(*args, err)
    if status != 0:
        raise failure(status, err)


def new(struct: str) -> Any:
    """A struct of the library with its defaults, of the size that the headers here have."""
    made = ffi.new(struct + " *")
    getattr(lib, struct + "_init_size")(made, ffi.sizeof(struct))
    return made


def text(value: Any, n_bytes: int = -1) -> str:
    """A string of C. What is no UTF-8 becomes U+FFFD."""
    if value == ffi.NULL:
        return ""
    data: bytes = ffi.string(value) if n_bytes < 0 else ffi.buffer(value, n_bytes)[:]
    return data.decode("utf-8", "replace")


def taken(value: Any, private: bool = False) -> str:
    """The same of a string that is ours, which is freed."""
    result = text(value)
    (lib.dpi_private_free if private else _libc.free)(value)
    return result


def path_bytes(path: Any) -> bytes:
    """A path as C has it. Raises TypeError, ArgumentError."""
    try:
        data = os.fsencode(path)
    except UnicodeEncodeError:
        data = b"\0"
    if b"\0" in data:
        raise ArgumentError("a path has a NUL, or what no name of a file can have")
    return data


class _Free:
    """free() of the C library, for strings that the library has made with malloc."""

    def __init__(self) -> None:
        import cffi

        c = cffi.FFI()
        c.cdef("void free(void *);")
        self._c = c.dlopen(None)
        self.free = self._c.free


_libc: Any = _Free()


class Handle:
    """An object of the library, which ends with this one. One thread at a time uses it."""

    def __init__(self, pointer: Any, free: Any, *needs: Handle) -> None:
        self._pointer = ffi.gc(pointer, free)
        self._needs = needs  # what must outlive it
        self._users: weakref.WeakSet[Handle] = weakref.WeakSet()
        self._lock = threading.Lock()
        for need in needs:
            need._users.add(self)

    def close(self) -> None:
        """Ends it now, and wipes what it holds. A second time nothing happens.

        Raises StateError while another open object needs it.
        """
        for user in self._users:
            if user._pointer is not None:
                raise StateError(f"{type(self).__name__}: an open {type(user).__name__} needs it")
        with self._using():
            if self._pointer is not None:
                ffi.release(self._pointer)
                self._pointer = None
                self._needs = ()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    @contextlib.contextmanager
    def _using(self) -> Iterator[Any]:
        """The C object, for this thread alone. StateError after close(), or for a second thread."""
        if not self._lock.acquire(blocking=False):
            raise StateError(f"{type(self).__name__}: found a call from a second thread, allowed "
                             "is one at a time")
        try:
            yield self._pointer
        finally:
            self._lock.release()

    @property
    def c(self) -> Any:
        """The C object. StateError after close()."""
        if self._pointer is None:
            raise StateError(f"{type(self).__name__}: it is closed")
        return self._pointer
