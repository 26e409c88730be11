"""The keys of `env` that this environment owns."""
# ruff: noqa: RUF009 - `option` is attrs' `field`, called once for each field

from __future__ import annotations

from pathlib import Path
from typing import Literal

from attrs import frozen
from skillopt_kernel.config.fields import at_least, option
from skillopt_lib_env.scoring import ScorerChoice


@frozen
class FieldNames:
    """Which field (column) of a row is what. `a.b` names the field b of the object in the field a."""

    id: str = option("", "names the task; empty: id, key or uid, else it is made from the content")
    inputs: tuple[str, ...] = option((), "what the target is shown; empty: the fields with the usual names")
    reference: str = option("", "what is right, never shown to the target; empty: the field with a usual name")
    kind: str = option("", "the task type, for reports; empty: kind or task_type")
    split: str = option("", "train, selection or test, where the data is split already; empty: split")


@frozen
class TasksSettings:
    """Where tasks come from, how they are put to the target, and how its answers are scored."""

    fields: FieldNames = option(FieldNames, "which field of a row is what")
    scorer: ScorerChoice = option(ScorerChoice("exact"), "how an answer is compared with the reference")
    prompt: str = option(
        "", "what the target is asked, with {{field}} for the fields shown; empty: all, under headings"
    )
    answer: Literal["tags", "whole"] = option("tags", "the answer: what stands in answer tags, or the whole reply")
    reference_separator: str = option("", "divides a reference into several right answers, such as |; empty: nothing")
    max_completion_tokens: int = option(16384, "token limit of each reply", at_least(1))
    dataset: str = option("", "data set of the Hugging Face Hub, or a folder of one, in place of a file")
    dataset_config: str = option("", "configuration of the data set; empty: its only one")
    dataset_splits: tuple[str, ...] = option(
        ("train",), "its splits: one, which is split by ratio, or those for train, selection and test"
    )
    dataset_revision: str = option("", "commit or tag of the data set; empty: the newest")
    feedback: Path | None = option(None, "people's comments on outputs: rows of task, version, rating, comment")
    feedback_scope: Literal["version", "task"] = option(
        "version", "analysts see comments on outputs of the same skill only, or all on the task"
    )
