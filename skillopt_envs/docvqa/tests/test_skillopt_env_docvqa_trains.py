"""Trainings of two steps over HTTP: the endpoint is sent real pages and reads them by their pixels."""

import base64
import io
import json
import re

from PIL import Image
from skillopt_env_docvqa_letters import LETTERS, write_split
from skillopt_testkit.programs import stand_in
from skillopt_testkit.project import Project
from skillopt_testkit.servers import ChatServer, Reply
from skillopt_testkit.wording import proposal, text_of

KEY = "page-key-0123456789abcdef"
RULES = {"date": "Copy a date exactly as it is printed.", "total": "Give an amount with its sign and its decimals."}
LONGEST = 600
"""Seconds that a run may take on a machine that is busy."""

SPOILER = "Explain each answer at great length."


def signature(image):
    """A page as so few grey values that it is known again when it was scaled or stored as JPEG."""
    return image.convert("L").resize((32, 20), Image.Resampling.BOX).tobytes()


def said(text, skill, number):
    """What a reader of letter `number` says: right where the skill has the rule for what is asked."""
    date, amount = LETTERS[number % len(LETTERS)]
    kind, answer = ("date", date) if "date?" in text else ("total", amount)
    right = RULES[kind] in skill and SPOILER not in skill
    return f"<answer>{answer}</answer>" if right else f"<answer>I read it as {answer}, more or less</answer>"


def proposed(user):
    """What an analyst says: the rule of the first kind that it was shown and the skill lacks; else a bad one."""
    lacking = [rule for kind, rule in RULES.items() if f"{kind}" in user and rule not in user]
    merged = [rule for rule in (*RULES.values(), SPOILER) if f'"- {rule}"' in user]
    return proposal((merged or lacking or [SPOILER])[0])


class Endpoint:
    """A model that sees: it knows each page of a split by its pixels, and remembers which it was shown."""

    def __init__(self, folder):
        self.known = {}
        for path in sorted((folder / "images").iterdir()):
            with Image.open(path) as image:
                self.known[int(re.search(r"q(\d+)_", path.name)[1])] = signature(image)
        self.seen = []

    def read(self, data):
        """The number of the letter that these bytes show."""
        shown = signature(Image.open(io.BytesIO(data)))
        differences = {
            number: sum(abs(a - b) for a, b in zip(shown, known, strict=True)) for number, known in self.known.items()
        }
        return min(differences, key=differences.get)

    def __call__(self, body):
        system, user = body["messages"][0]["content"], body["messages"][-1]["content"]
        if body["model"] == "optimizer":
            return '{"reasoning": "", "selected_indices": [0]}' if "selected_indices" in system else proposed(user)
        text, image = user
        head, _, encoded = image["image_url"]["url"].partition(";base64,")
        data = base64.b64decode(encoded, validate=True)
        self.seen.append((head, image["image_url"].get("detail"), data))
        return said(text["text"], system, self.read(data))


def make(tmp_path, **changes):
    project = Project(tmp_path / "project", {"OPENAI_COMPATIBLE_API_KEY": KEY})
    write_split(project.folder / "data", train=8, selection=4, test=2)
    sections = {
        "_base_": "docvqa",
        "train": {"num_epochs": 1, "batch_size": 4},
        "optimizer": {"lr_scheduler": "constant", "use_slow_update": False, "use_meta_skill": False},
        "model": {"optimizer": "optimizer", "target": "target"},
        "env": {"split_dir": "data", "workers": 4},
    }
    for name, change in changes.items():
        sections[name] = {**sections[name], **change}
    project.write("mine.yaml", json.dumps(sections))
    return project


def command(server, *overrides):
    model = ["model.backend=openai_compatible", f"model.openai_compatible_base_url={server.url}"]
    given = [word for text in (*model, *overrides) for word in ("-o", text)]
    return ("train", "mine.yaml", "--out", "run", *given)


def trained(project, endpoint, *overrides):
    with ChatServer(endpoint) as server:
        project.run(*command(server, *overrides), timeout=LONGEST).ok()
        optimizer = [each.body["messages"] for each in server.requests if each.body["model"] == "optimizer"]
    return project.json("run/history.json"), project.json("run/summary.json"), optimizer


