"""The two ways of looking: tools in the corpus, and queries to a search service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from skillopt_kernel.models.requests import Message

from skillopt_env_officeqa.asking import Looking
from skillopt_env_officeqa.prompts import NO_SEARCHES, NO_TOOLS
from skillopt_env_officeqa.queries import search_queries
from skillopt_env_officeqa.tools import TOOLS, CorpusTools

if TYPE_CHECKING:
    from skillopt_kernel.interfaces import Target
    from skillopt_kernel.models.requests import ChatReply

    from skillopt_env_officeqa.web_search import WebSearch

MOST_CALLS = 16
"""Tool calls of one reply that are answered; the others are told to wait."""


def in_corpus(tools: CorpusTools) -> Looking:
    """Each tool call of a reply is answered, in order."""

    def follow(reply: ChatReply, target: Target) -> Sequence[Message]:
        answers = [tools.answer(call) for call in reply.tool_calls[:MOST_CALLS]]
        answers += ["[error: too many calls at once; ask again]"] * len(reply.tool_calls[MOST_CALLS:])
        calls = zip(reply.tool_calls, answers, strict=True)
        return [Message("tool", answer, tool_call_id=call.id) for call, answer in calls]

    return Looking("tool call", NO_TOOLS, follow, TOOLS)


def on_the_web(service: WebSearch, most: int) -> Looking:
    """The first `most` queries of a reply are searched for, and their results come back in one message."""

    def follow(reply: ChatReply, target: Target) -> Sequence[Message]:
        queries = search_queries(reply.text)
        told = [f"## Results for: {query}\n\n{service.search(query, target)}" for query in queries[:most]]
        if len(queries) > most:
            told.append(f"[only {most} queries of a turn are searched for; {len(queries) - most} were left out]")
        return [Message("user", "\n\n".join(told))] if told else []

    return Looking("list of queries", NO_SEARCHES, follow)
