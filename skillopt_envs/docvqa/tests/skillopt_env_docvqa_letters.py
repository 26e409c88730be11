"""Pages drawn for the tests, with text that can be read, and data files of the published form about them."""

import hashlib
import json
import logging
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont
from skillopt_env_docvqa.settings import DocVQASettings
from skillopt_kernel.config.schema import EnvSettings
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.plugins.discovery import make_driver

LETTERS = [("12th May 1971", "$1,250.00"), ("4/4/99", "0.50"), ("June 3, 1988", "(1993)"), ("1/8/93", "1 of 12")]


def draw(path: Path, lines, size=(640, 400), mode="L") -> Path:
    """A page with these lines of text, in the format that the file's ending names."""
    page = Image.new(mode, size, "white")
    pen = ImageDraw.Draw(page)
    for number, line in enumerate(lines):
        pen.text((40, 40 + 50 * number), line, fill="black", font=ImageFont.load_default(28))
    path.parent.mkdir(parents=True, exist_ok=True)
    page.save(path)
    return path


def noisy_bytes(count: int) -> bytes:
    """Bytes that cannot be compressed, the same each time."""
    return b"".join(hashlib.sha256(str(n).encode()).digest() for n in range(count // 32 + 1))[:count]


def noise(path: Path, size=(500, 400)) -> Path:
    """A grey page whose file is about as large as it has pixels."""
    Image.frombytes("L", size, noisy_bytes(size[0] * size[1])).save(path)
    return path


def row(number: int, **changes):
    """An item of the published form; its page is `images/q<number>_d<number>.png`."""
    date, amount = LETTERS[number % len(LETTERS)]
    question, answer = ("What is the date?", date) if number % 2 else (f"What is the total on letter {number}?", amount)
    return {
        "id": str(number),
        "questionId": str(number),
        "docId": str(number),
        "question": question,
        "answers": [answer],
        "topic": "form" if number % 2 else "table/list",
        "image_path": f"images/q{number}_d{number}.png",
        **changes,
    }


def draw_row(folder: Path, number: int) -> None:
    date, amount = LETTERS[number % len(LETTERS)]
    draw(folder / f"images/q{number}_d{number}.png", [f"Letter {number}", f"Date: {date}", f"Total: {amount}"])


def write_split(folder: Path, train=4, selection=4, test=2) -> Path:
    """A folder as `skillopt data docvqa` writes it: JSON files in train, val and test, and the pages in images."""
    number = 0
    for part, count in (("train", train), ("val", selection), ("test", test)):
        rows = [row(number + place) for place in range(count)]
        for each in rows:
            draw_row(folder, int(each["id"]))
        number += count
        (folder / part).mkdir(parents=True, exist_ok=True)
        (folder / part / "items.json").write_text(json.dumps(rows, indent=1), "utf-8")
    return folder


def environment(common=None, logger=None, **settings):
    """The environment as a run makes it."""
    context = DriverContext(logger or logging.getLogger("test"), common=common or EnvSettings(name="docvqa"))
    return make_driver("env", "docvqa", DocVQASettings(**settings), context)


def over(folder: Path, **settings):
    """The environment over a split folder."""
    return environment(EnvSettings(name="docvqa", split_mode="split_dir", split_dir=folder), **settings)


def turned(path, kind, orientation):
    """A picture of 400 x 200 pixels as it is stored, dark at its left, that is to be turned as EXIF numbers it."""
    image = Image.new("L", (400, 200), "white")
    image.paste(0, (0, 0, 100, 200))
    exif = Image.Exif()
    exif[0x0112] = orientation
    image.save(path, kind, exif=exif)
    return path


def pictures(path, kind, count):
    """A file of several pictures, each darker than the one before."""
    first, *others = (Image.new("L", (30, 20), 250 - 50 * number) for number in range(count))
    first.save(path, kind, save_all=True, append_images=others)
    return path
