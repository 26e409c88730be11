"""A conversation as the one text that the program reads, and its images as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attrs import frozen
from skillopt_kernel.models.requests import ImagePart, Message

RULE = "\n\n---\n\n"
"""Between two messages."""

PREFACE = (
    "This comes from a program, not from a person at a terminal. Reply with all that is asked for below, at the length "
    "that it needs, and with nothing else: the reply is read as it stands, and nobody sees anything beside it."
)
"""Stands before everything: Copilot's own instructions ask for short replies to a developer."""

ENDINGS = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}


@frozen
class Prompt:
    """text: what the program reads; images: name of a file -> its content, in order."""

    text: str
    images: dict[str, bytes]


def prompt_of(messages: Sequence[Message]) -> Prompt:
    """The prompt of a conversation: instructions first, then each message, marked by who said it if not the user."""
    images: dict[str, bytes] = {}
    system = [_text(message, images) for message in messages if message.role == "system"]
    others = [message for message in messages if message.role != "system"]
    said = [_mark(message) + _text(message, images) for message in others]
    return Prompt(RULE.join([PREFACE, *(text for text in (*system, *said) if text.strip())]), images)


def place_images(images: dict[str, bytes], folder: Path) -> list[str]:
    """Write the images into a folder, and return the arguments that attach them."""
    arguments = []
    for name, data in images.items():
        (folder / name).write_bytes(data)
        arguments += ["--attachment", str(folder / name)]
    return arguments


def _mark(message: Message) -> str:
    return "" if message.role == "user" else f"[{message.role}]\n"


def _text(message: Message, images: dict[str, bytes]) -> str:
    if isinstance(message.content, str):
        return message.content
    parts = []
    for part in message.content:
        if isinstance(part, ImagePart):
            name = f"image-{len(images) + 1}{ENDINGS.get(part.media_type, '')}"
            images[name] = part.data
            parts.append(f"[the attached file {name}]")
        else:
            parts.append(part.text)
    return "\n".join(parts)