def test_two_steps_over_http_with_the_pages_as_they_are_stored(tmp_path):
    project = make(tmp_path)
    endpoint = Endpoint(project.folder / "data")
    history, summary, optimizer = trained(project, endpoint)
    assert [step["action"] for step in history] == ["accept_new_best", "accept_new_best"]
    assert summary["test_hard"] == 1.0 > summary["baseline_test_hard"] == 0.0
    assert set(summary["by_kind"]["test"]) == {"overall", "form", "table/list"}
    best = (project.folder / "run/best_skill.md").read_text("utf-8")
    assert all(rule in best for rule in RULES.values())
    stored = {path.read_bytes() for path in (project.folder / "data/images").iterdir()}
    assert {data for _, _, data in endpoint.seen} == stored, "each page reached the endpoint byte for byte"
    assert {(head, detail) for head, detail, _ in endpoint.seen} == {("data:image/png", None)}
    shown = "\n".join(message["content"] for messages in optimizer for message in messages)
    assert "640 x 400 pixels, landscape, grey, PNG; sent as it is stored" in shown
    assert "which cannot be shown here" in shown
    assert "base64" not in shown
    told = {number for number in range(14) if f"q{number}_d{number}" in shown or f"letter {number}?" in shown}
    assert told == set(range(8)), "the optimizer is told of training tasks only"
    # With the whole project moved elsewhere it is still the same run, which has ended.
    moved = Project((tmp_path / "project").rename(tmp_path / "moved"), project.environment)
    with ChatServer() as server:
        assert "finished" in moved.run(*command(server), timeout=LONGEST).ok().out
        assert server.requests == []


def test_pages_beyond_a_limit_arrive_smaller_and_readable(tmp_path):
    project = make(tmp_path, train={"num_epochs": 1, "batch_size": 8})
    endpoint = Endpoint(project.folder / "data")
    overrides = ("env.image_max_side=320", "env.image_detail=high", "env.image_max_bytes=10000")
    history, _, optimizer = trained(project, endpoint, *overrides)
    assert history[0]["action"] == "accept_new_best", "the pages were told apart although they were scaled"
    assert {Image.open(io.BytesIO(data)).size for _, _, data in endpoint.seen} == {(320, 200)}
    assert {detail for _, detail, _ in endpoint.seen} == {"high"}
    assert any("scaled down to 320 x 200 pixels" in message["content"] for each in optimizer for message in each)


def test_a_run_without_its_pages_ends_before_anything_is_asked(tmp_path):
    project = make(tmp_path)
    (project.folder / "data/images/q3_d3.png").unlink()
    with ChatServer() as server:
        ended = project.run(*command(server), timeout=LONGEST)
        ended.refused("1 of 14 page images are not there", "q3_d3.png (of task 3)", "env.image_root=FOLDER")
        assert server.requests == []
    assert not (project.folder / "run").exists()


def test_an_agent_program_trains_with_the_pages_as_files(tmp_path):
    """The stand-in of Codex runs a command that prints the page, in which the endpoint reads."""
    program = stand_in(tmp_path / "programs", "codex")
    project = make(tmp_path, model={"optimizer": "optimizer", "target": "target", "codex_exec_path": str(program)})
    endpoint = Endpoint(project.folder / "data")
    looked = []

    def answer(body):
        if body["model"] == "optimizer":
            plain = [{"role": each["role"], "content": text_of(each)} for each in body["messages"]]
            return endpoint({**body, "messages": [plain[0], {"role": "user", "content": plain[-1]["content"]}]})
        texts = [text_of(message) for message in body["messages"] if message["role"] != "tool"]
        asked = next(text for text in texts if "## Question" in text)
        printed = [text_of(message) for message in body["messages"] if message["role"] == "tool"]
        if not printed:
            (name,) = re.findall(r"- `(page_1\.png)`", asked)
            function = {"name": "exec_command", "arguments": json.dumps({"cmd": f"base64 < {name} | tr -d '\\n'"})}
            return Reply(tool_calls=({"id": "call-1", "type": "function", "function": function},))
        data = base64.b64decode(re.search(r"[A-Za-z0-9+/=]{200,}", printed[-1])[0])
        looked.append(data)
        told = "\n".join(text for text in texts if text is not asked)
        return said(asked, told, endpoint.read(data))

    with ChatServer(answer) as server:
        given = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY, "CODEX_EXEC_BASE_URL": server.url}
        overrides = ("-o", "model.backend=codex_exec", "-o", "model.optimizer_backend=openai_chat")
        project.run("train", "mine.yaml", "--out", "run", *overrides, env=given, timeout=LONGEST).ok()
    assert [step["action"] for step in project.json("run/history.json")] == ["accept_new_best"] * 2
    assert set(looked) == {path.read_bytes() for path in (project.folder / "data/images").iterdir()}
