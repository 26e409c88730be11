"""Data files of every form, and pages that are looked for, checked and told of before a run begins."""

import csv
import json
import logging
import shutil

import pytest
from skillopt_env_docvqa.settings import DocVQASettings
from skillopt_env_docvqa_letters import draw, draw_row, environment, over, pictures, row, turned, write_split
from skillopt_kernel.config.schema import EnvSettings
from skillopt_kernel.errors import DataError
from skillopt_kernel.splits import PARTS


def write_csv(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def by_ratio(path, **settings):
    common = EnvSettings(name="docvqa", split_mode="ratio", split_ratio="1:1:1", data_path=path)
    return environment(common, **settings)


def every_task(splits):
    return [task for part in PARTS for task in getattr(splits, part)]


def test_a_split_of_json_files_is_loaded(tmp_path):
    splits = over(write_split(tmp_path)).splits()
    assert [len(getattr(splits, part)) for part in PARTS] == [4, 4, 2]
    task = splits.train[1]
    assert (task.id, task.kind, task.reference) == ("1", "form", ["4/4/99"])
    assert task.files == {"q1_d1.png": str(tmp_path / "images" / "q1_d1.png")}
    (page,) = task.inputs["pages"]
    assert (page["name"], len(page["sha256"])) == ("q1_d1.png", 64)
    assert page["told"] == "640 x 400 pixels, landscape, grey, PNG"
    assert task.inputs["question"] == "What is the date?"


def test_the_earlier_form_is_loaded(tmp_path):
    """CSV files whose golds are Python lists in `answer`, and whose pages stand in the question."""
    for number, part in enumerate(("train", "val", "test")):
        draw_row(tmp_path, number)
        question = f"What is it? document_path: images/q{number}_d{number}.png"
        fields = {"questionId": f"0{number}", "question": question, "answer": "['0.50', '.5']", "image_path": "",
                  "category": "form"}  # fmt: skip
        write_csv(tmp_path / part / "data.csv", [fields])
    (task,) = over(tmp_path).splits().selection
    assert (task.id, task.kind, task.reference) == ("01", "form", ["0.50", ".5"])
    assert task.inputs["question"] == "What is it?"
    assert list(task.files) == ["q1_d1.png"]


@pytest.mark.parametrize(
    ("fields", "golds"),
    [
        ({"answers": "0.50"}, ["0.50"]),
        ({"answers": "", "answer": "1,250"}, ["1,250"]),
        ({"answers": "[]", "answer": "", "ground_truth": "['007']"}, ["007"]),
    ],
)
def test_golds_of_a_table_are_kept_and_found_in_any_of_their_columns(tmp_path, fields, golds):
    rows = []
    for number in range(3):
        draw_row(tmp_path, number)
        plain = {name: value for name, value in row(number).items() if name != "answers"}
        rows.append({**plain, **fields})
    write_csv(tmp_path / "all.csv", rows)
    assert every_task(by_ratio(tmp_path / "all.csv").splits())[0].reference == golds


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"task_type": "mine"}, "mine"),
        ({"topic": "", "question_types": ["form", "layout"]}, "form|layout"),
        ({"topic": "", "category": "letters"}, "letters"),
        ({"topic": ""}, "docvqa"),
    ],
)
def test_the_kind_of_a_task(tmp_path, changes, kind):
    for number in range(3):
        draw_row(tmp_path, number)
    (tmp_path / "all.json").write_text(json.dumps([row(number, **changes) for number in range(3)]))
    assert {task.kind for task in every_task(by_ratio(tmp_path / "all.json").splits())} == {kind}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"question": None}, "the field 'question' is missing"),
        ({"question": " "}, "the field 'question' is blank"),
        ({"question": "document_path: images/q0_d0.png"}, "the field 'question' is blank"),
        ({"answers": []}, "no accepted answer, so that no answer could ever be right"),
        ({"answers": None}, "no accepted answer"),
        ({"answers": [0.5]}, "the field 'answers' cannot be used: an answer is the number 0.5"),
        ({"answers": "['a' 'b']"}, "lacks commas between its texts"),
        ({"image_path": None}, "the row names no page; give the path of its image as 'image_path'"),
        ({"image_path": "https://example.com/p.png"}, "is an address; pages are not fetched: save it as a file"),
        ({"image_path": None, "image": {"bytes": "x"}}, "the field 'image' holds an image itself"),
        ({"image_path": ["a.png", 3.5, None]}, "the list 'image_path' must hold texts"),
        ({"id": None, "questionId": None}, "the field 'id' is missing"),
    ],
)
def test_a_bad_row_is_an_error_that_names_it(tmp_path, changes, sentence):
    for number in range(3):
        draw_row(tmp_path, number)
    rows = [{name: value for name, value in row(0, **changes).items() if value is not None}, row(1), row(2)]
    (tmp_path / "all.json").write_text(json.dumps(rows))
    with pytest.raises(DataError) as caught:
        by_ratio(tmp_path / "all.json").splits()
    assert sentence in str(caught.value)
    assert "all.json, item 1: " in str(caught.value)


