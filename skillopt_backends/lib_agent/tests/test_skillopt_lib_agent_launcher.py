"""A program as a backend uses it: probed once, isolated where that is possible, its errors typed."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from skillopt_kernel.errors import CallTimeout, PassingError, PermanentError
from skillopt_lib_agent.failures import Program
from skillopt_lib_agent.isolation import Isolation
from skillopt_lib_agent.launcher import Launcher, copied
from skillopt_lib_agent.process import Processes
from skillopt_lib_agent.settings import ProgramSettings
from skillopt_lib_agent.workspace import fresh_place
from skillopt_testkit.programs import write_program

TOOL = Program("Tool", "tool", "model.tool_path", "npm install tool", "Set TOOL_KEY.", upgrade="npm update tool")

SOURCE = """
import json, os, sys
if "--version" in sys.argv: print("tool-cli 1.20.3 (build 7)"); sys.exit()
if "--help" in sys.argv: print("Usage: tool [--json] [-o, --output <FILE>]  --color=<WHEN>"); sys.exit()
words = sys.stdin.read()
unknown = [word for word in sys.argv[1:] if word.startswith("-") and word not in ("--json", "--output")]
if unknown: sys.exit(f"error: unexpected argument {unknown[0]!r} found")
def seen(path):
    try: return bool(os.listdir(path))
    except OSError: return False
