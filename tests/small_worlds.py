"""A small world for runs that take several steps: each kind of question needs two rules of its own."""

from __future__ import annotations

import json

from skillopt_testkit.project import KINDS


def two_rules_a_kind(optimizer: str, *more: str) -> str:
    """The world file for an optimizer, a YAML mapping, with further lines; four of its rules are useless."""
    lines = ['data: ["data/*/items.json"]', "seed: 3", f"optimizer: {optimizer}", *more, "kinds:"]
    lines += [
        f'  {kind}: {{marker: "[{kind}]", needs: [{kind}-a, {kind}-b], right_without: 0.05, right_with: 0.95}}'
        for kind in KINDS
    ]
    lines.append("rules:")
    for kind, sentence in KINDS.items():
        lines.append(f"  {kind}-a: {{sentence: {json.dumps(sentence)}}}")
        lines.append(f'  {kind}-b: {{sentence: "Take the {kind} from the line that is asked for."}}')
    lines += [f'  useless-{n}: {{sentence: "Read the list {n} times."}}' for n in range(2, 6)]
    return "\n".join(lines) + "\n"
