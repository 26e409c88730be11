"""`skillopt data officeqa`: the published split from the questions' file, checked against the corpus."""

import shutil

from officeqa_world import CORPUS, DATA, QUESTIONS, environment
from skillopt_testkit.project import Project


def test_the_split_is_written_and_loads(tmp_path):
    project = Project(tmp_path)
    done = project.run("data", "officeqa", "--from", QUESTIONS, "--manifest", DATA / "ids", "--docs", CORPUS).ok()
    assert "8 train, 4 selection, 4 test tasks" in done.out
    assert f"env.data_dirs=[{CORPUS}]" in done.out
    splits = environment(split_dir=tmp_path / "data/officeqa_split").splits()
    assert [len(part) for part in (splits.train, splits.selection, splits.test)] == [8, 4, 4]
    hard = splits.train[-1]
    assert (hard.kind, hard.id) == ("hard", "HM0013")
    assert hard.reference["source_files"] == ["treasury_bulletin_1939_01.txt", "treasury_bulletin_1942_07.txt"]
    assert len(hard.reference["source_docs"]) == 2
    assert set(hard.inputs) == {"question", "corpus"}


def test_the_published_manifest_wants_the_published_questions(tmp_path):
    project = Project(tmp_path)
    refused = project.run("data", "officeqa", "--from", QUESTIONS).refused("lacks 246 ids of the 246", "UID0002")
    assert not (tmp_path / "data").exists()
    assert "officeqa_full.csv" in refused.err


def test_documents_that_lack_are_told(tmp_path):
    docs = tmp_path / "docs"
    shutil.copytree(CORPUS / "treasury_bulletins_parsed/transformed", docs)
    (docs / "treasury_bulletin_1982_08.txt").unlink()
    project = Project(tmp_path)
    arguments = ("data", "officeqa", "--from", QUESTIONS, "--manifest", DATA / "ids", "--docs")
    project.run(*arguments, docs).refused("lacks 1 of the 6 documents", "treasury_bulletin_1982_08.txt")
    project.run(*arguments, tmp_path / "none").refused("there is no folder")
    assert not (tmp_path / "data").exists()


def test_a_row_without_an_answer_is_an_error_with_its_place(tmp_path):
    project = Project(tmp_path)
    text = QUESTIONS.read_text("utf-8").replace(",636.6,", ",,")
    project.write("mine.csv", text)
    project.run("data", "officeqa", "--from", "mine.csv", "--manifest", DATA / "ids").refused("mine.csv:4", "'answer'")
    project.run("data", "officeqa", "--from", "none.csv", "--manifest", DATA / "ids").refused("none.csv")
    project.run("data", "officeqa").refused("--from")


def test_a_split_by_ratio_works_too():
    splits = environment(split_mode="ratio", data_path=QUESTIONS, split_ratio="2:1:1").splits()
    assert [len(part) for part in (splits.train, splits.selection, splits.test)] == [8, 4, 4]
