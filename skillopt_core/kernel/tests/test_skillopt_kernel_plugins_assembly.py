"""The assembly of one run's hooks: who is asked and in which order, what is refused, whose fault it was."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest
from skillopt_kernel.config.schema import HooksSettings
from skillopt_kernel.errors import (
    Cancelled,
    ConfigError,
    DataError,
    HookError,
    PassingError,
    RefuseRun,
    SkillOptError,
)
from skillopt_kernel.hookspecs import hookimpl
from skillopt_kernel.plugins.assembly import assemble
from skillopt_kernel.plugins.discovery import load_manifest, settings_class
from skillopt_kernel.plugins.errors import PluginBroken, PluginNotFound
from skillopt_kernel.records import Update
from skillopt_kernel.store.events import Event

EVENT = Event("step_finished", 1, "2026-01-01T00:00:00.000Z", "run", step=1)


def stage(name, result=None):
    """A default stage as the kernel's own are: trylast, asked at `skillopt_<name>`."""
    return SimpleNamespace(**{f"skillopt_{name}": hookimpl(trylast=True)(lambda: result)})


DEFAULTS = (
    ("kernel.aggregate", stage("aggregate", Update(("default",)))),
    ("kernel.slow_update", stage("slow_update")),
    ("kernel.console", SimpleNamespace(skillopt_step_finished=hookimpl(lambda event: None))),
)


@pytest.fixture
def folder(tmp_path):
    """Writes `lab.py` beside the configuration file and returns that folder."""

    def write(text, name="lab.py", into="here"):
        target = tmp_path / into
        target.mkdir(exist_ok=True)
        head = "from skillopt_kernel import hookimpl\nfrom skillopt_kernel.records import Update\n"
        (target / name).write_text(head + textwrap.dedent(text), encoding="utf-8")
        return target

    yield write
    for name in [name for name, module in sys.modules.items() if str(tmp_path) in str(getattr(module, "__file__", ""))]:
        del sys.modules[name]


def hooks(**given):
    return HooksSettings(**{"path": (Path(),), **given})


def aggregate(assembled):
    return assembled.calls.aggregate(None, None, (), "").items


def test_the_last_registered_is_asked_first_and_the_configurations_own_before_all(folder):
    here = folder("""
        class First:
            @hookimpl
            def skillopt_aggregate(self): return Update(("first",))
        class Second:
            @hookimpl(tryfirst=True)
            def skillopt_aggregate(self): return None
        def override(): return None
        def wrap():
            result = yield
            return Update(("wrapped", *result.items))
    """)
    chosen = hooks(
        plugins=("lab:First", "lab:Second"), override={"aggregate": "lab:override"}, wrap={"aggregate": "lab:wrap"}
    )
    driver = SimpleNamespace(skillopt_aggregate=hookimpl(lambda: Update(("driver",))))
    assembled = assemble(DEFAULTS, chosen, here, drivers=[("gate:x", driver), ("env:y", object())])
    assert [each.plugin for each in assembled.asked("skillopt_aggregate")] == [
        "hooks.wrap: lab:wrap (aggregate)",
        "hooks.override: lab:override (aggregate)",
        "lab:Second",
        "lab:First",
        "gate:x",
        "kernel.aggregate",
    ]
    assert [each.wrapper for each in assembled.asked("skillopt_aggregate")] == [True, *[False] * 5]
    assert aggregate(assembled) == ("wrapped", "first")
    assert assembled.owners == {"lab:First": "lab", "lab:Second": "lab"}


def test_nobody_but_the_default_is_asked_without_plugins():
    assembled = assemble(DEFAULTS, HooksSettings())
    assert aggregate(assembled) == ("default",)
    assert assembled.asked("skillopt_gate") == ()


def test_a_required_stage_that_nobody_answers_is_an_error():
    with pytest.raises(SkillOptError, match="no plugin answered the hook skillopt_aggregate"):
        aggregate(assemble([], HooksSettings()))


def test_nothing_is_registered_once_it_is_assembled():
    manager = assemble(DEFAULTS, HooksSettings()).manager
    with pytest.raises(RuntimeError, match="fixed once it is assembled"):
        manager.register(object(), "late")


