"""`skillopt doctor`: what it finds, that a training refuses the same, and what it does not do."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from skillopt_commands.checks import places
from skillopt_commands.checks.finding import Report
from skillopt_kernel.cli.main import cli
from skillopt_kernel.errors import SkillOptError
from skillopt_kernel.loop.api import train
from skillopt_kernel.store.lock import RunLock
from skillopt_testkit.project import Project
from skillopt_testkit.servers import ChatServer

KEY = "sk-very-secret-0123456789"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    project = Project.make(tmp_path, train=4, selection=4, test=2)
    monkeypatch.chdir(tmp_path)
    return project


def doctor(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["doctor", *map(str, arguments)], standalone_mode=False)


def checks(*arguments: str | Path) -> dict[str, list[tuple[str, str]]]:
    """Check -> its results and texts; that what is returned agrees with what is said."""
    done = doctor(*arguments, "--json")
    assert done.exception is None, done.exception
    told = json.loads(done.stdout)
    found: dict[str, list[tuple[str, str]]] = {}
    for one in told["checks"]:
        found.setdefault(one["check"], []).append((one["result"], one["text"]))
    well = not any(one["result"] == "error" for one in told["checks"])
    assert (told["well"], done.return_value) == (well, 0 if well else 2)
    return found


def errors(found: dict[str, list[tuple[str, str]]]) -> list[str]:
    return [text for rows in found.values() for result, text in rows if result == "error"]


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def test_without_a_configuration_it_tells_what_is_installed() -> None:
    found = checks()
    assert found["python"][0][0] == "ok"
    assert "simulated" in found["backend plugins"][0][1].split(", ")
    assert "doctor" in found["command plugins"][0][1].split(", ")
    assert not errors(found)
    shown = doctor()
    assert shown.stdout.splitlines()[0].startswith("python")
    assert shown.stdout.endswith("All is well.\n")


def test_a_broken_plugin_stops_who_names_it(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("site/lab-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: lab\nVersion: 1.0\n")
    project.write("site/lab-1.0.dist-info/entry_points.txt", "[skillopt.gates]\nlab = lab_gate:plugin\n")
    project.write("site/lab_gate.py", "import nothing_of_this_name\n")
    monkeypatch.syspath_prepend(project.folder / "site")
    alone, beside = checks(), checks("config.yaml")
    for found, result in ((alone, "error"), (beside, "warning")):
        told, sentence = found["gate plugins"][0]
        assert told == result
        assert "nothing_of_this_name" in sentence
    assert "nothing_of_this_name" in errors(checks("config.yaml", "-o", "evaluation.gate_metric=lab"))[0]


def test_a_configuration_that_can_be_trained_is_well_and_nothing_is_written(project: Project) -> None:
    before = files(project.folder)
    found = checks("config.yaml")
    assert files(project.folder) == before
    assert found["data"] == [("ok", "4 train, 4 selection, 2 test tasks")]
    assert found["optimizer"][0] == ("ok", "simulated as chat, model simulated, simulated")
    assert {"environment", "start skill", "gate", "scheduler", "update", "executor", "target", "budget"} <= set(found)
    assert [result for result, _ in found["run directory"]] == ["ok", "ok"]
    assert "judge" not in found, "it is the optimizer's model"


@pytest.mark.parametrize(
    ("check", "overrides"),
    [
        ("configuration", ["train.batch_size=none"]),
        ("configuration", ["optimizer.edit_budgett=3"]),
        ("configuration", ["evaluation.gate_metric=none_such"]),
        ("configuration", ["model.target_backend=codex_exec"]),
        ("environment", ["env.split_dir="]),
        ("data", ["env.split_dir=elsewhere"]),
        ("data", ["train.train_size=50"]),
        ("start skill", ["optimizer.max_skill_tokens=2"]),
        ("target", ["model.simulated_world=data/train/items.json"]),
        ("hooks", ["hooks.plugins=[data_audit]"]),
        ("hooks", ["hooks.plugins=[none.such:thing]"]),
    ],
)  # fmt: skip
def test_a_training_refuses_what_it_finds(project: Project, check: str, overrides: list[str]) -> None:
    if "data_audit" in overrides[0]:  # one answer for every task is a shortcut, which the plugin refuses
        for split in ("train", "val", "test"):
            items = project.json(f"data/{split}/items.json")
            project.write(f"data/{split}/items.json", json.dumps([{**one, "answers": ["42"]} for one in items]))
    found = errors(checks("config.yaml", *(f"-o{text}" for text in overrides)))
    with pytest.raises(SkillOptError) as refused:
        train("config.yaml", overrides, out="run")
    said = " ".join(str(refused.value).split())
    assert any(" ".join(text.split()) in said for text in found), (found, said)


def test_a_limit_that_cannot_be_kept(project: Project) -> None:
    with ChatServer() as server:
        arguments = over_http(server.url, "budget.usd=1")
        found = checks(*arguments)
        with pytest.raises(SkillOptError) as refused:
            train("config.yaml", [text.removeprefix("-o") for text in arguments[1:]], out="run")
    assert found["budget"] == [("error", str(refused.value))]
    assert "budget.assume_per_call.usd" in str(refused.value)


def test_several_things_are_found_at_once(project: Project) -> None:
    found = checks("config.yaml", "-o", "env.split_dir=elsewhere", "-o", "optimizer.max_skill_tokens=2")
    assert {"data", "start skill"} <= {check for check, rows in found.items() if rows[0][0] == "error"}
    assert found["run directory"][0][0] == "ok"


def test_the_run_directory_of_another_configuration_and_of_another_process(project: Project) -> None:
    train("config.yaml", ["train.num_epochs=1"], out="run")
    other = errors(checks("config.yaml", "--out", "run", "-o", "train.num_epochs=1", "-o", "train.seed=5"))
    assert "train.seed: was 1, now 5" in other[0]
    found = checks("config.yaml", "--out", "run", "-o", "train.num_epochs=1")
    assert found["run directory"][0] == ("ok", "run: finished")
    with RunLock(project.folder / "run"):
        found = checks("config.yaml", "--out", "run", "-o", "train.num_epochs=1")
    assert "another process" in errors(found)[0]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a folder in which nobody can write is needed")
def test_a_folder_that_cannot_be_written() -> None:
    report = Report()
    places.check_folder(report, "run directory", Path("/proc/none/such"))
    assert report.found[0].result == "error"
    assert "nothing can be written in /proc" in report.found[0].text


@pytest.mark.parametrize(("free", "result"), [(2e9, "ok"), (5e8, "warning"), (1e6, "error")])
def test_little_room_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: float, result: str) -> None:
    class Usage:
        def __init__(self, path: object) -> None:
            self.free = int(free)

    monkeypatch.setattr("shutil.disk_usage", Usage)
    report = Report()
    places.check_folder(report, "run directory", tmp_path / "not" / "yet" / "there")
    assert [one.result for one in report.found] == [result]


class Refusing(BaseHTTPRequestHandler):
    """An endpoint that takes no key, and repeats it."""

    def do_GET(self) -> None:
        body = json.dumps({"error": {"message": f"wrong key {self.headers['Authorization']}"}}).encode()
        self.send_response(401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture
def refusing() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    server.server_close()


def over_http(url: str, *more: str) -> list[str]:
    told = ("model.backend=openai_compatible", "model.optimizer_backend=openai_compatible",
            "model.target_backend=openai_compatible", f"model.openai_compatible_base_url={url}",
            "model.optimizer=test", "model.target=test", *more)  # fmt: skip
    return ["config.yaml", *(f"-o{text}" for text in told)]


def test_an_endpoint_is_asked_for_its_models_and_no_model_is_called(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", KEY)
    with ChatServer() as server:
        found = checks(*over_http(server.url))
        assert server.requests == []
        assert ("ok", "openai_compatible_api_key is set (environment variable OPENAI_COMPATIBLE_API_KEY)") in found[
            "target"
        ]
        assert any("answers and serves 'test'" in text for _, text in found["target"])
        other = checks(*over_http(server.url, "model.target=other"))
    assert any(result == "warning" and "does not list the model 'other'" in text for result, text in other["target"])
    assert KEY not in json.dumps([found, other])


def test_online_each_role_is_asked_for_one_word_and_the_price_is_said_before(project: Project) -> None:
    prices = "model.prices={test: {input: 1000, output: 1000}}"
    with ChatServer() as server:
        done = doctor(*over_http(server.url, prices, "model.judge=test"), "--online")
        bodies = [received.body for received in server.requests]
    assert done.return_value == 0
    assert [body["model"] for body in bodies] == ["test", "test"]
    assert all(len(body["messages"][0]["content"]) < 40 for body in bodies)
    assert "optimizer at most $0.036000; target at most $0.036000" in done.stderr
    assert done.stdout.count("a call was answered in") == 2


def test_a_key_that_is_refused_and_an_endpoint_that_is_not_there(
    project: Project, refusing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", KEY)
    done = doctor(*over_http(refusing))
    assert done.return_value == 2
    assert "OPENAI_COMPATIBLE_API_KEY" in done.stdout
    assert KEY not in done.stdout + done.stderr
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        found = checks(*over_http(address))
    assert {check for check, rows in found.items() if any(row[0] == "error" for row in rows)} == {"optimizer", "target"}
    assert address in errors(found)[0]


def test_a_judge_of_its_own_is_checked(project: Project) -> None:
    found = checks("config.yaml", "-o", "model.judge_backend=openai_compatible", "-o", "model.judge=m", "-o",
                   "model.judge_openai_compatible_base_url=http://127.0.0.1:9/v1")  # fmt: skip
    assert any(result == "error" for result, _ in found["judge"])


PLUGIN = """\
from skillopt_kernel import hookimpl

