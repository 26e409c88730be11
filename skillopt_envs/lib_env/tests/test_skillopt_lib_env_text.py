"""Normal forms and cut contexts."""

import pytest
from skillopt_lib_env.documents import CUT_MARK, documents, truncated_documents
from skillopt_lib_env.normalise import lenient_normalised, squad_normalised


@pytest.mark.parametrize(
    ("text", "official"),
    [
        ("The Beatles", "beatles"),
        ("  A   an\tTHE ", ""),
        ("Theater", "theater"),
        ("O'Brien", "obrien"),
        ("O’Brien", "o’brien"),
        ("red-cent", "redcent"),
        ("twenty–five", "twenty–five"),
        ("$1,000.50", "100050"),
        ("U.S.", "us"),
        ("Beyoncé", "beyoncé"),
        ("a-ha", "aha"),
    ],
)
def test_the_official_form(text, official):
    assert squad_normalised(text) == official


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("O’Brien", "O'Brien"),
        ("twenty–five", "twenty-five"),
        ("red-cent", "red cent"),
        ("Beyoncé", "Beyonce"),
        ("Cafe\u0301", "Café"),
        ("ﬁve", "five"),
        ("“Jaws”", '"Jaws"'),
    ],
)
def test_the_lenient_form_unifies_what_a_reader_takes_for_the_same(one, other):
    assert lenient_normalised(one) == lenient_normalised(other)


def test_the_lenient_form_keeps_what_differs():
    assert lenient_normalised("1.5") != lenient_normalised("25")
    assert lenient_normalised("Jaws") != lenient_normalised("Jaws 2")


def test_whole_documents_are_kept_with_the_first_marker():
    context = "[DOC] " + "a" * 3000 + " [DOC] " + "b" * 2000 + " [DOC] " + "c" * 2000
    cut = truncated_documents(context, 6000)
    assert cut == context[: context.index("[DOC] c")]
    assert cut.startswith("[DOC] aaa")


def test_a_first_document_that_does_not_fit_is_cut_with_a_mark():
    for context in ("a" * 7000, "[DOC] " + "a" * 7000 + "[DOC] b"):
        cut = truncated_documents(context, 6000)
        assert cut == context[:6000] + CUT_MARK
        assert len(cut) == 6015


def test_a_context_that_fits_is_left_alone():
    context = "before [DOC] one [DOC] two"
    assert documents(context) == ["before ", "[DOC] one ", "[DOC] two"]
    assert truncated_documents(context, len(context)) == context
    assert truncated_documents(context, len(context) - 1) == "before [DOC] one "
    assert truncated_documents(context * 1000, 0) == context * 1000
    assert truncated_documents("", 6000) == ""
