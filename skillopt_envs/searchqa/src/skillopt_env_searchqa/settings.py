"""The keys of `env` that this environment owns."""

from attrs import frozen
from skillopt_kernel.config.fields import at_least, option


@frozen
class SearchQASettings:
    """How a question is put to the target."""

    max_turns: int = option(1, "turns of a chat model's attempt; from the second on it checks its answer", at_least(1))
    max_completion_tokens: int = option(16384, "token limit of each reply", at_least(1))
    context_limit: int = option(6000, "characters of search results shown, whole documents; 0: all", at_least(0))
