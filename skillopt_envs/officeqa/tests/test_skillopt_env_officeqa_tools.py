"""The tools: what they answer, that nothing leads out of the corpus, and that no argument is fatal."""

import json
import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import skillopt_env_officeqa.corpus as corpus_module
import skillopt_env_officeqa.passages as passages_module
from officeqa_world import CORPUS, call
from skillopt_env_officeqa.corpus import open_corpus
from skillopt_env_officeqa.passages import CHARACTERS, PassageIndex, passages_of
from skillopt_env_officeqa.tools import LONGEST_RESULT, MOST_HITS, MOST_NAMES, TOOLS, CorpusTools
from skillopt_kernel.errors import DataError
from skillopt_kernel.records import ToolCall

NAME = "treasury_bulletin_1942_07.txt"


def tools_of(folder, index=None):
    corpus = open_corpus([folder])
    return CorpusTools(corpus, PassageIndex(corpus, index))


@pytest.fixture(scope="module")
def tools():
    return tools_of(CORPUS)


@pytest.fixture
def folder(tmp_path):
    """A corpus with everything that must not be reached beside it."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.txt").write_text("the open text\nsecond line\n")
    (tmp_path / "secret.txt").write_text("CANARY")
    (docs / "out.txt").symlink_to(tmp_path / "secret.txt")
    (docs / "inside.txt").symlink_to("a.txt")
    (docs / "up").symlink_to(tmp_path)
    (docs / "binary.txt").write_bytes(b"CANARY\0\1\2")
    (docs / "page.html").write_text("CANARY")
    os.mkfifo(docs / "pipe.txt")
    return docs


def test_search_finds_a_table_by_row_and_month(tools):
    found = tools.answer(call("search", query="Customs June 1942"))
    first = found.split("\n\n")[0].splitlines()
    assert first[0].startswith(f"{NAME}, lines ")
    assert any("| Customs | 636.6 |" in line for line in first[1:])


def test_search_can_be_narrowed_to_documents(tools):
    found = tools.answer(call("search", query="Customs", documents="*_1950_*"))
    assert {line.split(",")[0] for line in found.splitlines() if ", lines" in line} == {"treasury_bulletin_1950_02.txt"}


def test_month_and_year_are_found_although_a_name_has_numbers_only(tools):
    found = tools.answer(call("search", query="august 1982"))
    assert found.startswith("treasury_bulletin_1982_08.txt")


@pytest.mark.parametrize(
    "query", ['"', "AND OR NOT", "x NEAR y", "name:1942", "a* (b", "'; drop table places; --", "-"]
)
def test_no_query_is_an_operator(tools, query):
    assert "Traceback" not in tools.answer(call("search", query=query))
    assert tools.answer(call("search", query="Customs June 1942")).startswith(NAME)


def test_glob_lists_names(tools):
    assert tools.answer(call("glob", pattern="*_19[34]*")).splitlines() == [
        "treasury_bulletin_1939_01.txt", NAME, "treasury_bulletin_1944_01.txt",
    ]  # fmt: skip
    assert tools.answer(call("glob", pattern="nothing*")).startswith("[no document")


def test_read_gives_lines_and_says_where_it_goes_on(tools, tmp_path):
    assert tools.answer(call("read", path=NAME, limit=2)) == f"{NAME}, lines 1 to 2:\nTreasury Bulletin\nJuly 1942"
    assert "has no line 9999" in tools.answer(call("read", path=NAME, start=9999))
    lines = [f"line {number} {'x' * 90}" for number in range(1, 101)]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    seen, start = [], 1
    while start:
        answer = tools_of(tmp_path).answer(call("read", path="a.txt", start=start, limit=200))
        assert len(answer) < LONGEST_RESULT + 100
        seen += [line for line in answer.splitlines() if line.startswith("line ")]
        start = int(answer.rsplit("start=", 1)[1].rstrip("]")) if "start=" in answer else 0
    assert seen == lines


def test_grep_finds_texts_whatever_their_case(tools):
    assert tools.answer(call("grep", path=NAME, pattern="customs")).splitlines() == ["13: | Customs | 636.6 | 967.8 |"]
    assert "no line" in tools.answer(call("grep", path=NAME, pattern="zebra"))
    assert "no regular" in TOOLS[3].parameters["properties"]["pattern"]["description"]
    assert "no line" in tools.answer(call("grep", path=NAME, pattern="C.stoms"))


@pytest.mark.parametrize(
    "path",
    ["../secret.txt", "out.txt", "up/secret.txt", "/etc/passwd", "binary.txt", "page.html", "pipe.txt", "..", ".",
     "", "a.txt/../../secret.txt", "C:\\secret.txt", "a.txt\0", "x" * 999, "up/docs/a.txt", "~/.bashrc",
     "file:///etc/passwd", "%2e%2e/secret.txt"],
)  # fmt: skip
@pytest.mark.parametrize("tool", ["read", "grep"])
def test_nothing_leads_out_of_the_corpus(folder, tool, path):
    answer = tools_of(folder).answer(call(tool, path=path, **({"pattern": "a"} if tool == "grep" else {})))
    assert answer.startswith("[error: there is no document")
    assert len(answer) < 1000


def test_what_cannot_be_reached_is_not_listed_or_found(folder):
    tools = tools_of(folder)
    assert tools.answer(call("glob", pattern="*")).splitlines() == ["a.txt", "inside.txt"]
    assert tools.answer(call("search", query="CANARY")).startswith("[no passage")
    assert "second line" in tools.answer(call("read", path="inside.txt"))
    left_out = tools.corpus.left_out
    assert left_out["are links that lead out of their folder"] == ("out.txt",)
    assert left_out["are binary"] == ("binary.txt",)
    assert left_out["are no regular files"] == ("pipe.txt",)


def test_a_document_that_became_a_link_is_not_followed(folder):
    tools = tools_of(folder)
    (folder / "a.txt").unlink()
    (folder / "a.txt").symlink_to(folder.parent / "secret.txt")
    with pytest.raises(Exception, match="cannot be read") as raised:
        tools.answer(call("read", path="a.txt"))
    assert type(raised.value).__name__ == "EnvironmentFailure", "no fault of the target"


def test_documents_that_are_too_large_are_left_out(folder, monkeypatch):
    monkeypatch.setattr(corpus_module, "LARGEST", 30)
    (folder / "big.txt").write_text("x" * 31)
    found = open_corpus([folder])
    assert "big.txt" not in found.documents
    assert any("larger" in reason for reason in found.left_out)


def test_a_line_without_end_is_answered_in_part(tmp_path):
    (tmp_path / "long.txt").write_text("figure " * 300_000)
    tools = tools_of(tmp_path)
    assert len(tools.answer(call("read", path="long.txt"))) < LONGEST_RESULT + 200
    assert len(tools.answer(call("grep", path="long.txt", pattern="figure"))) < 600
    assert len(tools.answer(call("search", query="figure"))) < 600


def test_many_hits_and_names_are_cut_and_say_so(tmp_path):
    (tmp_path / "a.txt").write_text("hit\n" * 100)
    for number in range(60):
        (tmp_path / f"n{number:02d}.txt").write_text("x")
    tools = tools_of(tmp_path)
    assert len(tools.answer(call("grep", path="a.txt", pattern="hit")).splitlines()) == MOST_HITS + 1
    names = tools.answer(call("glob", pattern="n*")).splitlines()
    assert len(names) == MOST_NAMES + 1
    assert names[-1] == "[and 10 more; use a narrower pattern]"


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("shell", "{}", "there is no tool 'shell'; there are search, glob, read, grep"),
        ("read", "{", "are not JSON"),
        ("read", "[1]", "must be a JSON object"),
        ("read", "", "needs the argument 'path'"),
        ("read", "{}", "needs the argument 'path'"),
        ("read", '{"path": null}', "needs the argument 'path'"),
        ("read", '{"path": 3}', "must be text"),
        ("read", json.dumps({"path": NAME, "start": 0}), "must be a whole number from 1"),
        ("read", json.dumps({"path": NAME, "start": -5}), "must be a whole number from 1"),
        ("read", json.dumps({"path": NAME, "start": 1.5}), "must be a whole number from 1"),
        ("read", json.dumps({"path": NAME, "limit": True}), "must be a whole number from 1"),
        ("read", json.dumps({"path": NAME, "start": 10**30}), "must be a whole number from 1"),
        ("read", json.dumps({"path": NAME, "lines": 3}), "has no argument 'lines'"),
        ("grep", json.dumps({"path": NAME, "pattern": " "}), "the pattern is blank"),
        ("search", '{"query": "..."}', "holds no word"),
        ("search", '{"query": "x", "documents": "nothing*"}', "no document's name matches"),
        ("read", "[" * 5000, "are not JSON"),
        ("read", json.dumps({"path": "x" * 100_000}), "at most 1000 are taken"),
        ("glob", json.dumps({"pattern": "[" * 20_000}), "has 20000 characters; at most 1000 are taken"),
        ("search", json.dumps({"query": "x", "documents": "*a" * 50_000}), "at most 1000 are taken"),
        ("search", json.dumps({"query": "customs " * 9999}), "at most 1000 are taken"),
        ("grep", json.dumps({"path": NAME, "pattern": "x" * 10**6}), "at most 1000 are taken"),
        ("x" * 10**6, "{}", "there is no tool 'xxx"),
        ("read", json.dumps({"path": NAME, "y" * 10**6: 1}), "has no argument 'yyy"),
        ("search", json.dumps({"query": "x", "documents": "n" * 999}), "no document's name matches 'nnn"),
    ],
)
def test_wrong_arguments_are_answered(tools, name, arguments, words):
    answer = tools.answer(ToolCall("c", name, arguments))
    assert answer.startswith("[error: ")
    assert words in answer
    assert len(answer) < 1000


@pytest.mark.parametrize(
    "pattern", ["[" * 1000, "*a" * 500, "[a-" * 333, "?" * 1000, "[z-a]", "[!]", "\\", "\ud800", "\0"]
)
def test_no_pattern_is_beyond_matching(tools, pattern):
    assert tools.answer(call("glob", pattern=pattern)) == "[no document's name matches this pattern]"


def test_a_search_that_takes_too_long_is_given_up(tools, monkeypatch):
    monkeypatch.setattr(passages_module, "LONGEST_SEARCH", -1.0)
    monkeypatch.setattr(passages_module, "_STEPS_BETWEEN_LOOKS", 1)
    answer = tools.answer(call("search", query="Customs June 1942"))
    assert answer == "[error: the search took too long; use fewer words, and rarer ones]"
    monkeypatch.undo()
    assert tools.answer(call("search", query="Customs June 1942")).startswith(NAME)


def test_a_document_in_another_encoding_is_read_as_far_as_it_can_be(tmp_path):
    (tmp_path / "a.txt").write_bytes("Münzen 12.5\r\nsecond".encode("latin-1"))
    tools = tools_of(tmp_path)
    assert tools.answer(call("read", path="a.txt")).splitlines()[1:] == ["M\ufffdnzen 12.5", "second"]
    assert "12.5" in tools.answer(call("grep", path="a.txt", pattern="12.5"))
    assert "12.5" in tools.answer(call("search", query="12.5"))


@pytest.mark.parametrize("name", ["A.TXT", "./a.txt", " a.txt ", "deep/../a.txt", "deep//b.txt", "DEEP/b.txt", "b.txt"])
def test_names_are_taken_as_they_are_written(tmp_path, name):
    """Those of the inventory, or a file's name alone where only one has it; nothing is worked out of a path."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "a.txt").write_text("alpha")
    (tmp_path / "deep/b.txt").write_text("beta")
    found = tools_of(tmp_path).answer(call("read", path=name))
    assert found.startswith("[error") != (name in ("./a.txt", " a.txt ", "b.txt"))


