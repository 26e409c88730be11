"""One folder, one distribution, one import package; every member is listed wherever members are listed."""

from __future__ import annotations

import configparser
import re
from collections import Counter
from itertools import permutations

FAMILIES = {
    "skillopt_core": {
        "gate": "skillopt-gate-", "scheduler": "skillopt-scheduler-", "update": "skillopt-update-",
        "executor": "skillopt-executor-", "hook": "skillopt-hook-", "redactor": "skillopt-redactor-", "": "skillopt-",
    },
    "skillopt_backends": {"lib": "skillopt-lib-", "": "skillopt-backend-"},
    "skillopt_envs": {"lib": "skillopt-lib-", "scorers": "skillopt-scorers", "": "skillopt-env-"},
    "skillopt_sleep": {"": "skillopt-"},
    "skillopt_webui": {"": "skillopt-"},
}  # fmt: skip


def expected_name(distribution):
    folder = distribution.folder.name
    family = FAMILIES[distribution.folder.parent.name]
    first, _, rest = folder.partition("_")
    prefix = family.get(first)
    if prefix is None:
        return family[""] + folder.replace("_", "-")
    return prefix + rest.replace("_", "-")


def environments(root):
    ini = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    ini.read(root / "tox.ini")
    members = dict(re.findall(r"^(\S+): (\S+)$", ini["testenv"]["member"], re.MULTILINE))
    return ini["tox"]["env_list"].split(), members


def test_the_folder_gives_the_distribution_its_name(distribution):
    assert distribution.name == expected_name(distribution)


def test_the_distribution_gives_the_package_its_name(distribution):
    packages = [path.name for path in (distribution.folder / "src").iterdir() if (path / "__init__.py").is_file()]
    assert packages == [distribution.package]
    assert distribution.metadata["build-system"]["build-backend"] == "uv_build"


def test_has_what_every_distribution_has(distribution):
    for name in ("README.md", "tests", f"src/{distribution.package}/py.typed"):
        assert (distribution.folder / name).exists(), f"{distribution.folder} has no {name}"
    project = distribution.metadata["project"]
    assert project["readme"] == "README.md"
    assert project["license"] == "MIT"
    assert project["requires-python"] == ">=3.11"
    assert project["description"].strip()
    assert distribution.tests, "a distribution has tests"


def test_all_have_one_version(distributions):
    assert len({each.metadata["project"]["version"] for each in distributions}) == 1


def test_siblings_are_required_in_a_range_of_that_version(distributions):
    major, minor, *_ = distributions[0].metadata["project"]["version"].split(".")
    allowed = f">={major}.{minor},<{major}.{int(minor) + 1}"
    for distribution in distributions:
        ours = [line for line in distribution.requirements if line.startswith("skillopt-")]
        for line in ours:
            assert re.sub(r"^[\w-]+(\[[\w,-]+\])?", "", line) == allowed, f"{distribution}: {line}"


def test_every_member_has_an_environment_in_tox(distributions, root):
    envs, members = environments(root)
    assert sorted(members.values()) == sorted(str(each.folder.relative_to(root)) for each in distributions)
    assert set(members) <= set(envs), "a distribution's environment is part of the default run"
    for env, folder in members.items():
        distribution = next(each for each in distributions if each.folder == root / folder)
        assert distribution.name == f"skillopt-{env}"


def test_no_environment_of_tox_matches_another(root):
    envs, members = environments(root)
    factors = {env: set(env.split("-")) for env in {*envs, *members, "local-llm"}}
    for one, other in permutations(factors, 2):
        assert not factors[one] <= factors[other], f"tox takes the conditions of {one!r} for {other!r}, too"


def test_every_member_is_in_requirements(distributions, root):
    lines = (root / "requirements.txt").read_text().splitlines()
    listed = sorted(line.removeprefix("-e ./") for line in lines if line.startswith("-e "))
    # Extras stand on a line of their own, under the name: pip does not find a folder for a distribution's other extras.
    assert listed == sorted(str(each.folder.relative_to(root)) for each in distributions)


def test_every_folder_that_could_be_a_member_is_one(distributions, root):
    files = {path.parent for path in root.glob("skillopt_*/*/pyproject.toml")}
    assert files == {each.folder for each in distributions}


def test_the_kernel_knows_where_each_plugin_comes_from(distributions):
    from skillopt_kernel.plugins.known import distribution_of
    from skillopt_kernel.plugins.manifest import KINDS

    kinds = {group: kind for kind, group in KINDS.items()}
    for distribution in distributions:
        for group, entries in distribution.metadata["project"].get("entry-points", {}).items():
            for name in entries if group in kinds else ():
                assert distribution_of(kinds[group], name) == distribution.name


def test_the_bundle_depends_on_every_default_plugin(distributions):
    bundle = next(each for each in distributions if each.name == "skillopt-core")
    required = {re.split(r"[<>=\[]", line)[0] for line in bundle.requirements}
    first = ("skillopt-gate-", "skillopt-scheduler-", "skillopt-update-")
    defaults = {each.name for each in distributions if each.name.startswith(first)} - {"skillopt-gate-paired"}
    assert defaults <= required
    assert "skillopt-kernel" in required


def test_test_files_have_unique_names_that_say_whose_they_are(distributions, root):
    names = Counter(path.name for path in root.glob("tests/**/*.py") if "third_party" not in path.parts)
    for distribution in distributions:
        for path in distribution.tests:
            names[path.name] += 1
            if path.name.startswith("test_"):
                assert f"{path.stem}_".startswith(f"test_{distribution.package}_"), path
            assert path.name != "__init__.py", path
    doubled = [name for name, count in names.items() if count > 1 and name != "conftest.py"]
    assert not doubled, "pytest imports test modules by their bare name"
