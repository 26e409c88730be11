"""The settings of the hook plugin `data_audit`."""

from __future__ import annotations

import re
from typing import Any

import attrs
from attrs import field, frozen


def _acknowledged(_: object, attribute: attrs.Attribute[str], value: Any) -> None:
    if value not in ("", "all") and not (isinstance(value, str) and re.fullmatch(r"audit-[0-9a-f]{8}", value)):
        raise ValueError(
            f'must be the name that the audit printed, such as audit-1a2b3c4d, or "all" for whatever it finds, not '
            f"{value!r}"
        )


@frozen
class DataAuditSettings:
    """What of the audit's findings is accepted.

    acknowledged  the name of the audit whose findings you have seen and accept; other findings refuse the run again.
                  "all": whatever there is. Empty: nothing
    """

    acknowledged: str = field(default="", validator=_acknowledged)
