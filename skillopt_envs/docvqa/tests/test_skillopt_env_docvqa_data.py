"""`skillopt data docvqa` on small files of the data set's own shape, and a run's reading of what it wrote."""

import io
import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from PIL import Image
from skillopt_env_docvqa.data import data, item_of, page_bytes
from skillopt_env_docvqa_letters import over
from skillopt_kernel.errors import ConfigError, DataError
from skillopt_lib_env.data_files import Item

PARTS = {"train": ["11", "12"], "val": ["13"], "test": ["14", "15"]}


def picture(number, kind="PNG"):
    buffer = io.BytesIO()
    Image.new("L", (100 + number, 80), 255).save(buffer, kind)
    return buffer.getvalue()


def row(number, **changes):
    return {
        "questionId": str(number),
        "question": f"What stands in line {number}?",
        "question_types": ["handwritten", "form"],
        "image": {"bytes": picture(number), "path": None},
        "docId": number * 7,
        "ucsf_document_id": "abcd0123",
        "ucsf_document_page_no": "3",
        "answers": ["0.50", ".50"],
        "data_split": "val",
        **changes,
    }


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Writes the data set as it lies on the Hub and returns its folder; the package is offline, its caches here."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    datasets = pytest.importorskip("datasets")  # an extra
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    text = datasets.Value("string")
    features = datasets.Features(
        dict.fromkeys(["questionId", "question", "ucsf_document_id", "ucsf_document_page_no", "data_split"], text)
        | {"question_types": datasets.List(text), "answers": datasets.List(text), "docId": datasets.Value("int64")}
        | {"image": datasets.Image()}
    )

    def write(rows, place="DocVQA", test=()):
        folder = tmp_path / "hub" / place
        folder.mkdir(parents=True, exist_ok=True)
        for name, some in (("validation-00000-of-00002", rows[::2]), ("validation-00001-of-00002", rows[1::2])):
            datasets.Dataset.from_list(some, features=features).to_parquet(folder / f"{name}.parquet")
        if test:
            datasets.Dataset.from_list(test, features=features).to_parquet(folder / "test-00000-of-00001.parquet")
        return str(tmp_path / "hub")

    return write


@pytest.fixture
def manifest(tmp_path):
    folder = tmp_path / "manifest"
    for part, ids in PARTS.items():
        (folder / part).mkdir(parents=True)
        entries = [{"id": name, "docId": str(int(name) * 7)} for name in ids]
        (folder / part / "items.json").write_text(json.dumps(entries))
    return folder


def written(source, manifest, out, *more):
    arguments = ["--dataset", source, "--manifest", str(manifest), "--out", str(out), *more]
    return CliRunner().invoke(data, arguments, catch_exceptions=False)


def test_the_split_is_written_with_its_pages_and_read_by_a_run(hub, manifest, tmp_path):
    # The files of the test split, which have no answers and the same ids, are not looked at.
    source = hub([row(number) for number in range(10, 17)], test=[row(11, answers=[])])
    done = written(source, manifest, tmp_path / "out")
    assert (done.exit_code, "2 train, 1 selection, 2 test tasks" in done.output) == (0, True), done.output
    assert f"skillopt train docvqa -o env.split_dir={tmp_path / 'out'}" in done.output
    facts = json.loads((tmp_path / "out/split_manifest.json").read_text())
    assert facts["counts"] == {"train": 2, "val": 1, "test": 2}
    assert sorted(path.name for path in (tmp_path / "out/images").iterdir()) == [
        f"q{name}_d{int(name) * 7}.png" for ids in PARTS.values() for name in ids
    ]
    assert (tmp_path / "out/images/q11_d77.png").read_bytes() == picture(11)
    splits = over(tmp_path / "out").splits()
    assert [task.id for task in splits.test] == ["14", "15"]
    (task,) = splits.selection
    assert (task.kind, task.reference) == ("handwritten|form", ["0.50", ".50"])
    assert task.inputs["pages"][0]["told"].startswith("113 x 80 pixels")


def test_a_folder_of_the_validation_files_alone_will_do(hub, manifest, tmp_path):
    source = hub([row(number) for number in range(10, 17)], place=".")
    assert written(source, manifest, tmp_path / "out").exit_code == 0
    assert len(over(tmp_path / "out").splits().train) == 2


def refused(*arguments):
    with pytest.raises(DataError) as caught:
        written(*arguments)
    return str(caught.value)


def test_what_the_data_set_lacks_is_told_and_nothing_is_left(hub, manifest, tmp_path):
    source = hub([row(number) for number in (10, 11, 12, 14)])
    assert "lacks 2 ids of the 5 that the split in" in refused(source, manifest, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"answers": []}, "the question 13 has no answers"),
        ({"answers": None}, "the question 13 has no answers"),
        ({"docId": 5}, "the question 13 is about the document '5', but the split names '91'"),
        ({"image": None}, "the column 'image' holds no image"),
        ({"image": {"bytes": b"no image", "path": None}}, "the page cannot be read as an image"),
        ({"question": " "}, "the field 'question' is blank"),
    ],
)
def test_a_row_that_cannot_be_used_is_named(hub, manifest, tmp_path, changes, sentence):
    source = hub([row(number, **(changes if number == 13 else {})) for number in range(11, 16)])
    text = refused(source, manifest, tmp_path / "out")
    assert sentence in text
    assert "split validation, row" in text
    assert not (tmp_path / "out").exists()


def test_a_folder_that_holds_something_is_left_alone(hub, manifest, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    assert "mine.txt" in refused(str(tmp_path / "nothing"), manifest, tmp_path / "out")


def test_it_is_written_anew_when_asked(hub, manifest, tmp_path):
    source = hub([row(number) for number in range(10, 17)])
    written(source, manifest, tmp_path / "out")
    (tmp_path / "out/images/stray.png").write_bytes(b"")
    assert written(source, manifest, tmp_path / "out", "--replace").exit_code == 0
    assert len(list((tmp_path / "out/images").iterdir())) == 5


def test_without_the_package_the_sentence_says_how_to_get_it(monkeypatch, manifest, tmp_path):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ConfigError, match=r"pip install 'skillopt-env-docvqa\[datasets\]'"):
        written("lmms-lab/DocVQA", manifest, tmp_path / "out")


def test_the_command_offers_what_the_packaged_configuration_looks_for():
    from skillopt_kernel.config import load_config

    overrides = ["model.backend=openai_compatible", "model.openai_compatible_base_url=http://localhost:1/v1"]
    folder = load_config("docvqa", overrides, environ={}).env.split_dir
    assert next(option.default for option in data.params if option.name == "out") == Path("data/docvqa/splits")
    assert str(folder).endswith("data/docvqa/splits")


def test_a_page_that_lies_beside_the_data_is_read(tmp_path):
    (tmp_path / "p.jpg").write_bytes(picture(5, "JPEG"))
    item = Item(row(5, image={"bytes": None, "path": str(tmp_path / "p.jpg")}), "row 1")
    assert page_bytes(item) == picture(5, "JPEG")
    assert item_of(item)["image_path"] == "images/q5_d35.jpg"
    gone = Item(row(5, image={"bytes": None, "path": str(tmp_path / "gone.jpg")}), "row 1")
    with pytest.raises(DataError, match=r"row 1: the page \S*gone\.jpg cannot be read: No such file"):
        page_bytes(gone)
