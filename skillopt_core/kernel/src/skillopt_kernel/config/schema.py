"""The kernel's own keys: one frozen attrs class for each section.

Drivers own the further keys of the section that names them. A `null` in a file means "not set".
"""
# ruff: noqa: RUF009 - `option` is attrs' `field`, called once for each field

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from attrs import NOTHING, frozen

from skillopt_kernel.config.fields import above, at_least, between, option

Control = Literal["fixed", "autonomous", "none"]
Pairs = Literal["mixed", "changed", "unchanged"]
FAILURE_BELOW = 1e-9
"""The default of `gradient.failure_below`: any partial success counts as a success."""

Effort = Literal["", "low", "medium", "high", "xhigh", "max"]


@frozen
class TrainSettings:
    """How long, and in which portions."""

    num_epochs: int = option(4, "passes over the training tasks", at_least(1))
    train_size: int = option(0, "number of training tasks; 0: as many as the data has", at_least(0))
    batch_size: int = option(40, "tasks of one accumulation batch", at_least(1))
    accumulation: int = option(1, "batches rolled out before one update", at_least(1))
    samples_per_task: int = option(1, "attempts at each training task of a step", at_least(1))
    seed: int = option(42, "master seed of everything random")
    patience: int = option(0, "end after so many epochs in a row without a new best skill; 0: never", at_least(0))


@frozen
class GradientSettings:
    """How trajectories become proposals, and proposals one update."""

    minibatch_size: int = option(8, "trajectories that one analyst reads", at_least(1))
    merge_batch_size: int = option(8, "proposals that one merge call reads", at_least(2))
    analyst_workers: int = option(16, "analyst and merge calls at the same time", at_least(1), free=True)
    failure_only: bool = option(False, "ask no analysts of successes")
    failure_below: float = option(FAILURE_BELOW, "a task whose hard score is below this is a failure", above(0, 1))
    keep_step_buffer: bool = option(False, "tell of earlier epochs' steps too: the newest, about 4,000 tokens")


@frozen
class OptimizerSettings:
    """How much may change in one step, and what an epoch ends with."""

    lr_scheduler: str = option("cosine", "scheduler of the edit budget, by name")
    lr_control_mode: Control = option("fixed", "budget: the scheduler's (fixed), the optimizer's (autonomous), none")
    skill_update_mode: str = option("patch", "update mode, by name")
    max_skill_tokens: int = option(0, "a longer candidate is refused; a token is four bytes; 0: no limit", at_least(0))
    use_slow_update: bool = option(True, "at each epoch's end, compare skills and write guidance")
    slow_update_samples: int = option(20, "training tasks of that comparison", at_least(0))
    slow_update_gate_with_selection: bool = option(True, "let the gate judge the guidance; else it is written")
    longitudinal_pair_policy: Pairs = option("mixed", "which pairs of the comparison are shown")
    use_meta_skill: bool = option(True, "keep advice for the optimizer from epoch to epoch")


@frozen
class EvaluationSettings:
    """How a candidate is judged, and what the final test covers."""

    use_gate: bool = option(True, "keep a candidate only if it scores strictly higher")
    gate_metric: str = option("hard", "gate, by name")
    sel_env_num: int = option(0, "selection tasks used, the first N; 0: all", at_least(0))
    test_env_num: int = option(0, "test tasks used, the first N; 0: all", at_least(0))
    missing_retries: int = option(
        2, "how often a task without a score is asked again, after all others", at_least(0), free=True
    )
    min_coverage: float = option(
        0.95, "share of the selection tasks that must be scored for both skills to decide", between(0, 1)
    )
    eval_test: bool = option(True, "evaluate the first, best and last skill on the test tasks at the end")
    deterministic_target: bool = option(False, "the target always answers alike: never ask it the same thing again")


@frozen
class EnvSettings:
    """Which tasks, from where, and how they are run. The environment owns the section's further keys."""

    name: str = option("", "environment, by name")
    skill_init: Path | None = option(
        None, "start skill: a file, or a finished run; empty: the environment's", free=True
    )
    out_root: Path | None = option(None, "run directory; empty: outputs/<name>-<fingerprint>", path="output", free=True)
    split_mode: Literal["ratio", "split_dir"] = option("ratio", "ratio: split data_path; split_dir: split already")
    split_ratio: str = option("2:1:7", "parts train:selection:test, 0: none; or shares that add up to 1")
    split_seed: int = option(42, "seed of the split's shuffle; 0 is a seed like any other")
    split_dir: Path | None = option(None, "folder with train, val and test", path="lazy", free=True)
    data_path: Path | None = option(None, "data to split", path="lazy", free=True)
    split_output_dir: Path | None = option(None, "where a split by ratio is written", path="output", free=True)
    limit: int = option(0, "use the first N tasks of each split; 0: all", at_least(0))
    workers: int = option(16, "attempts at the same time", at_least(1), free=True)
    exec_timeout: float = option(120.0, "seconds for one model call of an attempt", above(0), free=True)
    attempt_timeout: float = option(0.0, "seconds for a whole attempt; 0: no limit", at_least(0), free=True)


