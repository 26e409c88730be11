"""The OfficeQA environment: questions over a corpus of U.S. Treasury Bulletins.

Databricks, "OfficeQA", arXiv 2603.08655; scored by the published rules.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from skillopt_kernel.errors import ConfigError, DataError
from skillopt_kernel.models.requests import Message
from skillopt_kernel.records import Attempt, Score, Splits, Task
from skillopt_kernel.store.patterns import clipped
from skillopt_lib_env.data_files import Item
from skillopt_lib_env.questions import about_form
from skillopt_lib_env.split_loading import load_splits
from skillopt_lib_env.wording import few_of, one_line

from skillopt_env_officeqa.asking import Looking, converse, run_job
from skillopt_env_officeqa.corpus import Corpus, open_corpus, unchanged_path
from skillopt_env_officeqa.gold_pages import pages_text
from skillopt_env_officeqa.issues import pages_by_file
from skillopt_env_officeqa.looking import in_corpus, on_the_web
from skillopt_env_officeqa.passages import PassageIndex
from skillopt_env_officeqa.prompts import (
    FILES_TASK,
    PAGES_TASK,
    TOOL_TASK,
    WEB_TASK,
    form,
    question_text,
)
from skillopt_env_officeqa.scoring import TOLERANCES, earlier_scores, judged
from skillopt_env_officeqa.settings import OfficeQASettings
from skillopt_env_officeqa.tasks import HOW_TO_MAKE_DATA, task_of
from skillopt_env_officeqa.tools import CorpusTools
from skillopt_env_officeqa.web_search import WebSearch, web_search

if TYPE_CHECKING:
    from skillopt_kernel.interfaces import DriverContext, Judge, Target

NAME = "officeqa"
FOLDER_VARIABLE = "OFFICEQA_DOCS_DIR"
MOST_FILES_TOLD = 20
LARGE = 50_000_000
"""Bytes of a corpus whose index takes long enough to be told of."""


class OfficeQAEnvironment:
    """One instance serves all threads: it keeps nothing of an attempt."""

    isolation: Literal["thread", "process"] = "thread"

    def __init__(self, settings: OfficeQASettings, context: DriverContext) -> None:
        self._settings = settings
        self._common = context.common
        self._logger = context.logger
        # An agent program has no part in the protocol of queries: it would search by itself, or not at all.
        self.targets = frozenset({"chat"} if settings.online else {"chat", "agent"})

    def splits(self) -> Splits:
        """The splits of the configured folder or file, with corpus or search service at hand.

        Raises `DataError` for data that is missing, `ConfigError` for settings that do not go together.
        """
        self._check()
        splits = self._load()
        if not self._settings.online and self._settings.use_local_tools:
            self._make_index()  # last, since it takes long
        return splits

    def save_splits(self, folder: Path) -> None:
        """Write what a split by ratio gave below `folder`, so that it can be used again as `split_dir`."""
        self._load(folder)

    def notes(self) -> tuple[str, ...]:
        """What a reader of the summary must know to read the scores right."""
        told = []
        if self._settings.gold_sources:
            told.append(
                "env.gold_sources is true: the target was told which documents and pages hold the answer, so that the "
                "scores say nothing of how well it finds them."
            )
        if self._settings.online:
            told.append(
                f"env.search_mode is custom_search: the target searched the web ({self._settings.search_provider}), "
                f"which may give other results another time."
            )
        return tuple(told)

    def attempt(self, task: Task, skill: str, target: Target) -> Attempt:
        """Let the target look for the answer, as `search_mode` says; an agent program looks into files."""
        settings = self._settings
        pages = self._gold_pages(task)
        if target.kind == "agent":
            files = {f"corpus/{each.name}": unchanged_path(each) for each in self._visible(task).documents.values()}
            told = FILES_TASK if settings.use_local_tools else PAGES_TASK
            question = self._question(task, pages)
            kept = dict(files) if settings.use_local_tools else {}
            return run_job(form(told).job(question), skill, kept, target, settings.max_tool_turns)
        told, looking = self._ways(task)
        messages = [Message("system", form(told).system(skill)), Message("user", self._question(task, pages))]
        limits = {"max_turns": settings.max_tool_turns, "max_tokens": settings.max_completion_tokens}
        return converse(messages, target, looking, **limits)

    def score(self, task: Task, attempt: Attempt, judge: Judge) -> Score:
        """hard: the published rules within `env.tolerance`; soft: at how many of the published tolerances it is right.

        By name: `official_0`, `official_0.1`, `official_1`, `official_5` (percent), `reference_em` and `reference_f1`.
        """
        reference = task.reference["answer"]
        verdict = judged(attempt.output, reference, self._settings.tolerance)
        official = {name: float(judged(attempt.output, reference, limit).right) for name, limit in TOLERANCES.items()}
        exact, overlap = earlier_scores(str(attempt.state.get("earlier", "")), reference)
        answered = bool(attempt.state.get("earlier"))
        earlier = {"reference_em": exact if answered else 0.0, "reference_f1": overlap if answered else 0.0}
        soft = 1.0 if verdict.right else sum(official.values()) / len(official)
        wrong = f"Wrong: {verdict.reason}; right: {reference!r}, answered: {clipped(attempt.output, 200)!r}."
        feedback = " ".join(filter(None, ["Right." if verdict.right else wrong, about_form(attempt.state)]))
        return Score(float(verdict.right), soft, feedback, {**official, **earlier})

    def evidence(self, task: Task, attempt: Attempt) -> Mapping[str, str]:
        """For analysts: the answer, where it stands, and which of these documents the target named when it looked."""
        reference = task.reference
        places = "\n".join(f"- {place}" for place in (*reference["source_files"], *reference["source_docs"]))
        looked = " ".join(call.arguments for turn in attempt.trajectory for call in turn.tool_calls)
        sections = {"Right answer": reference["answer"], "Where it stands": places or "The data does not say."}
        if looked and reference["source_files"]:
            named = [name for name in reference["source_files"] if name in looked]
            sections["Of these, looked into"] = "\n".join(f"- {name}" for name in named) or "None of them."
        return sections

    def describe(self, task: Task) -> str:
        """The question on one line, shortened."""
        return one_line(str(task.inputs.get("question", "")))

    def initial_skill(self) -> str:
        """The skill that training starts from when `env.skill_init` names none."""
        from importlib.resources import files

        return files("skillopt_env_officeqa").joinpath("initial_skill.md").read_text("utf-8")

    @cached_property
    def _corpus(self) -> Corpus:
        settings, variable = self._settings, os.environ.get(FOLDER_VARIABLE, "").strip()
        for named, roots in (
            ("env.docs_dirs", settings.docs_dirs),
            ("env.data_dirs", settings.data_dirs),
            (FOLDER_VARIABLE, (Path(variable).expanduser(),) if variable else ()),
        ):
            if roots:
                return open_corpus(roots, named)
        raise DataError(
            f"no documents are named: set env.data_dirs, or the environment variable {FOLDER_VARIABLE}, to the "
            f"folder of the corpus (the README of skillopt-env-officeqa tells where it comes from)."
        )

    @cached_property
    def _corpus_digest(self) -> str:
        return self._corpus.digest()

    @cached_property
    def _index(self) -> PassageIndex:
        return PassageIndex(self._corpus, self._settings.index_dir)

    @cached_property
    def _service(self) -> WebSearch:
        return web_search(self._settings)

    def _check(self) -> None:
        """Find out before the run what would fail in each attempt."""
        settings = self._settings
        if settings.docs_dirs:
            self._logger.warning(
                "env.docs_dirs is the older name of env.data_dirs, and counts in its place; write that"
            )
        if settings.online:
            _ = self._service
            return
        if not settings.use_local_tools and not settings.gold_sources:
            raise ConfigError(
                "env.use_local_tools is false, so that the target would be given neither tools nor pages. Set "
                "env.gold_sources to true to show it the pages that hold the answer, or let it use the tools."
            )
        for reason, names in self._corpus.left_out.items():
            self._logger.warning("%d files of the corpus %s and are left out: %s", len(names), reason, few_of(names))

    def _make_index(self) -> None:
        size = sum(each.size for each in self._corpus.documents.values())
        if size > LARGE and not self._index.is_made:
            folder = self._settings.index_dir
            kept = f"it is kept in {folder}" if folder else "env.index_dir names a folder that keeps it for later runs"
            self._logger.warning(
                f"the search index of {len(self._corpus.documents)} documents ({size / 1e6:.0f} MB) is being made, "
                f"which takes a minute or two for half a gigabyte; {kept}"
            )
        self._index.make()

    def _load(self, folder: Path | None = None) -> Splits:
        corpus = "" if self._settings.online else self._corpus_digest

        def to_task(item: Item) -> Task:
            return task_of(item, corpus=corpus, gold_sources=self._settings.gold_sources)

        return load_splits(self._common, to_task, name=NAME, folder=folder, cure=HOW_TO_MAKE_DATA)

    def _ways(self, task: Task) -> tuple[str, Looking | None]:
        """What a chat model is told of the task, and how it may look."""
        if self._settings.online:
            most = self._settings.max_queries_per_turn
            return WEB_TASK.format(queries=most), on_the_web(self._service, most)
        if not self._settings.use_local_tools:
            return PAGES_TASK, None
        visible = self._visible(task)
        return TOOL_TASK, in_corpus(CorpusTools(visible, self._index, whole=visible is self._corpus))

    def _visible(self, task: Task) -> Corpus:
        """The documents that the target may look into: with gold sources those only, where any of them is there."""
        named = task.inputs.get("source_files") or ()
        only = self._corpus.only(named) if named else self._corpus
        return only if only.documents else self._corpus

    def _gold_pages(self, task: Task) -> str:
        if not self._settings.gold_sources or self._settings.online:
            return ""
        pages = pages_by_file(task.inputs["source_files"], task.inputs["source_docs"])
        return pages_text(self._corpus.roots, pages)

    def _question(self, task: Task, pages: str) -> str:
        files = task.inputs.get("source_files", ())[:MOST_FILES_TOLD]
        return question_text(
            task.inputs["question"], pages=pages, files=files, addresses=task.inputs.get("source_docs", ())
        )