class Critic:
    @hookimpl
    def skillopt_run_started(self, event): ...

    def check(self):
        return [("warning", "the critic is asleep; wake it.")]

class Broken(Critic):
    def check(self):
        raise RuntimeError("never tried")
"""


def test_hook_plugins_are_asked_for_their_own_checks(project: Project) -> None:
    project.write("lab.py", PLUGIN)
    one = checks("config.yaml", "-o", "hooks.plugins=[lab:Critic]", "-o", "hooks.path=[.]")
    assert ("warning", "the critic is asleep; wake it.") in one["hooks"]
    other = checks("config.yaml", "-o", "hooks.plugins=[lab:Broken]", "-o", "hooks.path=[.]")
    assert "RuntimeError: never tried" in errors(other)[0]


def test_long_findings_are_wrapped_beside_their_names(project: Project) -> None:
    done = doctor("config.yaml", "-o", "env.split_dir=elsewhere", "-o", "optimizer.max_skill_tokens=2")
    lines = done.stdout.splitlines()
    assert max(len(line) for line in lines if "/" not in line) <= 120
    assert lines[-1] == "2 errors, 1 warning."


def test_what_belongs_to_a_configuration_needs_one() -> None:
    done = doctor("--online")
    assert "are for a configuration; give one" in str(done.exception)


def test_the_example_of_the_documentation_is_asked(project: Project) -> None:
    page = Path(__file__).parents[3] / "docs/doctor.md"
    code = page.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    project.write("lab.py", f"{code}\n    address = ''\n")
    found = checks("config.yaml", "-o", "hooks.plugins=[lab:Tracker]", "-o", "hooks.path=[.]")
    assert errors(found) == ["the tracker has no address; set hooks.settings.tracker.address."]
