"""What a call cost: by the prices that the user gave (`model.prices`), by what the provider says, by public prices.

`model.prices` is a mapping of a model's name to a `skillopt_kernel.config.schema.Price` (USD per million tokens).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from attrs import field, frozen

from skillopt_kernel.models.requests import AgentJob, ChatRequest, ImagePart
from skillopt_kernel.records import Usage

if TYPE_CHECKING:
    from skillopt_kernel.config.schema import Price

TOKENS_AROUND = 16
TOKENS_OF_IMAGE = 6_000

NO_PRICES: Mapping[str, Price] = MappingProxyType({})


@frozen
class Expense:
    """A request as a budget sees it before it is sent.

    prompt_tokens, reply_tokens  at most; `None`: nothing limits the reply
    price     dollars of a usage, `None` where nobody knows
    deadline  `time.monotonic()` until which it may wait
    reserved  gets its number in the ledger, and whether it may have used all that was reserved
    warnings  get a sentence for each limit of which half, or four fifths, are used now
    """

    role: str
    stage: str
    prompt_tokens: int
    reply_tokens: int | None
    price: Callable[[Usage], float | None]
    deadline: float | None = None
    reserved: dict[int, bool] = field(factory=dict)
    warnings: list[str] = field(factory=list)


def usd_of(model: str, endpoint: str, usage: Usage, prices: Mapping[str, Price] = NO_PRICES) -> float | None:
    """US dollars of one call, or `None` when provider, model or tokens are not known.

    prices: what the user gave (`model.prices`), which wins over all; then what the provider itself said. A public
    price is looked up by the endpoint's address, so that a local server that calls its model `gpt-4o` costs nothing
    known rather than what OpenAI asks for that name. With made-up tokens it tells what a call may cost.
    """
    given, told = prices.get(model), None not in (usage.prompt_tokens, usage.completion_tokens)
    tokens = read, written, cached = usage.prompt_tokens or 0, usage.completion_tokens or 0, usage.cached_tokens or 0
    if given is not None and told:
        cached = 0 if given.cached_input is None else min(cached, read)
        return ((read - cached) * given.input + cached * (given.cached_input or 0) + written * given.output) / 1e6
    if usage.usd is not None or not told or not endpoint.startswith("http"):
        return usage.usd
    # To find out that there is none takes as long as to ask an endpoint near by.
    return _public_usd(model, endpoint, *tokens) if _has_public_price(model, endpoint) else None


@lru_cache(maxsize=256)
def _has_public_price(model: str, endpoint: str) -> bool:
    return _public_usd(model, endpoint, 1, 1, 0) is not None


def _public_usd(model: str, endpoint: str, read: int, written: int, cached: int) -> float | None:
    import genai_prices

    tokens = genai_prices.Usage(input_tokens=read, output_tokens=written, cache_read_tokens=cached)
    try:
        return float(genai_prices.calc_price(tokens, model_ref=model, provider_api_url=endpoint).total_price)
    except (LookupError, ValueError):
        return None


def estimate_tokens(text: str) -> int:
    """An estimate: one token for four bytes of UTF-8, rounded up. For displays and `optimizer.max_skill_tokens`.

    Never for a price: what a text costs depends on the model that reads it.
    """
    return -(-len(text.encode("utf-8", "replace")) // 4)


def most_prompt_tokens(request: ChatRequest | AgentJob) -> int:
    """The most tokens that a prompt can have, for reservations: no tokenizer makes more of a text than it has bytes.

    Beside the texts, `TOKENS_AROUND` for each message and tool, and `TOKENS_OF_IMAGE` for each image. Of an agent's
    job it is no bound: the agent asks its model as often as it likes.
    """
    if isinstance(request, AgentJob):
        return len(f"{request.prompt}{request.skill}".encode("utf-8", "replace"))
    texts, images = [json.dumps(request.schema)] if request.schema else [], 0
    for message in request.messages:
        texts += [message.text, *(f"{call.name} {call.arguments}" for call in message.tool_calls)]
        parts = () if isinstance(message.content, str) else message.content
        images += sum(isinstance(part, ImagePart) for part in parts)
    texts += [json.dumps([tool.name, tool.description, dict(tool.parameters)]) for tool in request.tools]
    around = TOKENS_AROUND * (1 + len(request.messages) + len(request.tools))
    return sum(len(text.encode("utf-8", "replace")) for text in texts) + around + TOKENS_OF_IMAGE * images
