"""The keys of `env` that this environment owns."""

from attrs import frozen
from skillopt_kernel.config.fields import at_least, option


@frozen
class LiveMathematicianBenchSettings:
    """Which questions there are, and how they are put to the target."""

    shuffle_choices: bool = option(
        True, "shuffle the choices of each question, by seed and id; false: as in the data, where A is always right"
    )
    use_theorem: bool = option(
        False, "show the target the theorem that the question was made of: a part of the solution"
    )
    use_sketch: bool = option(False, "show the target the sketch of the theorem's proof")
    clean_items: bool = option(
        False, "leave out the questions that offer the stock option, which is right wherever it stands"
    )
    max_turns: int = option(1, "turns of a chat model's attempt; from the second on it checks its answer", at_least(1))
    max_completion_tokens: int = option(16384, "token limit of each reply", at_least(1))
