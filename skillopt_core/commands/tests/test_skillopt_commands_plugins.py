"""`skillopt plugins show`: every key that a configuration can set is told by the name that sets it."""

from skillopt_kernel.cli.main import main


def test_the_keys_of_a_mapping_are_shown_each(capsys):
    assert main(["plugins", "show", "env", "tasks"]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("  env.fields.inputs: tuple[str, ...] = ()")
    assert lines[at + 1] == "      what the target is shown; empty: the fields with the usual names"
    assert "  env.fields.reference: str = ''" in lines
    assert not [line for line in lines if line.startswith("  env.fields:")]
    assert "  env.feedback: Path | None = None" in lines
    assert [line for line in lines if line.startswith("  env.scorer:")], "what is written as a name stays one key"
