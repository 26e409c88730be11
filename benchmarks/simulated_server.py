"""Chat Completions of the simulated world on 127.0.0.1, in a process of its own: lean, so that it costs the least.

python benchmarks/simulated_server.py --data DIR [--latency-target S] [--latency-optimizer S]

Its first line of output is the base URL. Latencies are lognormal around their mean, drawn from the request. Beside
`/v1` there are GET /stats (calls and tokens by role, `peak` calls at once, `busy_s`: seconds of all calls together,
`span_s`: from the first call's begin to the last one's end) and POST /reset. It ends when its standard input does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import subprocess
import sys
import time
import urllib.request
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from simulated_world import World

SIGMA = 0.5
"""The deviation of a latency's logarithm."""


class Served:
    """The world, how long each role takes, and what was asked so far."""

    def __init__(self, world: World, latency: dict[str, float]) -> None:
        self.world, self.latency = world, latency
        self.reset()

    def reset(self) -> None:
        self.counts: Counter[str] = Counter()
        self.open = self.peak = 0
        self.busy = self.first = self.last = 0.0

    def stats(self) -> dict[str, Any]:
        span = round(self.last - self.first, 3)
        return {**self.counts, "peak": self.peak, "busy_s": round(self.busy, 3), "span_s": span}

    def began(self) -> float:
        now = time.monotonic()
        self.first = self.first or now
        self.open += 1
        self.peak = max(self.peak, self.open)
        return now

    def ended(self, began: float) -> None:
        self.last = time.monotonic()
        self.open -= 1
        self.busy += self.last - began

    def completion(self, body: dict[str, Any]) -> tuple[bytes, float]:
        """The response's body, and how many seconds it takes."""
        model, messages = body["model"], body["messages"]
        role = "optimizer" if "optimizer" in model else "target"
        text = self.world.reply(model, messages)
        prompt, said = sum(len(one.get("content") or "") for one in messages) // 4, len(text) // 4
        self.counts.update({f"{role}_calls": 1, f"{role}_prompt_tokens": prompt, f"{role}_completion_tokens": said})
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": prompt, "completion_tokens": said, "total_tokens": prompt + said}
        answer = {"id": "simulated", "object": "chat.completion", "created": 0, "model": model, "choices": [choice]}
        return json.dumps({**answer, "usage": usage}).encode(), self._seconds(role, messages)

    def _seconds(self, role: str, messages: list[dict[str, Any]]) -> float:
        mean = self.latency[role]
        if not mean:
            return 0.0
        generator = random.Random(zlib.crc32(json.dumps(messages).encode()))
        return min(8 * mean, generator.lognormvariate(math.log(mean) - SIGMA**2 / 2, SIGMA))


class Connection(asyncio.Protocol):
    """One client's connection, kept open: one request after the other."""

    def __init__(self, served: Served) -> None:
        self.served, self.received = served, b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, found, rest = self.received.partition(b"\r\n\r\n")
        length = 0
        for line in head.lower().split(b"\r\n") if found else ():
            if line.startswith(b"content-length:"):
                length = int(line[15:])
        if found and len(rest) >= length:
            self.received = rest[length:]
            self.answer(head.split(b" ", 2)[1].decode(), rest[:length])

    def answer(self, path: str, body: bytes) -> None:
        if path == "/stats":
            self.send(json.dumps(self.served.stats()).encode())
        elif path == "/reset":
            self.served.reset()
            self.send(b"{}")
        elif path.endswith("/models"):
            models = [{"id": name, "object": "model"} for name in ("sim-target", "sim-optimizer")]
            self.send(json.dumps({"object": "list", "data": models}).encode())
        else:
            began = self.served.began()
            reply, seconds = self.served.completion(json.loads(body))
            if seconds:
                asyncio.get_running_loop().call_later(seconds, self.finish, reply, began)
            else:
                self.finish(reply, began)

    def finish(self, reply: bytes, began: float) -> None:
        self.served.ended(began)
        self.send(reply)

    def send(self, body: bytes) -> None:
        if not self.transport.is_closing():
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            self.transport.write(head.encode() + body)


async def serve(served: Served) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(served), "127.0.0.1", 0, backlog=1024)
    sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, sys.stdin.read)


@contextmanager
def serving(data: Path, target: float = 0.0, optimizer: float = 0.0) -> Iterator[str]:
    """The base URL of a server of its own for a while; latencies in seconds."""
    command = [sys.executable, __file__, "--data", data, "--latency-target", target, "--latency-optimizer", optimizer]
    with subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None and server.stdout is not None
        url = server.stdout.readline().strip()
        if not url:
            raise SystemExit("the simulated server did not start; what it says stands above.")
        try:
            yield url
        finally:
            server.stdin.close()


def stats(url: str) -> dict[str, Any]:
    """What the server was asked since the last `reset`."""
    with urllib.request.urlopen(url.removesuffix("/v1") + "/stats", timeout=30) as response:
        found: dict[str, Any] = json.loads(response.read())
    return found


def reset(url: str) -> None:
    urllib.request.urlopen(url.removesuffix("/v1") + "/reset", data=b"", timeout=30).close()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with <split>/items.json")
    parser.add_argument("--latency-target", type=float, default=0.0, help="mean seconds of the target's replies")
    parser.add_argument("--latency-optimizer", type=float, default=0.0, help="mean seconds of the optimizer's replies")
    chosen = parser.parse_args()
    latency = {"target": chosen.latency_target, "optimizer": chosen.latency_optimizer}
    asyncio.run(serve(Served(World(chosen.data), latency)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
