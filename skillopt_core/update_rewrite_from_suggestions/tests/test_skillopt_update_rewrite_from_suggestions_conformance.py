import json

from skillopt_testkit import UpdateModeConformance


class TestConformance(UpdateModeConformance):
    name = "rewrite_from_suggestions"
    reply = json.dumps({"reasoning": "", "change_summary": [], "new_skill": "# Answering\n\n- Check the units."})
    raw_items = (
        {"type": "add_rule", "title": "Units", "motivation": "", "instruction": "Add: Check the units."},
        {
            "type": "merge_rules", "title": "Join", "motivation": "said twice", "instruction": "Join rules 1 and 2.",
            "priority_hint": "high", "support_count": 3, "source_type": "failure", "merge_level": 1,
        },
    )  # fmt: skip
