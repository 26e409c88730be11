"""`skillopt data livemathematicianbench`: the published split, and the clean items, from the benchmark's own files."""

import json
import logging
from pathlib import Path

import pytest
from skillopt_env_livemathematicianbench.questions import STOCK_OPTION
from skillopt_env_livemathematicianbench.settings import LiveMathematicianBenchSettings
from skillopt_kernel.cli.main import main
from skillopt_kernel.config.packaged import package_path
from skillopt_kernel.config.schema import EnvSettings
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.plugins.discovery import make_driver
from skillopt_lib_env.data_files import read_items
from skillopt_lib_env.split_manifest import read_manifest

MANIFEST = package_path("package:skillopt_env_livemathematicianbench/manifest")
MONTHS = {"202511": 29, "202512": 52, "202601": 46, "202602": 50}
STOCK = {"train": 21, "selection": 10, "test": 54}
"""How many questions of each part offer the stock option, as the audit of the benchmark found."""


@pytest.fixture(scope="module")
def benchmark_files(tmp_path_factory):
    """Files like the benchmark's: its 177 ids and papers, the stock option as often as there, other questions."""
    folder = tmp_path_factory.mktemp("benchmark")
    entries = read_manifest(MANIFEST).parts
    papers = {entry.fields["id"]: entry.fields["paper_link"] for part in entries.values() for entry in part}
    stock = {entry.fields["id"] for part, count in STOCK.items() for entry in entries[part][:count]}
    for month, count in MONTHS.items():
        items = []
        for no in range(1, count + 1):
            name = f"{month}:{no}"
            right = STOCK_OPTION if name in stock else f"{name} holds"
            choices = [{"label": label, "text": f"{name} fails by {label}"} for label in "BCDE"]
            mcq = {"question": f"What of {name}?", "correct_choice": {"label": "A", "text": right}, "choices": choices}
            items.append({"no": no, "month": month, "paper_link": papers[name], "theorem": "T", "sketch": "S",
                          "theorem_type": ["Universal"], "mcq": mcq})  # fmt: skip
        (folder / "data" / month).mkdir(parents=True)
        (folder / "data" / month / f"qa_{month}_final.json").write_text(json.dumps(items), "utf-8")
    return folder


def ids(folder):
    return {
        name: [row.fields["id"] for row in read_items(folder / name / "items.json")]
        for name in ("train", "val", "test")
    }


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def words(*arguments):
        code = main(["data", "livemathematicianbench", *map(str, arguments)])
        told = capsys.readouterr()
        return code, told.out + told.err

    return words


def loaded(folder, ratio=None, **settings):
    split = {"split_mode": "ratio", "split_ratio": ratio, "data_path": folder} if ratio else {"split_dir": folder}
    common = EnvSettings(name="livemathematicianbench", **{"split_mode": "split_dir", **split})
    context = DriverContext(logging.getLogger("skillopt"), seed=42, common=common)
    driver = make_driver("env", "livemathematicianbench", LiveMathematicianBenchSettings(**settings), context)
    splits = driver.splits()
    return splits.train, splits.selection, splits.test


def test_the_published_split_is_written(run, benchmark_files):
    code, text = run("--from", benchmark_files)
    assert code == 0, text
    out = Path("data/livemathematicianbench_split")
    assert f"{out}: 35 train, 17 selection, 125 test tasks." in text
    assert f'Of these, 85 offer "{STOCK_OPTION}"' in text
    published = read_manifest(MANIFEST).parts
    assert ids(out) == {
        name: [entry.fields["id"] for entry in published[part]]
        for name, part in (("train", "train"), ("val", "selection"), ("test", "test"))
    }
    (first, *_) = read_items(out / "train" / "items.json")
    assert first.fields["paper_link"] == published["train"][0].fields["paper_link"]
    assert json.loads((out / "split_manifest.json").read_text("utf-8"))["source"] == str(benchmark_files)
    assert [len(part) for part in loaded(out)] == [35, 17, 125]
    assert [len(part) for part in loaded(out, clean_items=True)] == [14, 7, 71]


