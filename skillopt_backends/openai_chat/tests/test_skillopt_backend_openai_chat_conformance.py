"""The public conformance suite of backends: either API, at the OpenAI API's address and at Azure's."""

from __future__ import annotations

from typing import Any, ClassVar

from skillopt_testkit import ChatCompletionsConformance, ResponsesConformance
from skillopt_testkit.conformance.http_chat import SECRET


class _Public:
    name = "openai_chat"

    def settings_for(self, url: str) -> Any:
        return self.settings_with(openai_base_url=url, openai_api_key=SECRET)  # type: ignore[attr-defined]


class _Azure:
    name = "openai_chat"
    key_header = "api-key"

    def settings_for(self, url: str) -> Any:
        root = url.removesuffix("/v1")
        return self.settings_with(azure_openai_endpoint=root, azure_openai_api_key=SECRET)  # type: ignore[attr-defined]


class TestChatCompletions(_Public, ChatCompletionsConformance):
    pass


class TestResponses(_Public, ResponsesConformance):
    options: ClassVar = {"openai_chat_api": "responses"}


class TestAzureChatCompletions(_Azure, ChatCompletionsConformance):
    pass


class TestAzureResponses(_Azure, ResponsesConformance):
    options: ClassVar = {"openai_chat_api": "responses"}
