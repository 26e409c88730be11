"""A reply of Responses as the server-sent events that clients which ask for a stream read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def events(told: Mapping[str, Any]) -> bytes:
    """A whole response as events, in the order in which an endpoint sends them."""
    numbered = ({**each, "sequence_number": number} for number, each in enumerate(_events(told)))
    return b"".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in numbered)


def _events(told: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    begun = {**told, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    for index, item in enumerate(told["output"]):
        empty: dict[str, Any] = {"content": []} if item["type"] == "message" else {"arguments": ""}
        yield {
            "type": "response.output_item.added",
            "output_index": index,
            "item": {**item, "status": "in_progress", **empty},
        }
        about = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            for number, part in enumerate(item["content"]):
                yield {"type": "response.output_text.delta", **about, "content_index": number, "delta": part["text"]}
        else:
            yield {"type": "response.function_call_arguments.delta", **about, "delta": item["arguments"]}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    end = "response.completed" if told["status"] == "completed" else "response.incomplete"
    yield {"type": end, "response": dict(told)}
