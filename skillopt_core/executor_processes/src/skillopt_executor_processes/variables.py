"""Which environment variables a worker process gets: an allow-list, so that no credential is on it by oversight."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

NAMES = frozenset(
    """
    PATH HOME USER LOGNAME SHELL TERM TZ LANG LANGUAGE DISPLAY TMPDIR TEMP TMP VIRTUAL_ENV JAVA_HOME LD_LIBRARY_PATH
    CUDA_VISIBLE_DEVICES SSL_CERT_FILE SSL_CERT_DIR SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC PATHEXT USERPROFILE USERNAME
    HOMEDRIVE HOMEPATH APPDATA LOCALAPPDATA PROGRAMDATA NUMBER_OF_PROCESSORS
    """.split()  # noqa: SIM905 - one list of words, not thirty lines
)
"""What the system, Python and common programs work with."""

PREFIXES = ("LC_", "PYTHON", "XDG_", "DYLD_", "OMP_", "MKL_", "OPENBLAS_")


def variables_for_workers(environ: Mapping[str, str], more: Iterable[str]) -> dict[str, str]:
    """The variables on the list and those named in `more`, whatever the case of their names."""
    allowed = NAMES | {name.upper() for name in more}
    return {
        name: text for name, text in environ.items() if name.upper() in allowed or name.upper().startswith(PREFIXES)
    }
