"""The suite that every environment passes, on each form of the data."""

import json

import pytest
from skillopt_testkit import EnvironmentConformance


def rows(count=20):
    return [
        {"id": f"sum {n}/a", "question": f"What is {n} plus {n}?", "hint": "add", "answer": f"{n + n}", "kind": "sum"}
        for n in range(count)
    ]


class TestCSV(EnvironmentConformance):
    name = "tasks"

    @pytest.fixture
    def env_settings(self, tmp_path):
        lines = ["id,question,answer,kind", *(f"{r['id']},{r['question']},{r['answer']},{r['kind']}" for r in rows())]
        path = tmp_path / "tasks.csv"
        path.write_text("\n".join(lines))
        return {"data_path": path, "split_ratio": "2:1:2"}

    def right_reply(self, task):
        return f"Adding.\n<answer>{task.reference}</answer>"


class TestJSONLines(TestCSV):
    @pytest.fixture
    def env_settings(self, tmp_path):
        path = tmp_path / "tasks.jsonl"
        path.write_text("\n".join(json.dumps(row) for row in rows()))
        return {"data_path": path, "split_ratio": "2:1:2"}


class TestSplitAlready(TestCSV):
    @pytest.fixture
    def env_settings(self, tmp_path):
        for at, part in enumerate(("train", "val", "test")):
            (tmp_path / "data" / part).mkdir(parents=True)
            (tmp_path / "data" / part / "items.json").write_text(json.dumps(rows()[at::3]))
        return {"split_mode": "split_dir", "split_dir": tmp_path / "data"}
