from skillopt_testkit import ChatCompletionsConformance
from skillopt_testkit.conformance.http_chat import SECRET


class TestConformance(ChatCompletionsConformance):
    name = "minimax_chat"

    def settings_for(self, url):
        return self.settings_with(base_url=url, api_key=SECRET)
