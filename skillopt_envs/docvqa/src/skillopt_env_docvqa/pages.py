"""Page images: read from their files, held to limits of size, and told of in words."""

from __future__ import annotations

import hashlib
import io
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import frozen
from skillopt_kernel.errors import DataError

SENT_AS_STORED = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}
"""Formats that models take; a page in another one is sent as PNG."""

MODES = {"1": "black and white", "L": "grey", "LA": "grey", "I": "grey", "I;16": "grey", "F": "grey"}
ORIENTATION = 0x0112
"""EXIF's tag of how a picture is to be turned; 1: it is upright, 5 to 8: by a quarter."""

QUALITY = 90
"""Of a JPEG that is made where a PNG has too many bytes."""


DAMAGED = (
    OSError, EOFError, SyntaxError, ValueError, TypeError, LookupError, ArithmeticError, RuntimeError, struct.error,
    zlib.error,
)  # fmt: skip
"""What Pillow's many readers raise for files that are damaged."""


@frozen
class Limits:
    """What a page may measure: pixels of its longer side, bytes of its file; 0 means no limit."""

    side: int
    size: int


@frozen
class PageFacts:
    """What a page's file is.

    sha256         hex digits of the whole file's digest
    width, height  of the first picture, upright, in pixels; size: bytes of the file
    turned         whether the file has it turned or mirrored, and says so; pictures: how many it holds
    """

    sha256: str
    format: str
    mode: str
    width: int
    height: int
    size: int
    turned: bool = False
    pictures: int = 1

    def unfit(self, limits: Limits) -> str:
        """Why the page is not sent as it is stored, in words; "" where it is."""
        if beyond := self.beyond(limits):
            return beyond
        if self.pictures > 1:
            return f"the first of {self.pictures} pictures in the file"
        if self.turned:
            return "stored turned, which models do not look at"
        return "" if self.format in SENT_AS_STORED else f"models do not take {self.format}"

    def beyond(self, limits: Limits) -> str:
        """Which limit the stored page is beyond, in words; "" for none."""
        if limits.side and max(self.width, self.height) > limits.side:
            return f"{self.width:,} x {self.height:,} pixels, more than {limits.side:,} a side"
        if limits.size and self.size > limits.size:
            return f"{self.size:,} bytes, more than {limits.size:,}"
        return ""

    def told(self) -> str:
        """The page in words: its size, shape and colours."""
        shape = "landscape" if self.width > self.height else "portrait" if self.height > self.width else "square"
        colours = MODES.get(self.mode, "colour")
        several = f", the first of {self.pictures} pictures" if self.pictures > 1 else ""
        return f"{self.width:,} x {self.height:,} pixels, {shape}, {colours}, {self.format}{several}"


@frozen
class Page:
    """A page as it is sent. changed: what was done to it, in words; "" for one that is sent as it is stored."""

    data: bytes
    media_type: str
    facts: PageFacts
    changed: str = ""

    @property
    def suffix(self) -> str:
        return "." + self.media_type.removeprefix("image/").replace("jpeg", "jpg")

    def told(self) -> str:
        return f"{self.facts.told()}; {self.changed or 'sent as it is stored'}"


def page_facts(path: Path) -> PageFacts:
    """Read a page's header and digest. Raises `DataError` for a file that is no image, is damaged or was cut off."""
    data = _read(path)
    with _image(data, path) as image:
        facts = _facts(data, image)
        if facts.format == "PNG":
            image.verify()  # by its checksums
        else:
            image.draft(None, (1, 1))  # a JPEG can be read at an eighth of its size, which finds what is lacking too
            image.load()
    return facts


def prepared(path: Path, limits: Limits) -> Page:
    """The page as it is sent: as it is stored where models take it so, else as PNG or JPEG within `limits`.

    The same file and limits give the same bytes. Raises `DataError` as `page_facts` does.
    """
    data = _read(path)
    with _image(data, path) as image:
        facts = _facts(data, image)
        if not facts.unfit(limits):
            return Page(data, SENT_AS_STORED[facts.format], facts)
        return _made_smaller(image, facts, limits)


