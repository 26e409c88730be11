"""What every redactor must keep."""

from __future__ import annotations

import hashlib
import uuid
from typing import Any, ClassVar

from skillopt_testkit.conformance.common import PluginConformance

ORDINARY = (
    "",
    "x",
    "\x00 \ud800 İ 日本語 🙂",
    "429 Too Many Requests: the limit of 8000 tokens a minute is reached; try again in 20 s",
    "config.yaml:3:5: model.api_key: is no key; did you mean 'openai_compatible_api_key'?",
    "steps/step_0001/rollout/predictions/task-0001-000123-a1b2c3/conversation.json, 2026-11-30T01:02:03.456Z",
    f"skill {hashlib.sha256(b'a').hexdigest()[:16]}, fingerprint key: {hashlib.sha256(b'b').hexdigest()}",
    f"token {hashlib.md5(b'c').hexdigest()} of {hashlib.sha1(b'd').hexdigest()}, run {uuid.UUID(int=12345 << 64)}",
    "def attempt(self, api_key: str | None = None): return client(api_key=self.api_key, token=read_token())",
)


class RedactorConformance(PluginConformance):
    """Subclass it and give `name` and `secrets`: texts, each with what must be found in it."""

    kind = "redactor"
    secrets: ClassVar[tuple[tuple[str, str], ...]] = ()

    def test_secrets_are_found_where_they_are(self, driver: Any) -> None:
        assert self.secrets, "give at least one text with the secret in it"
        for text, secret in self.secrets:
            for before, after in (("", ""), ("İ\n", "\nİ"), ("so ", " and on")):
                whole = before + text + after
                start = whole.index(secret)
                places = list(driver.find(whole))
                covered = any(begin <= start and start + len(secret) <= end for begin, end, _ in places)
                assert covered, f"{secret!r} was not found in {whole!r}: {places}"

    def test_places_lie_in_the_text_and_are_named(self, driver: Any) -> None:
        for text, _ in self.secrets:
            for start, end, name in driver.find(text):
                assert 0 <= start < end <= len(text)
                assert isinstance(name, str) and name.strip()

    def test_ordinary_text_and_digests_are_left_alone(self, driver: Any) -> None:
        for text in ORDINARY:
            found = [text[start:end] for start, end, _ in driver.find(text)]
            assert not found, f"{found} in {text!r}"

    def test_the_same_text_gives_the_same_places(self, driver: Any) -> None:
        text = "\n".join(text for text, _ in self.secrets)
        assert list(driver.find(text)) == list(driver.find(text))
