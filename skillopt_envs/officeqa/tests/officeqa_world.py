"""What these tests share: the small corpus, environments on it, scripted models, one that looks, a service."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from skillopt_env_officeqa.settings import OfficeQASettings
from skillopt_kernel.config.schema import EnvSettings
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.loop.target import AttemptTarget
from skillopt_kernel.models.requests import ChatReply
from skillopt_kernel.plugins.discovery import make_driver
from skillopt_kernel.records import Task, ToolCall
from skillopt_lib_env.data_files import read_items
from skillopt_testkit.wording import proposal, text_of

DATA = Path(__file__).parent / "data"
CORPUS = DATA / "corpus"
QUESTIONS = DATA / "officeqa_full.csv"
RULE = "Search for the row's name and the month before you answer."
SPOILER = "Answer from memory."

TASK = Task(
    "HM0003",
    "easy",
    {"question": 'What is the amount of "Customs" for June 1942?', "corpus": ""},
    {
        "answer": "636.6",
        "source_files": ["treasury_bulletin_1942_07.txt"],
        "source_docs": ["https://fraser.stlouisfed.org/title/treasury-bulletin-407/july-1942-7942?page=3"],
    },
)


def environment(*, logger=None, **settings):
    """The environment on the small corpus; keys of the kernel's (`split_dir`, ...) among `settings`."""
    settings = {"data_dirs": (CORPUS,), "split_mode": "split_dir", **settings}
    names = [name for name in settings if name.startswith("split_") or name == "data_path"]
    common = EnvSettings(name="officeqa", **{name: settings.pop(name) for name in names})
    context = DriverContext(logger or logging.getLogger("test"), seed=1, common=common)
    return make_driver("env", "officeqa", OfficeQASettings(**settings), context)


def call(name, number=1, **arguments):
    return ToolCall(f"c{number}", name, json.dumps(arguments))


def calls(*made, text=""):
    return ChatReply(text, tuple(made), finish="tool_calls")


class ScriptedModel:
    """A chat model that gives its replies in order and keeps the requests."""

    def __init__(self, *replies):
        self.replies = [ChatReply(reply) if isinstance(reply, str) else reply for reply in replies]
        self.requests = []

    def complete(self, request):
        self.requests.append(request)
        return self.replies[min(len(self.requests), len(self.replies)) - 1]

    def target(self):
        kept = {"stage": "rollout", "deadline": None, "call_timeout": None, "stop": threading.Event()}
        return AttemptTarget(self.complete, None, **kept)


class SearchService:
    """A search service on this machine: answers in order, the last one repeated; keeps what it was asked.

    pause: seconds after each byte of an answer
    """

    def __init__(self, *answers):
        self.answers, self.asked, self.pause = list(answers), [], 0.0
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                service.asked.append((body, self.headers.get("Authorization")))
                status, answer = service.answers[min(len(service.asked), len(service.answers)) - 1]
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                if status in (301, 302, 307):
                    self.send_header("Location", "http://127.0.0.1:9/elsewhere")
                self.end_headers()
                for byte in [data] if not service.pause else [data[n : n + 1] for n in range(len(data))]:
                    try:
                        self.wfile.write(byte)
                    except OSError:  # nobody listens any more
                        return
                    time.sleep(service.pause)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/search"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def result(number, **more):
    return {"title": f"Title {number}", "url": f"https://example.org/{number}", "snippet": f"Excerpt {number}", **more}


def queries(*texts):
    return f"Looking.\n<search_queries>{json.dumps(texts)}</search_queries>"


class World:
    """Both models behind the loopback server: the target looks with its tools once the skill tells it to.

    It takes the figures from what the tools answer, so that the trained skill is right only if they work.
    """

    def __init__(self):
        self.answers = {row.fields["question"]: row.fields["answer"] for row in read_items(QUESTIONS)}

    def __call__(self, body):
        texts = [text_of(message) for message in body["messages"]]
        asked = "\n".join(texts)
        if body["model"] == "optimizer":
            return proposal(SPOILER if RULE in asked else RULE)
        if RULE not in asked or SPOILER in asked:
            return "I remember it well.\n<answer>17</answer>"
        return self.looked(texts)

    def looked(self, texts):
        from skillopt_testkit.servers import Reply

        question = next(text for text in texts if text.startswith("## Question"))
        row = re.search(r'"(.+?)"', question)[1]
        months = re.findall(r"for (\w+ \d{4})", question)
        results = [text for text in texts if re.match(r"\S+\.txt, lines|\d+: ", text)]
        figures = []
        for month in months:
            wanted = next((figure for text in results if (figure := figure_of(text, row, month))), None)
            if wanted is None:
                return Reply(tool_calls=(self.next_call(results, row, month),))
            figures.append(wanted)
        return f"Read it.\n<answer>{figures[0] if len(figures) == 1 else '[' + ', '.join(figures) + ']'}</answer>"

    def next_call(self, results, row, month):
        blocks = [block for text in results for block in text.split("\n\n") if ", lines " in block]
        passages = [block for block in blocks if month in block and f"| {row} |" in block]
        if passages:  # the passage is found: read it whole
            path, first, last = re.search(r"(\S+\.txt), lines (\d+) to (\d+):", passages[0]).groups()
            arguments = {"path": path, "start": int(first), "limit": int(last) - int(first) + 1}
            return {"id": f"read-{len(results)}", "type": "function",
                    "function": {"name": "read", "arguments": json.dumps(arguments)}}  # fmt: skip
        arguments = json.dumps({"query": f"{row} {month}"})
        return {"id": f"search-{len(results)}", "type": "function",
                "function": {"name": "search", "arguments": arguments}}  # fmt: skip


def figure_of(text, row, month):
    """The figure of `row` in the column `month` of a table that was read whole, newest column first."""
    heads = None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] == "Item":
            heads = cells
        if heads and cells[0] == row and month in heads:
            return cells[heads.index(month)].replace(",", "")
    return None