def _read(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"the page {path} cannot be read: {error.strerror}.") from error
    if data.startswith(b"%PDF"):
        raise DataError(f"the page {path} is a PDF document, not an image; save the page as PNG.")
    return data


@contextmanager
def _image(data: bytes, path: Path) -> Iterator[Any]:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data)) as image:
            yield image
    except UnidentifiedImageError as error:
        what = f"{len(data):,} bytes" if data else "empty"
        raise DataError(f"the page {path} is no image that can be read ({what}); save it as PNG or JPEG.") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise DataError(f"the page {path} has too many pixels to be opened; save it with fewer.") from error
    except DAMAGED as error:
        raise DataError(f"the page {path} is damaged: {error}. Replace the file.") from error


def _facts(data: bytes, image: Any) -> PageFacts:
    digest = hashlib.sha256(data).hexdigest()
    # Of a PNG, EXIF that stands behind the picture would be looked for by reading the whole of it.
    exif = image.getexif() if image.format != "PNG" or "exif" in image.info else {}
    size, orientation = image.size, exif.get(ORIENTATION, 1)
    turned = image.format != "TIFF" and orientation in range(2, 9)  # TIFF is turned as it is read
    width, height = reversed(size) if turned and orientation >= 5 else size
    pictures = getattr(image, "n_frames", 1)
    return PageFacts(digest, image.format or "", image.mode, width, height, len(data), turned, pictures)


def _made_smaller(image: Any, facts: PageFacts, limits: Limits) -> Page:
    """Scaled until it is within both limits; lossless unless it was stored as JPEG or is beyond the bytes so."""
    drawn = _drawable(image)
    scale = min(1.0, limits.side / max(drawn.size)) if limits.side else 1.0
    kind = "JPEG" if facts.format == "JPEG" else "PNG"
    while True:
        scaled = _scaled(drawn, scale)
        data = _encoded(scaled, kind)
        if not limits.size or len(data) <= limits.size:
            break
        if kind == "PNG":
            kind = "JPEG"
        else:
            # Bytes grow about as the area does; a little less than that, so that few rounds are needed.
            scale *= 0.95 * (limits.size / len(data)) ** 0.5
    return Page(data, SENT_AS_STORED[kind], facts, _changed(facts, scaled, kind, limits))


def _changed(facts: PageFacts, scaled: Any, kind: str, limits: Limits) -> str:
    done = [f"sent as {kind}"] if kind != facts.format else []
    if max(scaled.size) != max(facts.width, facts.height):
        done.append(f"scaled down to {scaled.width:,} x {scaled.height:,} pixels")
    if facts.turned:
        done.append("turned upright")
    return f"{' and '.join(done) or 'encoded anew'} ({facts.unfit(limits)})"


def _drawable(image: Any) -> Any:
    """The upright first picture of a file in a mode that can be scaled smoothly and saved as PNG and JPEG."""
    from PIL import Image, ImageOps

    upright = ImageOps.exif_transpose(image)
    upright.info.pop("icc_profile", None)  # may be larger than the page
    if upright.mode.startswith(("I", "F")):
        return _eight_bits(upright.convert("F"))
    if upright.mode in ("1", "L"):
        return upright.convert("L")
    if "A" in upright.getbands() or "transparency" in upright.info:
        clear = upright.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", clear.size, "white"), clear).convert("RGB")
    return upright.convert("RGB")


def _eight_bits(image: Any) -> Any:
    """A grey picture of more than 8 bits a pixel with 8; its range is told by its brightest pixel."""
    _, most = image.getextrema()
    factor = 1.0 if most <= 255 else 255 / max(most, 65_535)
    return image.point(lambda value: value * factor + 0.0).convert("L")


def _scaled(image: Any, scale: float) -> Any:
    from PIL import Image

    if scale >= 1.0:
        return image
    size = tuple(max(1, int(length * scale)) for length in image.size)
    return image.resize(size, Image.Resampling.LANCZOS)


def _encoded(image: Any, kind: str) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **({"quality": QUALITY} if kind == "JPEG" else {"optimize": True}))
    return buffer.getvalue()