def test_several_pages_of_one_question_and_names_that_are_equal(tmp_path):
    draw(tmp_path / "a/page.png", ["one"])
    draw(tmp_path / "b/page.png", ["two"])
    rows = [row(number, image_path=["a/page.png", "b/page.png"]) for number in range(3)]
    (tmp_path / "all.json").write_text(json.dumps(rows))
    task = every_task(by_ratio(tmp_path / "all.json").splits())[0]
    assert list(task.files) == ["01_page.png", "02_page.png"]
    assert len({page["sha256"] for page in task.inputs["pages"]}) == 2


# Where pages lie ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["split/train", "split", "."])
def test_pages_lie_beside_the_data_in_its_folder_or_in_the_working_folder(tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    write_split(tmp_path / "split", train=1, selection=1, test=0)
    images = tmp_path / "images"
    (tmp_path / "split" / "images").rename(images)
    if place != ".":
        (images / "q0_d0.png").rename(tmp_path / "moved.png")
        (tmp_path / place / "images").mkdir()
        (tmp_path / "moved.png").rename(tmp_path / place / "images" / "q0_d0.png")
    task = over(tmp_path / "split").splits().train[0]
    assert task.files == {"q0_d0.png": str(tmp_path / place / "images" / "q0_d0.png")}


def test_a_configured_folder_is_the_only_place(tmp_path):
    write_split(tmp_path / "split")
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(DataError, match=r"Looked in: \S*elsewhere\. "):
        over(tmp_path / "split", image_root=tmp_path / "elsewhere").splits()
    shutil.copytree(tmp_path / "split" / "images", tmp_path / "elsewhere" / "images")
    task = over(tmp_path / "split", image_root=tmp_path / "elsewhere").splits().train[0]
    assert "elsewhere" in task.files["q0_d0.png"]


def test_a_task_is_the_same_wherever_its_page_lies_and_another_with_another_page(tmp_path):
    first, moved = write_split(tmp_path / "a"), tmp_path / "b"
    shutil.copytree(first, moved)
    hashes = [[task.content_hash() for task in over(folder).splits().train] for folder in (first, moved)]
    assert hashes[0] == hashes[1]
    draw(moved / "images/q0_d0.png", ["Another page"])
    after = [task.content_hash() for task in over(moved).splits().train]
    assert after[0] != hashes[0][0]
    assert after[1:] == hashes[0][1:]


def test_o_u3_pages_that_are_missing_are_counted_and_named_with_what_to_do(tmp_path):
    folder = write_split(tmp_path / "split")
    for number in (0, 2, 3, 5, 9):
        (folder / f"images/q{number}_d{number}.png").unlink()
    with pytest.raises(DataError) as caught:
        over(folder).splits()
    text = str(caught.value)
    assert text.startswith(
        "5 of 10 page images are not there: images/q0_d0.png (of task 0), images/q2_d2.png (of task 2)"
    )
    assert "(of task 3) and 2 more." in text
    assert f"Looked in: beside the data file, {folder}, " in text
    assert "env.image_root=FOLDER" in text
    assert "skillopt data docvqa" in text


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b.png", ".", "images"])
def test_what_no_file_can_be_named_is_a_page_that_is_missing(tmp_path, name):
    for number in range(3):
        draw_row(tmp_path, number)
    rows = [row(0, image_path=name), row(1), row(2)]
    (tmp_path / "all.json").write_text(json.dumps(rows))
    with pytest.raises(DataError) as caught:
        by_ratio(tmp_path / "all.json").splits()
    assert "1 of 3 page images are not there" in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_only_pages_of_tasks_that_are_used_need_to_be_there(tmp_path):
    folder = write_split(tmp_path / "split")
    (folder / "images/q3_d3.png").unlink()
    common = EnvSettings(name="docvqa", split_mode="split_dir", split_dir=folder, limit=2)
    assert len(environment(common).splits().train) == 2


def test_o_u3_data_that_is_not_there_is_named_with_how_to_make_it(tmp_path):
    with pytest.raises(DataError, match=r"no folder \S*splits\. The data is not shipped: `skillopt data docvqa`"):
        over(tmp_path / "data/docvqa/splits").splits()


def test_a_split_by_ratio_that_was_written_finds_its_pages(tmp_path, monkeypatch):
    for number in range(6):
        draw_row(tmp_path / "data", number)
    (tmp_path / "data" / "all.jsonl").write_text("\n".join(json.dumps(row(number)) for number in range(6)))
    made = by_ratio(tmp_path / "data" / "all.jsonl")
    made.save_splits(tmp_path / "run")
    monkeypatch.chdir("/")
    (written,) = (tmp_path / "run" / "_generated_splits").iterdir()
    assert over(written).splits() == made.splits()


# What a page is ----------------------------------------------------------------------------------------------------


def test_a_page_that_is_no_image_is_named_with_its_task(tmp_path):
    folder = write_split(tmp_path / "split")
    (folder / "images/q1_d1.png").write_text("no image")
    with pytest.raises(DataError, match=r"task 1: the page \S*q1_d1\.png is no image that can be read"):
        over(folder).splits()


def warned(caplog, folder, **settings):
    with caplog.at_level(logging.WARNING):
        splits = over(folder, **settings).splits()
    return splits, [record.getMessage() for record in caplog.records]


def test_pages_that_are_sent_as_they_are_stored_are_no_news(tmp_path, caplog):
    assert warned(caplog, write_split(tmp_path))[1] == []


def test_pages_that_are_too_large_are_told_of_once_each(tmp_path, caplog):
    folder = write_split(tmp_path)
    draw(folder / "images/q1_d1.png", ["wide"], size=(1200, 300))
    draw(folder / "images/q4_d4.png", ["high"], size=(300, 900))
    rows = json.loads((folder / "val/items.json").read_text())
    rows[1]["image_path"] = "images/q1_d1.png"  # a second question about the same page
    (folder / "val/items.json").write_text(json.dumps(rows))
    _, (warning,) = warned(caplog, folder, image_max_side=800)
    assert warning.startswith("2 of 9 page images are not sent as stored: ")
    assert "q1_d1.png (1,200 x 300 pixels, more than 800 a side)" in warning
    assert "q4_d4.png (300 x 900 pixels, more than 800 a side)" in warning


def test_other_formats_are_told_of(tmp_path, caplog):
    folder = write_split(tmp_path)
    draw(folder / "images/p.tif", ["scan"])
    (folder / "images/p.tif").rename(folder / "images/q0_d0.png")
    _, (warning,) = warned(caplog, folder)
    assert warning.startswith("1 of 10 page images is not sent as stored: ")
    assert "q0_d0.png (models do not take TIFF)" in warning
    assert over(folder, image_too_large="refuse").splits().train, "it is not too large"


def test_pages_that_are_turned_or_one_of_several_are_told_of(tmp_path, caplog):
    folder = write_split(tmp_path)
    turned(folder / "images/q0_d0.png", "JPEG", 6)
    pictures(folder / "images/q1_d1.png", "TIFF", 3)
    splits, (warning,) = warned(caplog, folder)
    assert warning.startswith("2 of 10 page images are not sent as stored: ")
    assert "q0_d0.png (stored turned, which models do not look at)" in warning
    assert "q1_d1.png (the first of 3 pictures in the file)" in warning
    told = [task.inputs["pages"][0]["told"] for task in splits.train[:2]]
    assert told == [
        "200 x 400 pixels, portrait, grey, JPEG", "30 x 20 pixels, landscape, grey, TIFF, the first of 3 pictures",
    ]  # fmt: skip


def test_a_run_with_pages_that_are_too_large_can_be_refused(tmp_path):
    folder = write_split(tmp_path)
    with pytest.raises(DataError, match=r"10 of 10 page images are not sent as stored.*image_too_large is 'refuse'"):
        over(folder, image_max_side=500, image_too_large="refuse").splits()
    assert over(folder, image_max_side=640, image_too_large="refuse").splits().train


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ({"max_turns": 0}, "at least 1"),
        ({"max_completion_tokens": 0}, "at least 1"),
        ({"image_max_side": -1}, "at least 0"),
        ({"image_max_bytes": 9_999}, "at least 10,000 bytes, or 0 for no limit"),
    ],
)
def test_impossible_settings_are_refused(setting, sentence):
    with pytest.raises(ValueError, match=sentence):
        DocVQASettings(**setting)
