"""The density of a text, and the bonus that is made of it."""

import logging

import pytest
from skillopt_hook_semantic_density import plugin
from skillopt_hook_semantic_density.density import SemanticDensity, density, unprotected
from skillopt_hook_semantic_density.settings import SemanticDensitySettings, listed
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.skill import with_region

BUILT_IN = listed(None)
SEVEN = "You MUST answer; never guess, always think."
"""Seven words, three of them leading."""


def bonus(skill, **settings):
    made = SemanticDensity(SemanticDensitySettings(**settings), DriverContext(logging.getLogger("test")))
    return made.skillopt_score_bonus(skill)


@pytest.mark.parametrize(
    ("skill", "share"),
    [
        ("", 0),
        (" \n\t\n", 0),
        ("--- ... ***", 0),
        ("日本語", 0),
        ("MUST", 1),
        ("You must always look twice at the table and chart.", 0.2),
        (SEVEN, 3 / 7),
        ("mustard musty must", 1 / 3),  # whole words only
        ("must_never", 1),  # an underscore is no letter: two words
        ("don't", 0),
        ("MUST 7 x1", 1 / 3),
    ],
)
def test_the_density_is_the_share_of_leading_words(skill, share):
    assert density(skill, BUILT_IN) == share


def test_the_built_in_list_is_counted_in_any_case():
    words = "MUST ALWAYS NEVER ONLY CRITICAL IMPORTANT RESOLVE PREFER ENSURE STRICT VERIFY"
    for text in (words, words.lower(), words.title()):
        assert density(text, BUILT_IN) == 1
    assert len(BUILT_IN) == 11


def test_protected_regions_are_no_part_of_the_text():
    guided = with_region(with_region(SEVEN, "slow_update", "MUST MUST MUST"), "appendix", "a note that is long")
    assert density(guided, BUILT_IN) == 3 / 7
    assert density(with_region("", "slow_update", "MUST"), BUILT_IN) == 0


@pytest.mark.parametrize(
    ("skill", "rest"),
    [
        ("a <!-- SLOW_UPDATE_START --> MUST b", "a  MUST b"),  # unclosed: the marker alone goes
        ("a <!-- APPENDIX_END --> MUST b", "a  MUST b"),
        ("a <!-- APPENDIX_START --> x <!-- APPENDIX_END --> b <!-- APPENDIX_START --> c", "a  b  c"),
        (
            "a <!-- APPENDIX_START --> <!-- SLOW_UPDATE_START --> x <!-- APPENDIX_END --> y <!-- SLOW_UPDATE_END --> b",
            "a  b",
        ),
        ("a <!-- SLOW_UPDATE<!-- APPENDIX_START -->_START --> b", "a  b"),
    ],
)
def test_markers_are_taken_out_with_what_they_enclose(skill, rest):
    assert unprotected(skill) == rest


def test_the_bonus_is_weight_times_density():
    assert round(0.8 + bonus(SEVEN, semantic_density_weight=0.1), 4) == 0.8429
    assert bonus(SEVEN) == pytest.approx(0.05 * 3 / 7, abs=1e-15)
    assert bonus(SEVEN, semantic_density_weight=0) == 0


def test_a_list_of_its_own_replaces_the_built_in_one():
    for words in ("You, THINK", ["you", "Think"], ("YOU", " think ", "You")):
        assert bonus(SEVEN, semantic_density_weight=1, leading_words=words) == 2 / 7


def test_the_manifest_names_what_there_is():
    assert (plugin.kind, plugin.name, plugin.keys) == ("hook", "semantic_density", ("evaluation.use_semantic_density",))
    for path, named in ((plugin.factory, SemanticDensity), (plugin.settings, SemanticDensitySettings)):
        assert path == f"{named.__module__}:{named.__name__}"
