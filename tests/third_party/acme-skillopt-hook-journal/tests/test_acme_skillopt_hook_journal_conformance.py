import pytest
from skillopt_testkit import HooksConformance


class TestConformance(HooksConformance):
    name = "journal"

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
