"""Who may import whom, and that each distribution declares what it imports."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions

import pytest

LIBRARIES = {"skillopt_backends": "skillopt_lib_", "skillopt_envs": "skillopt_lib_"}
KERNEL, TESTKIT = "skillopt_kernel", "skillopt_testkit"
IMPORTED_WHERE_USED = {
    "openai", "httpx", "httpx2", "json_repair", "stamina", "genai_prices", "filelock", "stevedore", "rich", "yaml",
    "cattrs",
}  # fmt: skip
COMMANDS = "cli"
OF_EXTRAS = {
    "azure": "azure-identity",
    "claude_agent_sdk": "claude-agent-sdk",
    "openai_codex_sdk": "openai-codex-sdk",
}
"""Package that an extra brings, which need not be installed here -> its distribution."""


@cache
def imports_of(path):
    """(top-level package, line, at the module's top level and not for type checking only) of each import."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = []

    def visit(node, top):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                found.extend((alias.name.partition(".")[0], child.lineno, top) for alias in child.names)
            elif isinstance(child, ast.ImportFrom) and not child.level:
                found.append((child.module.partition(".")[0], child.lineno, top))
            else:
                late = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
                typing_only = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
                visit(child, top and not late and not typing_only)

    visit(tree, True)
    return found


@cache
def installed_packages():
    return packages_distributions()


def providers_of(package):
    """The distributions that an import of the package can come from, in normal form."""
    if is_ours(package):  # the rule of names; an editable installation does not list its packages
        return {normal(package)}
    if package in OF_EXTRAS:
        return {OF_EXTRAS[package]}
    return {normal(name) for name in installed_packages().get(package, [package])}


def named_in_strings(path):
    """Our packages that a literal import string names: "package.module:attribute"."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return {text.partition(".")[0] for text in texts if re.fullmatch(r"skillopt_\w+(\.\w+)*:\w+", text)}


def looked_for(path):
    """Packages whose files `find_spec("package")` looks for, without importing them."""
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    named = [call.args[0] for call in calls if getattr(call.func, "id", "") == "find_spec"]
    return {node.value for node in named if isinstance(node, ast.Constant)}


def is_ours(package):
    return package.startswith("skillopt_")


def may_import(distribution, package):
    if package in (distribution.package, KERNEL):
        return True
    if distribution.package in (KERNEL, TESTKIT, "skillopt_core"):
        return False
    # A library of the family may be imported by its drivers; the scorers use the environments' library.
    prefix = LIBRARIES.get(distribution.folder.parent.name)
    return prefix is not None and package.startswith(prefix)


def test_imports_of_ours_follow_the_arrows(distribution):
    wrong = [
        f"{path.relative_to(distribution.folder)}:{line} imports {package}"
        for path in distribution.modules
        for package, line, _ in imports_of(path)
        if is_ours(package) and not may_import(distribution, package)
    ]
    assert not wrong


def test_manifests_name_only_what_they_may_import(distribution):
    if distribution.package == TESTKIT:
        return
    for path in distribution.modules:
        for package in named_in_strings(path):
            assert may_import(distribution, package), f"{path} names {package}"


def module_names(distribution):
    """The dotted name of each module -> its path."""
    paths = {path: path.relative_to(distribution.source.parent).with_suffix("") for path in distribution.modules}
    return {".".join(inside.parts).removesuffix(".__init__"): path for path, inside in paths.items()}


def test_no_modules_import_each_other_in_a_circle(distribution):
    """Wherever the import stands: one within a function, or for types only, ties two modules together as well."""
    modules = module_names(distribution)
    needs = {}
    for name, path in modules.items():
        nodes = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ImportFrom)]
        asked = [(node.module, f"{node.module}.{alias.name}") for node in nodes for alias in node.names]
        needs[name] = {inner if inner in modules else outer for outer, inner in asked} & set(modules) - {name}
    order = TopologicalSorter(needs).static_order()  # raises `CycleError`, which names the modules of the circle
    assert set(order) == set(modules)


def test_a_driver_imports_only_what_its_own_family_shares(distributions):
    families = {each.package: each.folder.parent for each in distributions}
    for distribution in distributions:
        for path in distribution.modules:
            for package, line, _ in imports_of(path):
                if package.startswith("skillopt_lib_"):
                    assert families[package] == distribution.folder.parent, f"{path}:{line}"


def test_imports_are_declared(distribution):
    declared = {normal(line) for line in distribution.requirements}
    undeclared = []
    for path in distribution.modules:
        for package, line, _ in imports_of(path):
            if package in sys.stdlib_module_names or package == distribution.package:
                continue
            if not providers_of(package) & declared:
                undeclared.append(f"{path.relative_to(distribution.folder)}:{line} imports {package}")
    assert not undeclared


def test_what_is_declared_is_used(distribution):
    if distribution.name == "skillopt-core":
        return  # the bundle: it depends on the default plugins and imports none of them
    used = {distribution.package}
    for path in distribution.modules:
        used |= {package for package, _, _ in imports_of(path)} | named_in_strings(path) | looked_for(path)
    provided = set().union(*map(providers_of, used))
    # A driver that asks for another by name (an environment for its scorer) needs it installed without importing it;
    # so does what is read as data.
    asked_for = {"skillopt-scorers", "secretscreen"}
    idle = {normal(line) for line in distribution.requirements} - provided - asked_for
    assert not idle, "a dependency that nothing imports is left out"


def test_tests_declare_what_they_import(distribution):
    lines = [*distribution.requirements, *distribution.requirements_of_tests, distribution.name]
    declared = {normal(line) for line in lines} | {"skillopt-kernel"}
    helpers = {path.stem for path in distribution.tests}
    missing = []
    for path in distribution.tests:
        for package, line, _ in imports_of(path):
            if package in sys.stdlib_module_names or package in helpers:
                continue
            if not providers_of(package) & declared:
                missing.append(f"{path.name}:{line} imports {package}")
    assert not missing


def test_heavy_libraries_are_imported_where_they_are_used(distributions):
    """At a module's top level only where the module itself is imported late: nowhere that a start comes by."""
    for distribution in distributions:
        start = distribution.source / "__init__.py"
        early = [package for package, _, top in imports_of(start) if top and package in IMPORTED_WHERE_USED]
        assert not early, f"{start} imports {early}"
    kernel = next(each for each in distributions if each.package == KERNEL)
    for path in [*kernel.source.glob("*.py"), *(kernel.source / COMMANDS).glob("*.py")]:
        early = [package for package, _, top in imports_of(path) if top and package in IMPORTED_WHERE_USED]
        assert not early, f"{path} imports {early}"


def test_only_one_distribution_imports_openai(distributions):
    users = {
        each.name for each in distributions for path in each.modules for package, _, _ in imports_of(path)
        if package == "openai"
    }  # fmt: skip
    assert users <= {"skillopt-lib-chat"}


def test_manifest_modules_import_next_to_nothing(distribution):
    if distribution.package in (KERNEL, TESTKIT, "skillopt_core"):
        pytest.skip("not a driver")
    tree = ast.parse((distribution.source / "__init__.py").read_text(encoding="utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    foreign = {name for name in modules if name.partition(".")[0] not in sys.stdlib_module_names}
    assert foreign <= {"skillopt_kernel.plugins.manifest", "skillopt_kernel.version"}


def test_the_lock_covers_every_dependency(distributions, root):
    lines = (root / "constraints.txt").read_text().splitlines()
    for line in lines:
        assert re.fullmatch(r"[a-z0-9.-]+==[\w.+!]+( ; .+)?", line), f"names and versions only: {line!r}"
    locked = {line.partition("==")[0] for line in lines}
    groups = tomllib.loads((root / "pyproject.toml").read_text())["dependency-groups"]
    wanted = {normal(line) for lines in groups.values() for line in lines}
    for distribution in distributions:
        wanted |= {normal(line) for line in (*distribution.requirements, *distribution.requirements_of_tests)}
    third_party = {name for name in wanted if not name.startswith("skillopt-")}
    assert third_party <= locked, "run `tools/lock --keep`"


def normal(requirement):
    """The distribution's name in a requirement, in the form in which names are compared."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\s<>=!~\[;(]", requirement.strip())[0]).lower()
