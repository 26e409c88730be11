from skillopt_testkit import UpdateModeConformance


class TestConformance(UpdateModeConformance):
    name = "patch"
    raw_items = (
        {"op": "append", "content": "- Check the units."},
        {"op": "replace", "target": "- Answer in few words.", "content": "- Answer in one word.", "support_count": 3},
        {"op": "insert_after", "target": "## Numbers", "content": "- Round to two digits.", "source_type": "failure"},
        {"op": "delete", "target": "- Read the whole question.", "content": ""},
    )
