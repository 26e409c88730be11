"""Contexts made of documents, cut to a length."""

from __future__ import annotations

from skillopt_kernel.store.patterns import clipped

CUT_MARK = "\n...[truncated]"


def documents(context: str, marker: str = "[DOC]") -> list[str]:
    """`context` cut before each `marker`; joined, the pieces are `context` again. Text before the first is one."""
    head, *rest = context.split(marker)
    return ([head] if head else []) + [marker + piece for piece in rest]


def truncated_documents(context: str, limit: int, marker: str = "[DOC]") -> str:
    """As many whole documents of `context` from its start as fit in `limit` characters; 0: no limit.

    When not even the first fits, the first `limit` characters and a mark that says so.
    """
    if limit <= 0 or len(context) <= limit:
        return context
    kept = ""
    for document in documents(context, marker):
        if len(kept) + len(document) > limit:
            break
        kept += document
    return kept if kept.strip() else clipped(context, limit) + CUT_MARK