told = {"words": words, "folder": os.getcwd(), "variables": dict(os.environ), "sees": {}}
for path in sys.argv[2:]: told["sees"][path] = os.path.exists(path)
print(json.dumps(told))
"""


def launcher(path: Path | str, **options) -> Launcher:
    return Launcher(TOOL, ProgramSettings(), command=str(path), **options)


def told(made: Launcher, *arguments: str, **options):
    """What the program says of its surroundings, and whether it was isolated."""
    with fresh_place() as place:
        deadline = made.deadline(None)
        done, isolated = made.run(place, arguments, **{"stdin": "hello", "deadline": deadline, **options})
        assert done.code == 0, done.stderr
        return json.loads(done.stdout.read_text("utf-8")), isolated, place


def wall() -> str:
    """Why there is no wall here; "" when there is one."""
    return Isolation(Processes()).missing()


needs_wall = pytest.mark.skipif(bool(wall()), reason=wall() or "there is a wall")


def test_a_program_is_probed_once(tmp_path):
    counter = tmp_path / "asked"
    counting = f"import sys\nwith open({str(counter)!r}, 'a') as file: file.write(' '.join(sys.argv[1:]) + ';')\n"
    made = launcher(write_program(tmp_path / "programs", "tool", counting + SOURCE))
    for _ in range(3):
        found = made.capability()
    assert (found.version, found.numbers) == ("1.20.3", (1, 20, 3))
    assert found.flags == {"--json", "--output", "--color"}
    assert counter.read_text("utf-8") == "--version;--help;"


def test_a_program_that_is_missing_is_an_error_with_the_line_that_fixes_it(tmp_path):
    made = launcher(tmp_path / "nowhere")
    with pytest.raises(
        PermanentError, match=r"was not found. Install it \(`npm install tool`\), or set model.tool_path"
    ):
        made.capability()
    assert made.check()[0][0] == "error"


def test_a_program_that_is_too_old_is_an_error_before_the_first_job(tmp_path):
    """O-X1: flags that a version does not have are found out by asking, and told before anything is spent."""
    path = write_program(tmp_path, "tool", SOURCE)
    made = launcher(path, needed=("--json", "--stream"), oldest="2.0")
    with pytest.raises(
        PermanentError, match=r"version 1.20.3\) does not have --stream. Install 2.0 or later: `npm update"
    ):
        made.capability()
    with pytest.raises(PermanentError, match="--stream"), fresh_place() as place:
        made.run(place, [], stdin="", deadline=time.monotonic() + 60)


def test_a_program_that_does_not_work_is_told_with_its_own_words(tmp_path):
    made = launcher(write_program(tmp_path, "tool", "import sys; sys.exit('no such library')"))
    with pytest.raises(PermanentError, match="--version` of Tool does not work: no such library"):
        made.capability()
    text = tmp_path / "text"
    text.write_text("no program", "utf-8")
    text.chmod(0o755)
    with pytest.raises(PermanentError, match="does not work"):
        launcher(text).capability()


def test_what_a_program_is_told_and_given(tmp_path, monkeypatch):
    monkeypatch.setenv("OPERATOR_KEY", "secret")
    monkeypatch.setenv("TOOL_KEY", "the-key")
    made = launcher(write_program(tmp_path, "tool", SOURCE))
    said, _, place = told(made, "--json", passed=["TOOL_KEY"], given={"TOOL_HOME": "x"})
    assert said["words"] == "hello"
    assert said["folder"] == str(place.workspace)
    assert said["variables"]["TOOL_KEY"] == "the-key" and said["variables"]["TOOL_HOME"] == "x"
    assert "OPERATOR_KEY" not in said["variables"]
    assert said["variables"]["HOME"] == str(place.home)


def test_variables_of_the_settings_are_handed_on(tmp_path, monkeypatch):
    monkeypatch.setenv("SITE", "here")
    settings = ProgramSettings(pass_variables=("SITE",))
    made = Launcher(TOOL, settings, command=str(write_program(tmp_path, "tool", SOURCE)))
    assert told(made, "--json")[0]["variables"]["SITE"] == "here"


@needs_wall
def test_behind_the_wall_a_program_sees_its_own_folders_only(tmp_path):
    gold = tmp_path / "gold.json"
    gold.write_text("42", "utf-8")
    made = launcher(write_program(tmp_path / "programs", "tool", SOURCE), require_isolation=True)
    asked = (str(gold), __file__, "/usr/bin", "/etc/shadow", "/etc/passwd")
    said, isolated, place = told(made, "--json", *asked)
    assert isolated
    assert said["sees"] == dict(zip(asked, (False, False, True, False, True), strict=True))
    assert said["folder"] == str(place.workspace)


@needs_wall
@pytest.mark.parametrize("folder", ["bin", "by-a-link/bin"])
def test_behind_the_wall_a_program_that_is_a_link_finds_what_lies_beside_it(tmp_path, folder):
    """As npm installs programs: a link in `bin`, the program in a package beside its parts; all by a link, too."""
    package = tmp_path / "lib/node_modules/tool"
    source = SOURCE.replace(
        "words = ", "words = open(os.path.dirname(os.path.realpath(sys.argv[0])) + '/../part').read() + "
    )
    write_program(package / "bin", "tool.py", source)
    (package / "part").write_text("part, ", "utf-8")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/middle").symlink_to("../lib/node_modules/tool/bin/tool.py")
    (tmp_path / "bin/tool").symlink_to("middle")
    (tmp_path / "by-a-link").symlink_to(tmp_path)
    program = tmp_path / folder / "tool"
    said, isolated, _ = told(launcher(program), "--json", str(tmp_path / "bin"), str(tmp_path / "gold"))
    assert isolated and said["words"] == "part, hello"


@needs_wall
def test_what_is_configured_as_readable_can_be_read(tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    settings = ProgramSettings(readable_paths=(corpus,))
    made = Launcher(TOOL, settings, command=str(write_program(tmp_path / "programs", "tool", SOURCE)))
    said, _, _ = told(made, "--json", str(corpus))
    assert said["sees"] == {str(corpus): True}


@needs_wall
def test_behind_the_wall_nothing_outlives_a_program(tmp_path):
    """Also what has left its group and its family."""
    source = SOURCE + ("import subprocess\nsubprocess.Popen(['/bin/sh', '-c', 'sleep 600'], start_new_session=True)\n")
    made = launcher(write_program(tmp_path, "tool", source))
    with fresh_place() as place:
        _, isolated = made.run(place, ["--json"], stdin="", deadline=time.monotonic() + 60)
        assert isolated
        ends = time.monotonic() + 60
        while lives_in(place.home) and time.monotonic() < ends:
            time.sleep(0.01)
        assert not lives_in(place.home)


def lives_in(home: Path) -> bool:
    """Whether a process has this home."""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and f"HOME={home}\0".encode() in (entry / "environ").read_bytes():
                return True
        except OSError:  # it has ended meanwhile
            continue
    return False


def test_without_bubblewrap_nothing_is_isolated_and_a_requirement_refuses(tmp_path, monkeypatch):
    """O-X2: a container without bubblewrap."""
    path = write_program(tmp_path / "programs", "tool", SOURCE)
    monkeypatch.setenv("PATH", str(tmp_path))
    _, isolated, _ = told(launcher(path), "--json")
    assert not isolated
    made = launcher(path, require_isolation=True)
    with pytest.raises(PermanentError, match=r"require_isolation is true, and the program `bwrap`.*apt install"):
        told(made, "--json")
    assert [finding for finding, _ in launcher(path).check()] == ["ok", "warning"]
    assert [finding for finding, _ in made.check()] == ["ok", "error"]


def test_a_bubblewrap_that_hides_nothing_is_not_trusted(tmp_path, monkeypatch):
    """The wall is measured: what only claims to be one is none."""
    claims = 'import os, sys\nrest = sys.argv[sys.argv.index("--") + 1 :]\nos.execvp(rest[0], rest)\n'
    write_program(tmp_path / "bin", "bwrap", claims)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    assert "does not hide" in wall()
    write_program(tmp_path / "bin", "bwrap", "import sys; sys.exit('no user namespaces')")
    assert "no user namespaces" in wall()


def test_a_program_that_is_shot_or_hangs_is_told_apart(tmp_path):
    shot = SOURCE.replace("words = ", "import signal; os.kill(os.getpid(), signal.SIGKILL); words = ")
    with pytest.raises(PassingError, match="ended by signal 9"):
        told(launcher(write_program(tmp_path / "a", "tool", shot)), "--json")
    hanging = SOURCE.replace("words = ", "import time; time.sleep(600); words = ")
    made = launcher(write_program(tmp_path / "b", "tool", hanging))
    made.capability()
    with pytest.raises(CallTimeout, match="Tool had no answer after"):
        told(made, "--json", deadline=time.monotonic() + 1)
    with pytest.raises(CallTimeout, match="before it was begun"):
        told(made, "--json", deadline=time.monotonic() - 1)


def test_a_flood_of_output_is_told(tmp_path):
    flood = SOURCE.replace("words = ", "\nwhile True: print('x' * 10_000)\nwords = ")
    with pytest.raises(PassingError, match="printed more than 1 MB"):
        told(launcher(write_program(tmp_path, "tool", flood)), "--json", most_output=1_000_000)


def test_a_file_to_sign_in_with_is_copied_for_its_owner_only(tmp_path):
    (tmp_path / "auth.json").write_text("{}", "utf-8")
    assert copied(tmp_path / "auth.json", tmp_path / "home" / ".tool", "auth.json")
    assert (tmp_path / "home/.tool/auth.json").stat().st_mode & 0o777 == 0o600
    assert not copied(tmp_path / "nothing", tmp_path / "home", "auth.json")


def test_settings_name_no_switch_that_allows_everything():
    with pytest.raises(ValueError, match="COPILOT_ALLOW_ALL"):
        ProgramSettings(pass_variables=("COPILOT_ALLOW_ALL",))


def test_no_shell_reads_a_prompt(tmp_path):
    """A prompt is data: what a shell would run is handed on as it is."""
    words = "$(touch broken); `touch broken`"
    made = launcher(write_program(tmp_path, "tool", SOURCE))
    assert told(made, "--json", stdin=words)[0]["words"] == words
