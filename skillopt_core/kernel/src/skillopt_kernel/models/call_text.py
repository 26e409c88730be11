"""A call as the ledger keeps it: its key, its request as a document with a digest, and its reply, there and back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
from attrs import field, frozen

from skillopt_kernel.models.requests import (
    AgentJob,
    AgentResult,
    ChatReply,
    ChatRequest,
    ImagePart,
    Message,
    whole_characters,
)
from skillopt_kernel.store.fields import structure
from skillopt_kernel.store.files import json_line

INLINE = 200
"""Characters: longer texts are stored once, by hash. A skill is in the requests of thousands of calls."""

_TEXT = "sha256"
"""The key of an object that stands for a stored text."""


@frozen
class CallKey:
    """Which call of its run this is.

    scope        whose call: an attempt's, or of one call site in a step or at an epoch's end. "" is nobody's:
                 such a call is recorded and never served
    ordinal      its number in the scope, from 0, in the order of the asking code
    epoch, step  where its cost belongs; `None` where it belongs to none
    """

    scope: str = field(default="", converter=whole_characters)
    ordinal: int = 0
    epoch: int | None = None
    step: int | None = None


@frozen
class Asked:
    """What a request says, with all that can change its reply and nothing else.

    document  JSON; each long text in it is an object with its hash; contents: hash -> text in UTF-8
    digest    32 hex digits of SHA-256 over backend, model and document. Stage and deadline are not in it, of an
              image and of an agent's file there is the hash of its content, whatever its path is on this machine
    """

    document: dict[str, Any]
    contents: dict[str, bytes]
    digest: str


def describe_request(backend: str, model: str, request: ChatRequest | AgentJob) -> Asked:
    """The document and digest of a request or of an agent's job to `model` of `backend`."""
    contents: dict[str, bytes] = {}

    def kept(text: str) -> Any:
        if len(text) <= INLINE:
            return text
        data = text.encode("utf-8", "replace")
        name = _sha256(data)
        contents[name] = data
        return {_TEXT: name}

    document = _job(request, kept) if isinstance(request, AgentJob) else _request(request, kept)
    return Asked(document, contents, _sha256(json_line([backend, model, document])))


def _request(request: ChatRequest, kept: Callable[[str], Any]) -> dict[str, Any]:
    document: dict[str, Any] = {"messages": [_message(message, kept) for message in request.messages]}
    if request.tools:
        document["tools"] = kept(json.dumps([attrs.asdict(tool) for tool in request.tools], sort_keys=True))
        document["tool_choice"] = request.tool_choice
    if request.schema is not None:
        document["schema"] = kept(json.dumps(request.schema, sort_keys=True))
    for name in ("max_tokens", "effort", "temperature", "seed"):
        if (value := getattr(request, name)) is not None:
            document[name] = value
    return document


def _job(job: AgentJob, kept: Callable[[str], Any]) -> dict[str, Any]:
    document: dict[str, Any] = {"prompt": kept(job.prompt), "skill": kept(job.skill)}
    document["files"] = [_file(name, job.files[name]) for name in sorted(job.files)]
    return document | {"collect": list(job.collect), "edits": job.edits, "max_turns": job.max_turns}


def _file(name: str, file: bytes | Path) -> dict[str, Any]:
    data = file if isinstance(file, bytes) else file.read_bytes()
    return {"file": name, "content": _sha256(data), "bytes": len(data)}


def _message(message: Message, kept: Callable[[str], Any]) -> dict[str, Any]:
    content = message.content
    said: dict[str, Any] = {"role": message.role}
    if isinstance(content, str):
        said["content"] = kept(content)
    else:
        said["content"] = [_image(part) if isinstance(part, ImagePart) else kept(part.text) for part in content]
    if message.tool_calls:
        said["tool_calls"] = [attrs.asdict(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        said["tool_call_id"] = message.tool_call_id
    return said


def _image(part: ImagePart) -> dict[str, Any]:
    # Its bytes are in the data set; here it is enough to tell which image it was.
    return {"image": _sha256(part.data), "media_type": part.media_type, "bytes": len(part.data), "detail": part.detail}


def with_texts(value: Any, text_of: Callable[[str], str]) -> Any:
    """A document with each stored text in its place again."""
    if isinstance(value, dict):
        if set(value) == {_TEXT}:
            return text_of(value[_TEXT])
        return {key: with_texts(item, text_of) for key, item in value.items()}
    return [with_texts(item, text_of) for item in value] if isinstance(value, list) else value


def reply_document(reply: ChatReply | AgentResult) -> tuple[bytes, dict[str, bytes]]:
    """All of a reply as JSON, and by their hash the files that an agent brought back."""
    if isinstance(reply, ChatReply):
        return json_line(attrs.asdict(reply)), {}
    told = attrs.asdict(reply) | {"files": [_file(name, data) for name, data in reply.files.items()]}
    return json_line(told), {_sha256(data): data for data in reply.files.values()}


def read_reply(document: bytes, content_of: Callable[[str], bytes]) -> ChatReply | AgentResult:
    """The inverse of `reply_document`. Raises `ValueError` for anything else."""
    value = json.loads(document)
    if "message" not in value:
        return structure(value, ChatReply)
    files = {file["file"]: content_of(file["content"]) for file in value["files"]}
    return attrs.evolve(structure(value | {"files": {}}, AgentResult), files=files)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]