def test_numbers_in_quotes_are_taken(tools):
    assert tools.answer(call("read", path=NAME, start="2", limit="1")).endswith("July 1942")


def test_the_index_is_kept_and_made_anew_once_the_corpus_changes(tmp_path):
    docs, kept = tmp_path / "docs", tmp_path / "index"
    docs.mkdir()
    (docs / "a.txt").write_text("alpha")
    tools_of(docs, kept).answer(call("search", query="alpha"))
    (first,) = kept.iterdir()
    state = first.stat().st_mtime_ns
    assert "a.txt" in tools_of(docs, kept).answer(call("search", query="alpha"))
    assert [path.stat().st_mtime_ns for path in kept.iterdir()] == [state], "it is used again as it is"
    (docs / "b.txt").write_text("beta")
    assert "b.txt" in tools_of(docs, kept).answer(call("search", query="beta"))
    assert len(list(kept.iterdir())) == 2


def test_an_index_that_cannot_be_written_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"search index cannot be written to .*env\.index_dir"):
        PassageIndex(open_corpus([CORPUS]), tmp_path / "file" / "index").make()


def test_many_threads_search_at_once_and_find_the_same():
    tools = tools_of(CORPUS)
    queries = [f"{row} {year}" for row in ("Customs", "Treasury bills") for year in (1939, 1942, 1977)] * 5
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda query: tools.answer(call("search", query=query)), queries))
    assert together == [tools.answer(call("search", query=query)) for query in queries]


