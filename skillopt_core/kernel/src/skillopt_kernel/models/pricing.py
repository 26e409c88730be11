"""What a call cost, by the public prices of its provider; unknown where nobody publishes one."""

from __future__ import annotations

from skillopt_kernel.records import Usage


def usd_of(model: str, endpoint: str, usage: Usage) -> float | None:
    """US dollars of one call, or `None` when provider, model or tokens are not known.

    What the provider itself said wins. A price is looked up by the endpoint's address, so that a local server
    that calls its model `gpt-4o` costs nothing known rather than what OpenAI asks for that name.
    """
    if usage.usd is not None:
        return usage.usd
    if usage.prompt_tokens is None or usage.completion_tokens is None or not endpoint.startswith("http"):
        return None
    import genai_prices

    tokens = genai_prices.Usage(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        cache_read_tokens=usage.cached_tokens or 0,
    )
    try:
        price = genai_prices.calc_price(tokens, model_ref=model, provider_api_url=endpoint)
    except (LookupError, ValueError):
        return None
    return float(price.total_price)


def estimate_tokens(text: str) -> int:
    """An estimate: one token for four bytes of UTF-8, rounded up. For displays and `optimizer.max_skill_tokens`.

    Never for a price: what a text costs depends on the model that reads it.
    """
    return -(-len(text.encode("utf-8", "replace")) // 4)