def test_a_module_an_object_and_a_class_with_settings_can_be_plugins(folder):
    here = folder("""
        class Counter:
            def __init__(self, settings, context): self.settings, self.seed = settings, context.seed
            @hookimpl
            def skillopt_aggregate(self): return Update((self.settings["words"], self.seed))
        ready = Counter({"words": "ready"}, type("C", (), {"seed": 9}))
        def make(): return ready
    """)
    folder("@hookimpl\ndef skillopt_aggregate(): return Update(('module',))\n", "inner.py")
    folder("import inner\n", "outer.py")
    settings = {"lab:Counter": {"words": "w"}}
    assert aggregate(assemble([], hooks(plugins=("lab:Counter",), settings=settings), here)) == ("w", 0)
    assert aggregate(assemble([], hooks(plugins=("lab:ready",)), here)) == ("ready", 9)
    assert aggregate(assemble([], hooks(plugins=("lab:make",)), here)) == ("ready", 9)
    assert aggregate(assemble([], hooks(plugins=("outer:inner",)), here)) == ("module",)


def test_two_runs_in_one_process_each_get_their_own_folder(folder):
    text = "import aid\nclass P:\n    @hookimpl\n    def skillopt_aggregate(self): return Update((aid.WORD,))\n"
    folders = []
    for word in ("one", "two"):
        folder(f"WORD = {word!r}\n", "aid.py", word)
        folders.append(folder(text, into=word))
    before = list(sys.path)
    first, second = (assemble(DEFAULTS, hooks(plugins=("lab:P",)), each) for each in folders)
    assert aggregate(first) == ("one",)
    assert aggregate(second) == ("two",)
    assert aggregate(first) == ("one",)
    assert sys.path == before


@pytest.mark.parametrize(
    ("text", "chosen", "message"),
    [
        ("", {"plugins": ("lab:Missing",)}, "a.yaml: hooks.plugins: 'lab:Missing' cannot be imported: AttributeError"),
        ("", {"plugins": ("labb:P",)}, r"No module named 'labb'. Looked in .*here"),
        ("", {"plugins": ("labb:P",), "path": ()}, r"add the line `path: \[\.\]` under `hooks:`"),
        ("1 / 0", {"plugins": ("lab:P",)}, "cannot be imported: ZeroDivisionError"),
        ("class P: pass", {"plugins": ("lab:P",)}, "in the plugin 'lab:P', there is no hook"),
        (
            "class P:\n    def skillopt_gate(self): ...",
            {"plugins": ("lab:P",)},
            "in the plugin 'lab:P', skillopt_gate has no `@hookimpl` above it",
        ),
        (
            "class P:\n    @hookimpl\n    def skillopt_agregate(self): ...",
            {"plugins": ("lab:P",)},
            "skillopt_agregate is no hook. Did you mean 'skillopt_aggregate'",
        ),
        (
            "class P:\n    @hookimpl\n    def skillopt_select(self, updates): ...",
            {"plugins": ("lab:P",)},
            "skillopt_select takes 'updates'; its arguments, none by keyword only, are run, step, update, budget",
        ),
        (
            "class P:\n    @hookimpl\n    def skillopt_select(self, *, update): ...",
            {"plugins": ("lab:P",)},
            "takes 'update'; its arguments, none by keyword only",
        ),
        (
            "class P:\n    @hookimpl(wrapper=True)\n    def skillopt_select(self): ...",
            {"plugins": ("lab:P",)},
            "skillopt_select has no yield. A wrapper is a generator",
        ),
        (
            "class P:\n    @hookimpl(hookwrapper=True)\n    def skillopt_select(self): yield",
            {"plugins": ("lab:P",)},
            r"marked `@hookimpl\(wrapper=True\)`",
        ),
        (
            "class P:\n    @hookimpl(wrapper=True)\n    def skillopt_step_finished(self): yield",
            {"plugins": ("lab:P",)},
            "cannot be wrapped",
        ),
        ("class P:\n    def __init__(self, path): ...", {"plugins": ("lab:P",)}, "'lab:P' cannot be made: TypeError"),
        ("def f(): ...", {"override": {"selekt": "lab:f"}}, "there is no stage 'selekt'. Did you mean 'select'"),
        ("def f(): ...", {"override": {"skillopt_gate": "lab:f"}}, "Did you mean 'gate'"),
        (
            "def f(): ...",
            {"wrap": {"select": "lab:f"}},
            "a.yaml: hooks.wrap.select: in the plugin .* skillopt_select has no yield",
        ),
        ("def f(): yield", {"override": {"select": "lab:f"}}, "belongs under hooks.wrap"),
        ("class C: ...", {"override": {"select": "lab:C"}}, "skillopt_select is a class, not a function"),
        ("def f(updates): ...", {"override": {"select": "lab:f"}}, "takes 'updates'"),
        ("", {"override": {"select": "lab.f"}}, "is not an object path"),
        ("", {"settings": {"jurnal": {"a": 1}}}, "hooks.settings.jurnal: no hook plugin of this name is in use"),
        ("class P: ...", {"plugins": ("lab:P",), "settings": {"lab:P": {"a": 1}}}, "'lab:P' takes no settings"),
        ("", {"disable": ("aggregate",)}, "'aggregate' cannot be disabled, it can only be overridden"),
        ("", {"disable": ("kernel.aggregate",)}, "can only be overridden"),
        ("", {"disable": ("gate",)}, "can only be overridden"),
        ("", {"disable": ("slow_updat",)}, "there is no plugin 'slow_updat' to disable. Did you mean 'slow_update'"),
    ],
)
def test_what_the_configuration_gets_wrong_is_said_with_the_key_and_the_cure(folder, text, chosen, message):
    here = folder(text)
    with pytest.raises(ConfigError, match=message):
        assemble(DEFAULTS, hooks(**chosen), here, where=lambda key: f"a.yaml: {key}")


