"""Output files: checked before any work is done, and written whole or not at all."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from optdyn.cli._errors import BadInputError


def check_extension(option: str, path: Path, known: Sequence[str]) -> None:
    """Raise unless `path` ends in one of the `known` extensions.

    Arguments:
        option: the option that named the file, for the message.
        path: the file to be written.
        known: extensions with their dot.
    """
    if path.suffix.lower() not in known:
        found = f"ends in '{path.suffix}'" if path.suffix else "has no extension"
        raise BadInputError(f"{option} {path} {found}; use {' or '.join(known)}")


def check_distinct(paths: Sequence[Path]) -> None:
    """Raise if two outputs are the same file."""
    resolved = [os.path.realpath(path) for path in paths]
    for i, path in enumerate(resolved):
        if path in resolved[:i]:
            raise BadInputError(f"{paths[i]} is named for two outputs; give each its own file")


def prepare(option: str, path: Path) -> None:
    """Make sure that `path` can be written, by creating its folder and a file in it that is removed at once.

    Trying it is the only check that also knows about read-only file systems and quotas.
    """
    if path.is_dir():
        raise BadInputError(f"{option} {path} is a folder; name a file in it")
    if path.exists() and not os.access(path, os.W_OK):
        raise BadInputError(
            f"{option} {path} is write-protected; choose another file or change its permissions"
        )
    target = Path(os.path.realpath(path))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".optdyn-"):
            pass
    except OSError as error:
        raise BadInputError(
            f"{option} {path} cannot be written ({error.strerror}); choose a folder that you may write to"
        ) from None


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Give the block a temporary name beside `path`, and move that file to `path` if the block succeeds."""
    target = Path(os.path.realpath(path))  # a symbolic link stays one
    temporary = target.with_name(f".{target.stem}.{os.getpid()}.tmp{target.suffix}")
    try:
        yield temporary
        os.replace(temporary, target)
    except OSError as error:
        raise BadInputError(
            f"{path} could not be written ({error.strerror}); free some space or choose another file"
        ) from None
    finally:
        temporary.unlink(missing_ok=True)
