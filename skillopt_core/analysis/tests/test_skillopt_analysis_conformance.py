import pytest
from skillopt_analysis.settings import DataAuditSettings
from skillopt_testkit import HooksConformance


class TestConformance(HooksConformance):
    name = "data_audit"


@pytest.mark.parametrize("value", ["yes", "audit-", "audit-1A2B3C4D", True, 12345678, None])
def test_what_names_no_audit_is_refused(value):
    with pytest.raises(ValueError, match="must be the name that the audit printed"):
        DataAuditSettings(value)


def test_what_can_be_acknowledged():
    assert DataAuditSettings().acknowledged == ""
    assert DataAuditSettings("audit-0123abcd").acknowledged == "audit-0123abcd"
    assert DataAuditSettings("all").acknowledged == "all"
