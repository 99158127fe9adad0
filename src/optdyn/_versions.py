"""Versions of installed packages."""

from importlib.metadata import PackageNotFoundError, version


def installed_version(package: str) -> str | None:
    """Version of a package; None if it is not installed (or run from a source tree that never was)."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
