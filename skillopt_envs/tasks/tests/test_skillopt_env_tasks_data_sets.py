"""Data sets: read by the package `datasets` from a folder as from the Hub, and a sentence for what goes wrong."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

import pytest
from skillopt_kernel.errors import ConfigError, DataError

ROWS = [{"question": f"Which is {n}?", "answers": {"text": [f"this {n}"], "start": [n]}} for n in range(20)]


def jsonl(rows):
    return "\n".join(json.dumps(row) for row in rows)


@pytest.fixture
def package(monkeypatch, tmp_path):
    """The package, with its caches in a folder of the test and without a network."""
    for name in ("HF_HOME", "HF_DATASETS_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / "cache"))
    return pytest.importorskip("datasets")


def test_one_split_is_split_by_ratio(package, environment, written):
    folder = written("set/train.jsonl", jsonl(ROWS)).parent
    splits = environment(dataset=str(folder), fields={"reference": "answers.text"}).splits()
    assert [len(part) for part in (splits.train, splits.selection, splits.test)] == [8, 4, 8]
    assert splits.train[0].reference[0].startswith("this ")


def test_three_splits_are_taken_as_they_are(package, environment, written):
    for at, name in enumerate(("train", "validation", "test")):
        folder = written(f"set/{name}.jsonl", jsonl(ROWS[at::3])).parent
    made = environment(
        dataset=str(folder), dataset_splits=("train", "validation", "test"), fields={"reference": "answers.text"}
    )
    assert [len(part) for part in (made.splits().train, made.splits().selection, made.splits().test)] == [7, 7, 6]


def test_images_that_are_not_used_do_not_disturb(package, environment, tmp_path):
    """They are left as they are stored: nothing decodes them, and no library for that need be installed."""
    import pyarrow
    from pyarrow import parquet

    text = {"dtype": "string", "_type": "Value"}
    features = {"image": {"_type": "Image"}, "question": text, "answer": text}
    table = pyarrow.table(
        {
            "image": [{"bytes": b"no image at all", "path": None}] * 12,
            "question": [f"Which is {n}?" for n in range(12)],
            "answer": ["this"] * 12,
        }
    )
    table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    (tmp_path / "set").mkdir()
    parquet.write_table(table, tmp_path / "set" / "train.parquet")
    assert len(environment(dataset=str(tmp_path / "set")).splits().train) == 5
    with pytest.raises(DataError, match=r"split train, row 1: the field 'image' holds a value of the type dict"):
        environment(dataset=str(tmp_path / "set"), fields={"inputs": ("image",)}).splits()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"dataset_splits": ("tset",)},
            r"the split 'tset' of the data set .* cannot be loaded: ValueError: Unknown split",
        ),
        ({"dataset_config": "other"}, r"cannot be loaded: ValueError: .*other"),
    ],
)
def test_what_the_data_set_does_not_have(package, environment, written, settings, message):
    folder = written("set/train.jsonl", jsonl(ROWS)).parent
    with pytest.raises(DataError, match=message):
        environment(dataset=str(folder), **settings).splits()


def test_a_data_set_that_is_not_there(package, environment, tmp_path):
    with pytest.raises(DataError, match=r"the split 'train' of the data set .*nothing' cannot be loaded"):
        environment(dataset=str(tmp_path / "nothing")).splits()


def test_a_data_set_and_a_file_are_one_too_many(environment, sums):
    with pytest.raises(ConfigError, match=r"env\.dataset names a data set and env\.data_path something else"):
        environment(sums(), dataset="owner/name").splits()


@pytest.mark.parametrize("names", [(), ("a", "b", "c", "d")])
def test_how_many_splits_can_be_named(environment, names):
    with pytest.raises(ConfigError, match=rf"env\.dataset_splits names {len(names)} splits"):
        environment(dataset="owner/name", dataset_splits=names).splits()


def test_without_the_package_the_sentence_says_how_to_get_it(environment, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ConfigError, match=r"pip install 'skillopt-env-tasks\[datasets\]'"):
        environment(dataset="owner/name").splits()


@pytest.fixture
def hub():
    """A Hub on the loopback that has nothing; the paths that it was asked for."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            asked.append(unquote(self.path))
            self.send_response(404)
            self.send_header("X-Error-Code", "RevisionNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_HEAD = answer

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    thread.join()
    server.server_close()


LOADING = """
import logging
from skillopt_env_tasks.settings import TasksSettings
from skillopt_kernel.config.schema import EnvSettings
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.plugins.discovery import make_driver

settings = TasksSettings(dataset="owner/name", dataset_revision="a1b2c3")
make_driver("env", "tasks", settings, DriverContext(logging.getLogger(), common=EnvSettings())).splits()
"""


def test_name_and_revision_reach_the_hub(package, hub, tmp_path):
    endpoint, asked = hub
    # The package reads where the Hub is when it is imported: a process of its own.
    variables = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path), "NO_PROXY": "127.0.0.1"}
    failed = subprocess.run(
        [sys.executable, "-c", LOADING], env=variables, capture_output=True, text=True, timeout=300, check=False
    )
    assert "DataError: the split 'train' of the data set 'owner/name' cannot be loaded" in failed.stderr, failed.stderr
    assert any("owner/name" in path and "a1b2c3" in path for path in asked), asked
