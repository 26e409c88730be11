"""Versions read from a distribution's metadata when somebody asks, never at import."""

from collections.abc import Callable


def version_of(distribution: str) -> str:
    """The installed version of `distribution`, from its metadata.

    Raises `importlib.metadata.PackageNotFoundError` when it is not installed.
    """
    from importlib.metadata import version

    return version(distribution)


def lazy_version(distribution: str) -> Callable[[str], str]:
    """A module `__getattr__` that answers `__version__` and nothing else.

    `importlib.metadata` costs about 30 ms to import, so no module of ours reads its version unasked.
    """

    def __getattr__(name: str) -> str:
        if name == "__version__":
            return version_of(distribution)
        raise AttributeError(f"module {distribution.replace('-', '_')!r} has no attribute {name!r}")

    return __getattr__
