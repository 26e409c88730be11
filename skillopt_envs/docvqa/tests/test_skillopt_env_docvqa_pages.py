import hashlib
import io
import zlib
from random import Random

import pytest
from PIL import Image
from skillopt_env_docvqa.pages import Limits, page_facts, prepared
from skillopt_env_docvqa_letters import draw, noise, noisy_bytes, pictures, turned
from skillopt_kernel.errors import DataError

NONE = Limits(0, 0)


def opened(page):
    image = Image.open(io.BytesIO(page.data))
    image.load()
    return image


@pytest.mark.parametrize(
    ("ending", "media"), [("png", "image/png"), ("jpg", "image/jpeg"), ("gif", "image/gif"), ("webp", "image/webp")]
)
def test_what_models_take_is_sent_byte_for_byte(tmp_path, ending, media):
    path = draw(tmp_path / f"p.{ending}", ["Total: $1,250.00"])
    page = prepared(path, Limits(640, path.stat().st_size))
    assert (page.data, page.media_type, page.changed) == (path.read_bytes(), media, "")
    assert page.facts == page_facts(path)
    assert page.facts.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_content_tells_the_format_and_not_the_name(tmp_path):
    draw(tmp_path / "p.jpg", ["x"])
    (tmp_path / "p.jpg").rename(tmp_path / "p.png")
    assert prepared(tmp_path / "p.png", NONE).media_type == "image/jpeg"


@pytest.mark.parametrize("ending", ["tif", "bmp", "ppm"])
def test_other_formats_are_sent_as_png(tmp_path, ending):
    path = draw(tmp_path / f"p.{ending}", ["Total: $1,250.00"])
    page = prepared(path, NONE)
    assert (page.media_type, opened(page).size) == ("image/png", (640, 400))
    assert opened(page).tobytes() == Image.open(path).tobytes()
    assert "sent as PNG (models do not take " in page.changed


def test_a_page_beyond_the_side_is_scaled_and_its_text_stays_smooth(tmp_path):
    path = draw(tmp_path / "p.png", ["Total: $1,250.00"], size=(1200, 600), mode="1")
    page = prepared(path, Limits(600, 0))
    assert opened(page).size == (600, 300)
    assert opened(page).mode == "L"
    assert len(set(opened(page).tobytes())) > 10, "grey edges: it was not sampled pixel by pixel"
    assert page.changed == "scaled down to 600 x 300 pixels (1,200 x 600 pixels, more than 600 a side)"
    assert page.told() == f"1,200 x 600 pixels, landscape, black and white, PNG; {page.changed}"


def test_a_page_beyond_the_bytes_becomes_jpeg_and_then_smaller(tmp_path):
    path = noise(tmp_path / "p.png")
    assert path.stat().st_size > 190_000
    as_jpeg = prepared(path, Limits(0, 180_000))
    assert (as_jpeg.media_type, opened(as_jpeg).size) == ("image/jpeg", (500, 400))
    assert as_jpeg.changed.startswith("sent as JPEG (")
    small = prepared(path, Limits(0, 20_000))
    assert len(small.data) <= 20_000
    assert 100 < opened(small).width < 300
    assert "sent as JPEG and scaled down to" in small.changed
    assert prepared(path, Limits(0, 20_000)) == small, "the same file and limits give the same bytes"
    assert len(prepared(path, Limits(0, 10_000)).data) <= 10_000


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "I;16", "F", "YCbCr"])
def test_every_kind_of_colours_can_be_scaled(tmp_path, mode):
    path = tmp_path / "p.tif"
    shades = Image.linear_gradient("L").resize((300, 200))
    if mode == "I;16":
        Image.frombytes("I;16", (2, 1), b"\x00\x00\xff\xff").resize((300, 200)).save(path)
    elif mode in ("LA", "PA"):
        path = tmp_path / "p.png"
        shades.convert("LA").save(path)
    else:
        shades.convert(mode).save(path)
    image = opened(prepared(path, Limits(100, 0)))
    assert max(image.size) == 100
    low, high = image.convert("L").getextrema()
    assert low < 60
    assert high > 190


def test_clear_parts_are_white_as_on_paper(tmp_path):
    Image.new("RGBA", (300, 200), (0, 0, 0, 0)).save(tmp_path / "p.png")
    assert opened(prepared(tmp_path / "p.png", Limits(100, 0))).getpixel((50, 30)) == (255, 255, 255)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "TIFF"])