def test_disabled_plugins_are_neither_loaded_nor_asked(folder):
    here = folder("raise RuntimeError('this was loaded')")
    chosen = hooks(plugins=("lab:P",), disable=("slow_update", "meta_skill", "lab:P"))
    assembled = assemble(DEFAULTS, chosen, here)
    assert assembled.asked("skillopt_slow_update") == ()
    assert aggregate(assembled) == ("default",)


JOURNAL = """
from attrs import frozen
from skillopt_kernel import hookimpl
from skillopt_kernel.records import Update

@frozen
class Settings:
    '''words  what it says'''
    words: str = "nothing"
    limit: int = 3

class Journal:
    def __init__(self, settings, context):
        self.settings = settings
        if settings.words == "bad":
            raise OSError("disk full")
    @hookimpl
    def skillopt_aggregate(self):
        return Update((self.settings.words,))
"""


@pytest.fixture
def journal(install, manifest_of):
    text = manifest_of("hook", "journal", factory="acme_parts:Journal", settings="acme_parts:Settings")
    install(
        "acme-journal 2.0",
        {"skillopt.hooks journal": "acme_journal:plugin"},
        {"acme_journal.py": text, "acme_parts.py": JOURNAL},
    )


def with_settings(**values):
    """The hooks section as `load_config` resolves it, with settings of the installed plugin `journal`."""
    cls = settings_class(load_manifest("hook", "journal"))
    return HooksSettings(plugins=("journal",), settings={"journal": cls(**values)})


def test_an_installed_hook_plugin_is_loaded_only_when_it_is_named(journal):
    assemble(DEFAULTS, HooksSettings())
    assert "acme_journal" not in sys.modules
    assembled = assemble(DEFAULTS, with_settings(words="hello"))
    assert aggregate(assembled) == ("hello",)
    assert assembled.owners == {"journal": "acme-journal 2.0"}
    assert aggregate(assemble(DEFAULTS, HooksSettings(plugins=("journal",)))) == ("nothing",)


def test_a_hook_plugin_that_cannot_be_made_is_broken_and_an_absent_one_is_missing(journal):
    with pytest.raises(PluginBroken, match=r"hook plugin 'journal' of acme-journal 2\.0 .* OSError: disk full"):
        assemble(DEFAULTS, with_settings(words="bad"))
    with pytest.raises(PluginNotFound, match="Did you mean 'journal'"):
        assemble(DEFAULTS, HooksSettings(plugins=("jurnal",)))
    assert "Install it with: pip install skillopt-hook-semantic-density." in str(
        PluginNotFound("hook", "semantic_density", ["journal"])
    )


def raising(error):
    def implementation():
        raise error

    return SimpleNamespace(skillopt_aggregate=hookimpl(implementation))


def test_an_exception_ends_with_the_plugins_name_wherever_it_was_raised():
    def deep():
        return {}["absent"]

    plugin = SimpleNamespace(skillopt_aggregate=hookimpl(lambda: deep()))
    other = SimpleNamespace(skillopt_aggregate=hookimpl(lambda: None))
    assembled = assemble(DEFAULTS, HooksSettings(), drivers=[("mine", plugin), ("theirs", other)])
    with pytest.raises(HookError, match="the plugin 'mine' failed in the hook skillopt_aggregate: KeyError") as caught:
        aggregate(assembled)
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize(
    "error",
    [DataError("d"), RefuseRun("r"), PassingError("p"), Cancelled(), KeyboardInterrupt(), SystemExit(3)],
    ids=lambda error: type(error).__name__,
)
def test_sentences_model_errors_and_the_runs_stop_pass_unchanged(error):
    with pytest.raises(type(error)) as caught:
        aggregate(assemble(DEFAULTS, HooksSettings(), drivers=[("mine", raising(error))]))
    assert caught.value is error