def test_passages_cover_every_line_that_has_text():
    for document in open_corpus([CORPUS]).documents.values():
        lines = document.path.read_text("utf-8").splitlines()
        covered = set()
        for passage, text in passages_of(document):
            assert text.split("\n") == lines[passage.first - 1 : passage.last]
            assert len(text) <= CHARACTERS + 100
            covered |= set(range(passage.first, passage.last + 1))
        assert {number for number, line in enumerate(lines, start=1) if line.strip()} <= covered


def test_a_folder_without_documents_is_an_error_with_the_reason(tmp_path):
    with pytest.raises(DataError, match="there is no folder"):
        open_corpus([tmp_path / "none"])
    with pytest.raises(DataError, match="no document"):
        open_corpus([tmp_path])
    outside = tmp_path / "blob"
    outside.write_text("x")
    linked = tmp_path / "snapshot"
    linked.mkdir()
    (linked / "a.txt").symlink_to(outside)
    with pytest.raises(DataError, match=r"1 files are links that lead out .*local_dir="):
        open_corpus([linked])


def test_the_readable_subfolder_is_used_wherever_the_corpus_is_named():
    by_root, by_parent = open_corpus([CORPUS]), open_corpus([CORPUS / "treasury_bulletins_parsed"])
    assert by_root.documents == by_parent.documents
    assert len(by_root.documents) == 6
    assert by_root.digest() == by_parent.digest()


def test_sqlite_has_what_the_index_needs():
    sqlite3.connect(":memory:").execute("create virtual table t using fts5(x)")
    assert Path(sqlite3.__file__).exists()