def test_the_clean_items_are_split_anew(run, benchmark_files, tmp_path):
    code, text = run("--from", benchmark_files, "--clean", "--out", "clean")
    assert code == 0, text
    assert "clean: 18 train, 9 selection, 65 test tasks." in text
    assert "Of these" not in text
    assert STOCK_OPTION not in (tmp_path / "clean/train/items.json").read_text("utf-8")
    # What a run splits by itself is the same.
    for part, name in zip(loaded(benchmark_files, "2:1:7", clean_items=True), ("train", "val", "test"), strict=True):
        assert [task.id for task in part] == ids(tmp_path / "clean")[name]


def test_a_split_by_ratio_is_the_published_one_but_for_one_question(benchmark_files):
    """The published split has the last selection question of this one at the end of its test split."""
    train, selection, test = ([task.id for task in part] for part in loaded(benchmark_files, "2:1:7"))
    assert [len(train), len(selection), len(test)] == [35, 18, 124]
    published = [[entry.fields["id"] for entry in part] for part in read_manifest(MANIFEST).parts.values()]
    assert published == [train, selection[:-1], [*test, selection[-1]]]


def test_a_split_that_is_there_is_replaced_only_where_that_is_asked_for(run, benchmark_files):
    assert run("--from", benchmark_files, "--out", "split")[0] == 0
    code, text = run("--from", benchmark_files, "--out", "split")
    assert code == 2
    assert "--out: split holds split_manifest.json, test, train and 1 more already" in text
    assert run("--from", benchmark_files, "--out", "split", "--replace", "--clean")[0] == 0
    assert len(ids(Path("split"))["train"]) == 18


def test_files_may_be_named_one_by_one(run, benchmark_files):
    files = [word for path in sorted(benchmark_files.rglob("qa_*")) for word in ("--from", path)]
    assert run(*files)[0] == 0
    code, text = run(*files[:6], "--out", "other")
    assert code == 2
    assert "lacks 50 ids of the 177 that the split in" in text
    assert "and 45 more. Is it the data set" in text
    assert not Path("other").exists()


def test_files_of_another_version_are_refused(run, benchmark_files, tmp_path):
    source = next(benchmark_files.rglob("qa_202601_final.json"))
    changed = tmp_path / "changed" / source.name
    changed.parent.mkdir()
    items = json.loads(source.read_text("utf-8"))
    items[0]["paper_link"] = "http://arxiv.org/abs/0000.00000v1"
    changed.write_text(json.dumps(items), "utf-8")
    others = [word for path in benchmark_files.rglob("qa_*") if path.name != source.name for word in ("--from", path)]
    code, text = run(*others, "--from", changed.parent)
    assert code == 2
    assert f"{source.name}, item 1: the question 202601:1 is about the paper http://arxiv.org/abs/0000.00000v1" in text


@pytest.mark.parametrize("clean", [(), ("--clean",)])
def test_files_that_are_named_twice_are_refused(run, benchmark_files, clean):
    code, text = run("--from", benchmark_files, "--from", benchmark_files / "data" / "202511", *clean)
    assert code == 2
    assert "more than once" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Missing option '--from'"),
        (("--from", "nowhere"), "--from: there is no file or folder nowhere. The questions are not shipped."),
        (("--from", "."), "there is no file qa_*_final.json below this folder"),
        (("--from", ".", "--manifest", "nowhere"), "there is no file qa_*_final.json below this folder"),
    ],
)
def test_what_is_not_there_is_a_sentence(run, words, message):
    code, text = run(*words)
    assert code == 2
    assert message in text
    assert not Path("data").exists()


def test_a_manifest_of_ones_own_is_followed(run, benchmark_files, tmp_path):
    for name, ids_of_part in (("train", ["202511:3", "202602:1"]), ("val", ["202601:9"]), ("test", [])):
        (tmp_path / "mine" / name).mkdir(parents=True)
        (tmp_path / "mine" / name / "items.json").write_text(json.dumps([{"id": one} for one in ids_of_part]))
    assert run("--from", benchmark_files, "--manifest", "mine", "--out", "split")[0] == 0
    assert ids(Path("split")) == {"train": ["202511:3", "202602:1"], "val": ["202601:9"], "test": []}
    code, text = run("--from", benchmark_files, "--manifest", "nowhere", "--out", "other")
    assert code == 2
    assert "there is no folder nowhere with a split manifest" in text