@frozen
class Price:
    """What a model costs, in US dollars per million tokens."""

    input: float = option(NOTHING, "of the prompt", at_least(0))
    output: float = option(NOTHING, "of the reply", at_least(0))
    cached_input: float | None = option(None, "of what the provider has cached; empty: as input", at_least(0))


@frozen
class ModelSettings:
    """Which model plays which role. Backends own the further keys, each with its prefix.

    `optimizer`, `target` and `judge` are model names; empty means the backend's own default. The judge's backend,
    model and settings default to the optimizer's.
    """

    backend: str = option("azure_openai", "label that names the backends of both roles")
    optimizer_backend: str | None = option(None, "backend of the optimizer; empty: by the label")
    target_backend: str | None = option(None, "backend of the target; empty: by the label")
    judge_backend: str | None = option(None, "backend of the judge; empty: the optimizer's")
    optimizer: str | None = option(None, "model of the optimizer; empty: its backend's default")
    target: str | None = option(None, "model of the target; empty: its backend's default")
    judge: str | None = option(None, "model of the judge; empty: the optimizer's")
    reasoning_effort: Effort = option("medium", 'reasoning effort of the optimizer; "": off')
    rewrite_reasoning_effort: Effort = option("", 'reasoning effort of whole rewrites; "": as above')
    max_rejections: int = option(
        5, "requests in a row that a model may reject for the same reason; 0: any number", at_least(0), free=True
    )
    rewrite_max_completion_tokens: int = option(64000, "token limit of whole rewrites", at_least(1))
    prices: Mapping[str, Price] = option(dict, "model -> its price, where no public one is right", free=True)


@frozen
class RoleLimits:
    """What calls may use; `None`: without a limit."""

    usd: float | None = option(None, "US dollars; empty: no limit", above(0), free=True)
    tokens: int | None = option(None, "tokens of prompts and replies; empty: no limit", at_least(1), free=True)
    calls: int | None = option(None, "requests, each try of one counted; empty: no limit", at_least(1), free=True)


@frozen
class LimitsByRole:
    """Limits of single roles."""

    optimizer: RoleLimits = option(RoleLimits, "of the optimizer's calls")
    target: RoleLimits = option(RoleLimits, "of the target's calls")
    judge: RoleLimits = option(RoleLimits, "of the judge's calls")


@frozen
class Assumed:
    """What a call is taken to use whose usage or price nobody tells."""

    usd: float | None = option(None, "US dollars", at_least(0))
    tokens: int | None = option(None, "tokens of prompt and reply", at_least(0))


@frozen
class BudgetSettings(RoleLimits):
    """What the run may use, all its processes together; reserved before each call."""

    wall_minutes: float | None = option(None, "minutes that it may run; empty: no limit", above(0), free=True)
    assume_per_call: Assumed = option(Assumed, "what a call is taken to use that does not tell", free=True)
    reserve_final: float | None = option(
        None, "share kept for the final evaluation; empty: what it is going to use", between(0, 1), free=True
    )
    roles: LimitsByRole = option(LimitsByRole, "limits of single roles, beside the others", free=True)


@frozen
class HooksSettings:
    """Plugins of the loop."""

    plugins: tuple[str, ...] = option((), "hook plugins: installed names, or objects as package.module:name")
    path: tuple[Path, ...] = option((), "folders where such objects may live")
    settings: Mapping[str, Any] = option(dict, "settings by plugin name")
    disable: tuple[str, ...] = option((), "slow_update, meta_skill or observers that are not to run")
    override: Mapping[str, str] = option(dict, "stage -> function that is asked instead")
    wrap: Mapping[str, str] = option(dict, "stage -> generator function around it")
    strict: bool = option(False, "an observer that fails ends the run", free=True)


@frozen
class ExecutionSettings:
    """Where attempts run."""

    executor: str = option("auto", "executor, by name; auto: as the environment asks", free=True)
    require_isolation: bool = option(False, "run no agent that can see more than its workspace and its home", free=True)


@frozen
class PromptFile:
    """One entry of the section `prompts`, whose keys are the prompts' names."""

    path: Path = option(Path(), "Markdown file that is used instead of the prompt of that name")


SECTIONS: dict[str, type] = {
    "train": TrainSettings, "gradient": GradientSettings, "optimizer": OptimizerSettings,
    "evaluation": EvaluationSettings, "env": EnvSettings, "model": ModelSettings, "budget": BudgetSettings,
    "hooks": HooksSettings, "execution": ExecutionSettings,
}  # fmt: skip
"""Section -> the class of the kernel's own keys. Beside them stand `prompts` and `_base_`."""