def test_what_a_default_stage_raises_is_a_defect_of_ours_and_no_plugins():
    with pytest.raises(ZeroDivisionError):
        aggregate(assemble([("kernel.aggregate", raising(ZeroDivisionError()))], HooksSettings()))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return\n            yield", "did not yield"),
        ("yield\n            yield", "has second yield"),
        ("result = yield\n            return 5", "it returned a int where a Update is expected"),
        ("1 / 0\n            yield", "ZeroDivisionError"),
        ("yield\n            1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_wrapper_that_is_wrong_is_named(folder, body, message):
    here = folder(f"""
        def wrap():
            {body}
    """)
    assembled = assemble(DEFAULTS, hooks(wrap={"aggregate": "lab:wrap"}), here)
    with pytest.raises(HookError, match=message) as caught:
        aggregate(assembled)
    assert caught.value.plugin == "hooks.wrap: lab:wrap (aggregate)"


def test_a_wrapper_that_returns_nothing_is_an_error(folder):
    here = folder("def wrap(): result = yield\n")
    with pytest.raises(SkillOptError, match="a wrapper must return what its yield gave"):
        aggregate(assemble(DEFAULTS, hooks(wrap={"aggregate": "lab:wrap"}), here))


def test_a_wrapper_may_answer_for_what_failed_inside_and_is_not_blamed_for_it(folder):
    here = folder("""
        def mends():
            try:
                return (yield)
            except Exception:
                return Update(("mended",))
        def watches():
            return (yield)
    """)
    broken = [("mine", raising(ValueError("no")))]
    mended = assemble(DEFAULTS, hooks(wrap={"aggregate": "lab:mends"}), here, drivers=broken)
    assert aggregate(mended) == ("mended",)
    watched = assemble(DEFAULTS, hooks(wrap={"aggregate": "lab:watches"}), here, drivers=broken)
    with pytest.raises(HookError, match="the plugin 'mine'"):
        aggregate(watched)


def observers(*functions):
    return [
        (f"observer{number}", SimpleNamespace(skillopt_step_finished=hookimpl(function)))
        for number, function in enumerate(functions)
    ]


def failing_observers(seen):
    def fails(event):
        raise ConnectionError("the tracker is down")

    return observers(lambda event: seen.append(event), fails, lambda event: seen.append(event))


def test_an_observer_that_raises_is_reported_once_and_stops_nothing():
    seen, reports = [], []
    calls = assemble(failing_observers(seen), HooksSettings(), report=reports.append).calls
    for _ in range(3):
        calls.observe(EVENT)
    assert seen == [EVENT] * 6
    assert calls.observer_errors == 3
    assert len(reports) == 1
    assert "the observer 'observer1' failed in skillopt_step_finished: ConnectionError: the tracker" in reports[0]


def test_strict_raises_what_an_observer_raises():
    seen = []
    calls = assemble(failing_observers(seen), HooksSettings(strict=True), report=lambda sentence: None).calls
    with pytest.raises(HookError, match="the plugin 'observer1'"):
        calls.observe(EVENT)
    calls.observe(Event("run_failed", 2, "2026-01-01T00:00:00.000Z", "run"))  # nobody fails here: nothing is raised


def test_a_trace_names_each_call(capsys, monkeypatch):
    monkeypatch.setenv("SKILLOPT_TRACE_HOOKS", "1")
    plugin = SimpleNamespace(skillopt_aggregate=hookimpl(lambda: None))
    assembled = assemble(DEFAULTS, HooksSettings(), drivers=[("mine", plugin)])
    aggregate(assembled)
    assembled.calls.observe(EVENT)
    assert capsys.readouterr().err.splitlines() == [
        "skillopt_aggregate  mine, kernel.aggregate  -> Update",
        "skillopt_step_finished  kernel.console  -> none",
    ]
    monkeypatch.delenv("SKILLOPT_TRACE_HOOKS")
    aggregate(assemble(DEFAULTS, HooksSettings()))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("value", "lines"), [("1", 1), ("0", 0), ("", 0)])
def test_the_trace_is_switched_by_its_variable(value, lines):
    code = (
        "from types import SimpleNamespace as N\n"
        "from skillopt_kernel.hookspecs import hookimpl\n"
        "from skillopt_kernel.plugins.assembly import assemble\n"
        "from skillopt_kernel.config.schema import HooksSettings\n"
        "plugin = N(skillopt_meta_skill=hookimpl(lambda: 'advice'))\n"
        "assemble([('p', plugin)], HooksSettings()).calls.meta_skill(None, None)\n"
    )
    environment = {**os.environ, "SKILLOPT_TRACE_HOOKS": value}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert len(done.stderr.splitlines()) == lines
