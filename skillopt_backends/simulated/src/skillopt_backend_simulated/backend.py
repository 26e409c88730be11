"""The backend: one simulated model a role, made of a world and nothing else."""

from __future__ import annotations

import time
from collections.abc import Mapping

import attrs
from attrs import field, frozen
from skillopt_kernel.errors import CallTimeout, ConfigError, ContextTooLong, PassingError, RefusedError
from skillopt_kernel.interfaces import DriverContext, Finding
from skillopt_kernel.models.requests import ChatReply, ChatRequest
from skillopt_kernel.records import Usage

from skillopt_backend_simulated.asked import Asked, digest
from skillopt_backend_simulated.draws import Draws, Ordinals
from skillopt_backend_simulated.faults import malformed
from skillopt_backend_simulated.loading import load_world
from skillopt_backend_simulated.optimizer import optimizer_reply
from skillopt_backend_simulated.settings import SimulatedSettings
from skillopt_backend_simulated.target import answer_question, judge_answer
from skillopt_backend_simulated.world import World
from skillopt_backend_simulated.world_file import Faults

CHAT = frozenset({"chat"})
ROLES = ("optimizer", "target", "judge")
CHARACTERS_A_TOKEN = 4
"""How this model counts: its own truth, since it has no tokenizer."""


def make_backend(settings: SimulatedSettings, context: DriverContext) -> SimulatedBackend:
    """The backend of one role. Raises `ConfigError` or `DataError` for a world that cannot be used."""
    return SimulatedBackend(settings, load_world(settings.world), context.model or "simulated")


@frozen
class SimulatedBackend:
    """Implements `Backend`: each role as a chat model, without a network."""

    settings: SimulatedSettings
    world: World
    model: str = "simulated"
    tells = frozenset({"tokens", "usd"})

    @property
    def capabilities(self) -> Mapping[str, frozenset[str]]:
        return dict.fromkeys(ROLES, CHAT)

    def open_chat(self, role: str) -> SimulatedModel:
        if role not in ROLES:
            raise ConfigError(f"the backend simulated plays {', '.join(ROLES)}, not {role!r}.")
        world, told = self.world, self.settings
        quality = world.file.optimizer if role == "optimizer" else world.file.target
        names = {one.name for one in attrs.fields(Faults)}
        overrides = {name: value for name, value in attrs.asdict(told).items() if name in names and value is not None}
        return SimulatedModel(
            model=self.model,
            role=role,
            world=world,
            draws=Draws((world.file.seed if told.seed is None else told.seed,)),
            noise=world.file.target.noise if told.noise is None else told.noise,
            lapses=world.file.target.lapses if told.lapses is None else told.lapses,
            faults=attrs.evolve(world.file.faults, **overrides),
            latency=quality.latency if told.latency is None else told.latency,
            latency_sigma=quality.latency_sigma,
        )

    def open_agent(self, role: str) -> SimulatedModel:
        raise ConfigError("the backend simulated is a chat model and runs no agent's job; name an agent backend.")

    def endpoint(self, role: str) -> str:
        return "simulated"

    def check(self, role: str) -> list[Finding]:
        file = self.world.file
        return [
            (
                "ok",
                f"the world {self.world.name} has {len(file.kinds)} kinds of task, {len(file.rules)} rules and "
                f"{len(self.world.questions)} questions",
            )
        ]


@frozen
class SimulatedModel:
    """Implements `ChatModel` for one role. Used from many threads at once.

    A reply is a function of the request alone, so neither the order of threads nor a resumed run changes it. Two
    things count how often the same request was asked: whether a *try* fails in passing (so that a retry can
    succeed), and, with `noise`, which *sample* of the target's answer this is. A request that bears a seed of
    its own is another request, and its samples are counted apart.
    """

    model: str
    role: str
    world: World
    draws: Draws
    noise: float
    lapses: float
    faults: Faults
    latency: float
    latency_sigma: float
    _tries: Ordinals = field(factory=Ordinals, init=False)
    _samples: Ordinals = field(factory=Ordinals, init=False)

    def complete(self, request: ChatRequest) -> ChatReply:
        """The reply, after the model's latency. Raises `PassingError`, `RefusedError` or `ContextTooLong`."""
        key = digest(self.role, self.model, request)
        call = self.draws.under(self.role, key)
        this_try = self._tries.next(key)
        prompt_tokens = _tokens("".join(message.text for message in request.messages))
        self._fail_at_once(call, this_try, prompt_tokens)
        self._wait(call.lognormal(self.latency, self.latency_sigma, "latency", this_try), request.deadline)
        if self.role == "target" and self.noise > 0.0:
            call = call.under("sample", self._samples.next(key))
        reply = self._reply(call, request)
        completion_tokens = _tokens(reply.text)
        if request.max_tokens is not None and completion_tokens > request.max_tokens:
            cut = reply.text[: request.max_tokens * CHARACTERS_A_TOKEN]
            reply, completion_tokens = ChatReply(cut, finish="length"), request.max_tokens
        usage = Usage(calls=1, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens, usd=0.0)
        return attrs.evolve(reply, usage=usage)

    def _fail_at_once(self, call: Draws, this_try: int, prompt_tokens: int) -> None:
        faults = self.faults
        if faults.context_tokens and prompt_tokens > faults.context_tokens:
            raise ContextTooLong(f"the prompt has {prompt_tokens} tokens; {faults.context_tokens} are allowed")
        if call.happens(faults.rate_limits, "rate limit", this_try):
            raise PassingError("the simulated endpoint is asked too often", retry_after=faults.retry_after)
        if call.happens(faults.server_errors, "server error", this_try):
            raise PassingError("the simulated endpoint failed (server error)")
        if call.happens(faults.refusals, "refusal"):
            raise RefusedError("the simulated model refused to answer")

    def _wait(self, seconds: float, deadline: float | None) -> None:
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and seconds > left:
            time.sleep(max(0.0, left))
            raise CallTimeout(f"the simulated model needed {seconds:.1f} s, longer than the call had left")
        if seconds > 0.0:
            time.sleep(seconds)

    def _reply(self, call: Draws, request: ChatRequest) -> ChatReply:
        if call.happens(self.faults.empty_replies, "empty"):
            return ChatReply("", finish="empty")
        asked = Asked.of(request)
        if self.role == "target":
            text = answer_question(self.world, self.draws.under("target"), call, self.noise, asked, self.lapses)
        elif self.role == "judge" or asked.stage == "judge":
            text = judge_answer(self.world, asked)
        else:
            text = optimizer_reply(self.world, call, asked)
        if call.happens(self.faults.malformed_replies, "malformed"):
            return malformed(text, call)
        return ChatReply(text)


def _tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_A_TOKEN)
