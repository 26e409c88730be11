"""How many tokens one call of each stage sends and gets, from the sizes of skill, tasks and prompts."""

from __future__ import annotations

from attrs import define
from skillopt_kernel.loop.preparing import Prepared
from skillopt_kernel.models.pricing import estimate_tokens
from skillopt_kernel.skill import shown

from skillopt_analysis.planning.amounts import Part
from skillopt_analysis.planning.assuming import Assumed
from skillopt_analysis.planning.rehearsal import Rehearsed

REWRITTEN = 500
"""Tokens that the reply with a whole skill has beside that skill."""


@define(eq=False)
class Sizes:
    """Tokens of a call by its part. Those that an earlier run measured go before what is worked out."""

    prepared: Prepared
    assumed: Assumed
    rehearsed: Rehearsed

    def __call__(self, part: Part) -> tuple[float, float]:
        """Tokens of the prompt and of the reply of one call."""
        measured = self.assumed.measured.get((part.role, part.stage), {})
        prompt, reply = measured.get("prompt_tokens"), measured.get("completion_tokens")
        return (
            self._prompt(part) if prompt is None else prompt,
            self._reply(part) if reply is None else reply,
        )

    @property
    def _skill(self) -> int:
        return estimate_tokens(shown(self.prepared.start.text))

    @property
    def _trajectory(self) -> float:
        """One trajectory as an analyst reads it: the prompt without the skill, the reply, and the evidence."""
        prompt = max(0.0, self.rehearsed.prompts["train"] - self._skill)
        return prompt + self.assumed.replies["target"] + self.rehearsed.evidence

    def _system(self, *names: str) -> float:
        """The mean length of the system prompts with these names."""
        texts = [self.prepared.prompts[name].text for name in names if name in self.prepared.prompts]
        return sum(map(estimate_tokens, texts)) / len(texts) if texts else 0.0

    def _prompt(self, part: Part) -> float:
        if part.role == "target":
            return self.rehearsed.prompts[part.split]
        if part.role == "judge":
            return self.rehearsed.judge
        settings, reply = self.prepared.settings, self.assumed.replies["optimizer"]
        if part.stage == "analyst":
            attempts = min(
                settings.gradient.minibatch_size, settings.train.batch_size * settings.train.samples_per_task
            )
            return self._system("analyst_failure", "analyst_success") + self._skill + attempts * self._trajectory
        if part.stage == "merge":
            merged = min(settings.gradient.merge_batch_size, 4)
            return self._system("merge_failure", "merge_success", "merge_final") + self._skill + merged * reply
        if part.stage in ("slow_update", "meta_skill"):
            pairs = min(settings.optimizer.slow_update_samples, len(self.prepared.splits.train))
            return self._system(part.stage) + 2 * self._skill + pairs * 2 * self._trajectory
        return self._system(part.stage) + self._skill + reply

    def _reply(self, part: Part) -> float:
        whole = part.stage == "rewrite" or (part.stage in ("analyst", "merge") and not self.prepared.mode.budgeted)
        return self._skill + REWRITTEN if whole else self.assumed.replies[part.role]
