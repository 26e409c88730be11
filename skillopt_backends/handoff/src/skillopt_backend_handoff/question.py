"""A call as a Markdown file: readable for a person, and with blocks that a program can take apart again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
from attrs import frozen
from skillopt_kernel.models.call_text import describe_request
from skillopt_kernel.models.requests import ChatRequest, ImagePart, Message
from skillopt_kernel.store.files import make_folder, refused, safe_name, write_bytes

TEXT, STRUCTURED = ".answer.md", ".answer.json"
"""How the two kinds of answer files end."""

_STAGE = re.compile(r"^stage: .*$", re.MULTILINE)
_TILDES = re.compile(r"^~+", re.MULTILINE)


@frozen
class Question:
    """One call and its place: files that begin with `name`, in `folder` while it is open, then in its `answered`.

    call    what tells it from every other call of the run, the role aside; it is the same when a resumed run asks again
    """

    folder: Path
    role: str
    model: str
    request: ChatRequest

    @property
    def call(self) -> str:
        """As the kernel names it; what has no name, since it belongs to no run, is named by what it asks."""
        return self.request.call or describe_request("handoff", self.model, self.request).digest

    @property
    def name(self) -> str:
        return safe_name(f"{self.role}-{self.call}")

    def text(self) -> str:
        """The whole file. Nothing in it depends on when or where it is written."""
        return "\n".join([*self._head(), *self._task(), "", *self._asked()]) + "\n"

    def asks(self, text: str) -> bool:
        """Whether `text`, a file that was written earlier, asks this. What the reply is for (the stage) may differ."""
        return _STAGE.sub("", text) == _STAGE.sub("", self.text())

    def write(self) -> None:
        """Write the file, and those of its images, if it is not there as it should be."""
        make_folder(self.folder)
        for name, image in self._images():
            write_bytes(self.folder / name, image.data)
        data, path = self.text().encode("utf-8"), self.folder / f"{self.name}.md"
        if read_if_there(path) != data:
            write_bytes(path, data)

    def files(self) -> list[Path]:
        """What of it lies in its folder: its own file and its images."""
        names = [f"{self.name}.md", *(name for name, _ in self._images())]
        return [path for name in names if (path := self.folder / name).is_file()]

    def _head(self) -> Iterator[str]:
        yield "---"
        yield f"role: {self.role}"
        yield f"stage: {self.request.stage or 'none'}"
        yield f"call: {json.dumps(self.call)}"
        yield f"model: {json.dumps(self.model)}"
        yield f"answer: {self.name}{TEXT}"
        for name in ("max_tokens", "effort", "temperature", "seed"):
            if (value := getattr(self.request, name)) is not None:
                yield f"{name}: {json.dumps(value)}"
        yield "---"

    def _task(self) -> Iterator[str]:
        yield f"\n# A call of the {self.role} that waits for its answer\n"
        yield (
            "Answer the messages below as the model would, by what they say and by nothing else, and write the reply, "
            f"without anything around it, as UTF-8 into the file `{self.name}{TEXT}` beside this one. Then run the "
            "command of the run again. Do not change this file: an answer to another question is not taken."
        )
        if self.request.tools:
            yield (
                f"\nA reply that calls tools is written as JSON into `{self.name}{STRUCTURED}` instead: "
                '`{"text": "", "tool_calls": [{"name": "...", "arguments": {}}]}`.'
            )

    def _asked(self) -> Iterator[str]:
        for number, message in enumerate(self.request.messages):
            yield from self._message(number, message)
        if self.request.tools:
            tools = [attrs.asdict(tool) for tool in self.request.tools]
            yield f"## Tools that may be called ({self.request.tool_choice})\n"
            yield block("tools", json.dumps(tools, ensure_ascii=False, indent=1))
        if self.request.schema is not None:
            yield "## JSON schema that the reply must follow\n"
            yield block("schema", json.dumps(self.request.schema, ensure_ascii=False, indent=1))

    def _message(self, number: int, message: Message) -> Iterator[str]:
        yield f"## {message.role.capitalize()}\n"
        about = message.role + (f" {json.dumps(message.tool_call_id)}" if message.tool_call_id is not None else "")
        parts = [message.content] if isinstance(message.content, str) else message.content
        for at, part in enumerate(parts):
            if isinstance(part, ImagePart):
                yield f"![{message.role}]({self._image_name(number, at, part)})\n"
            else:
                yield block(about, part if isinstance(part, str) else part.text)
        if message.tool_calls:
            calls = [attrs.asdict(call) for call in message.tool_calls]
            yield block(f"{message.role} tool_calls", json.dumps(calls, ensure_ascii=False))

    def _images(self) -> Iterator[tuple[str, ImagePart]]:
        for number, message in enumerate(self.request.messages):
            for at, part in enumerate(message.content):
                if isinstance(part, ImagePart):
                    yield self._image_name(number, at, part), part

    def _image_name(self, number: int, at: int, image: ImagePart) -> str:
        # Its content is in the name, so that the text of the question says which image it was.
        digest: Any = describe_request("", "", ChatRequest((Message("user", (image,)),))).digest[:8]
        ending = re.sub(r"\W", "", image.media_type.rpartition("/")[2]) or "image"
        return f"{self.name}.{number + 1}-{at + 1}-{digest}.{ending}"


def block(about: str, text: str) -> str:
    """A fenced block of a text as it is; its fence is longer than any row of tildes at the start of a line in it."""
    fence = "~" * max(4, 1 + max(map(len, _TILDES.findall(text)), default=0))
    return f"{fence} {about}\n{text}\n{fence}\n"


def read_if_there(path: Path) -> bytes | None:
    """The bytes of a file, `None` when it is not there. Raises `RunDirectoryError` when it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise refused(path, error.strerror or error) from error
