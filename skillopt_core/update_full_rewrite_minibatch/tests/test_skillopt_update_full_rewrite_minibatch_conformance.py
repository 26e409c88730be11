from skillopt_testkit import UpdateModeConformance


class TestConformance(UpdateModeConformance):
    name = "full_rewrite_minibatch"
    raw_items = (
        {
            "title": "Units", "change_summary": ["asks for units"], "new_skill": "# Answering\n\n- Check the units.\n",
            "support_count": 3, "source_type": "mixed", "merge_level": 1,
        },
    )  # fmt: skip