@pytest.mark.parametrize(
    ("orientation", "size", "dark"),
    [(2, (400, 200), "right"), (3, (400, 200), "right"), (6, (200, 400), "top"), (8, (200, 400), "bottom")],
)
def test_a_scan_that_is_stored_turned_is_sent_upright(tmp_path, kind, orientation, size, dark):
    """Viewers turn it and models do not: its text would lie on its side."""
    page = prepared(turned(tmp_path / "p", kind, orientation), NONE)
    image = opened(page).convert("L")
    assert (image.size, (page.facts.width, page.facts.height)) == (size, size)
    assert image.getexif().get(0x0112, 1) == 1
    width, height = size
    places = {"right": (width - 9, 9), "left": (9, 9), "top": (9, 9), "bottom": (9, height - 9)}
    assert image.getpixel(places[dark]) < 60
    assert image.getpixel((width // 2, height // 2)) > 190
    if kind != "TIFF":
        assert page.changed.endswith("turned upright (stored turned, which models do not look at)")
    small = prepared(tmp_path / "p", Limits(100, 0))
    assert max(opened(small).size) == 100
    assert opened(small).width * height == opened(small).height * width


def test_a_scan_that_is_stored_upright_is_sent_as_it_is(tmp_path):
    path = turned(tmp_path / "p.jpg", "JPEG", 1)
    assert prepared(path, NONE).data == path.read_bytes()


@pytest.mark.parametrize("kind", ["TIFF", "GIF", "WEBP", "PNG"])
def test_of_several_pictures_the_first_is_sent_and_the_others_are_told_of(tmp_path, kind):
    """Endpoints refuse pictures that move, and of a scan of three sheets only one would be looked at unnoticed."""
    page = prepared(pictures(tmp_path / "p", kind, 3), NONE)
    assert page.media_type == "image/png"
    assert getattr(opened(page), "n_frames", 1) == 1
    assert opened(page).convert("L").getpixel((5, 5)) > 240
    assert f", {kind}, the first of 3 pictures; " in page.told()
    assert page.changed.endswith("(the first of 3 pictures in the file)")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", r"no image that can be read \(empty\)"),
        (b"hello", r"no image that can be read \(5 bytes\); save it as PNG or JPEG"),
        (b"%PDF-1.7 ...", "is a PDF document, not an image; save the page as PNG"),
    ],
)
def test_what_is_no_image_is_a_sentence(tmp_path, content, sentence):
    (tmp_path / "p.png").write_bytes(content)
    for look in (page_facts, lambda path: prepared(path, NONE)):
        with pytest.raises(DataError, match=sentence):
            look(tmp_path / "p.png")


def test_a_damaged_page_is_found_before_the_run(tmp_path):
    path = draw(tmp_path / "p.png", ["Total: $1,250.00"])
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"p\.png is damaged: .*Replace the file"):
        page_facts(path)
    path.write_bytes(bytes(data[: len(data) // 3]))
    with pytest.raises(DataError, match=r"p\.png is damaged"):
        page_facts(path)


@pytest.mark.parametrize("ending", ["jpg", "webp", "tif", "gif"])
def test_a_page_that_was_cut_off_is_found_before_the_run(tmp_path, ending):
    path = noise(tmp_path / f"p.{ending}")
    page_facts(path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(DataError, match=rf"p\.{ending} is damaged|p\.{ending} is no image"):
        page_facts(path)


@pytest.mark.filterwarnings("ignore")  # Pillow warns of what it finds odd
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP", "PPM"])
def test_whatever_is_wrong_with_a_page_is_a_sentence(tmp_path, kind):
    """Bytes of the head changed at random, the same ones each time."""
    stored, path, random = io.BytesIO(), tmp_path / "p", Random(7)
    Image.linear_gradient("L").resize((60, 40)).convert("RGB").save(stored, kind)
    refused = 0
    for _ in range(100):
        data = bytearray(stored.getvalue())
        for _ in range(4):
            data[random.randrange(min(len(data), 200))] = random.randrange(256)
        path.write_bytes(data[: random.randrange(1, len(data))] if random.random() < 0.2 else data)
        for look in (page_facts, lambda path: prepared(path, Limits(30, 0))):
            try:
                look(path)
            except DataError as error:
                refused += 1
                assert str(path) in str(error)
    assert refused > 10


def test_a_page_of_far_too_many_pixels_is_a_sentence(tmp_path):
    data = draw(tmp_path / "p.png", ["x"]).read_bytes()
    head = b"IHDR" + (60_000).to_bytes(4, "big") * 2 + data[24:29]
    (tmp_path / "p.png").write_bytes(data[:12] + head + zlib.crc32(head).to_bytes(4, "big") + data[33:])
    with pytest.raises(DataError, match="too many pixels to be opened; save it with fewer"):
        page_facts(tmp_path / "p.png")


def test_a_colour_profile_takes_no_room(tmp_path):
    Image.new("L", (400, 300), "white").save(tmp_path / "p.png", icc_profile=noisy_bytes(60_000))
    page = prepared(tmp_path / "p.png", Limits(0, 10_000))
    assert (page.media_type, opened(page).size) == ("image/png", (400, 300))
    assert page.changed == f"encoded anew ({page.facts.size:,} bytes, more than 10,000)"


def test_a_page_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match=r"gone\.png cannot be read: No such file"):
        page_facts(tmp_path / "gone.png")
