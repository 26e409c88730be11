"""Scorers for SkillOpt: how an answer compares with a reference."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version


def _scorer(name: str, summary: str, factory: str, settings: str = "") -> Manifest:
    settings = settings and f"skillopt_scorers.settings:{settings}"
    return Manifest("scorer", name, PLUGIN_API, summary, f"skillopt_scorers.{factory}", settings)


exact = _scorer("exact", "right when the answer equals an accepted one", "exact_match:ExactScorer", "ExactSettings")
token_f1 = _scorer(
    "token_f1",
    "exact match as SQuAD and MRQA have it, with token F1 as partial credit",
    "token_overlap:TokenF1Scorer",
)
contains = _scorer(
    "contains", "right when the answer contains what it must", "substrings:ContainsScorer", "ContainsSettings"
)
regex = _scorer("regex", "right when the answer matches a regular expression", "patterns:RegexScorer", "RegexSettings")
numeric = _scorer(
    "numeric", "a number within a tolerance, with units that convert", "numbers_near:NumericScorer", "NumericSettings"
)
choice = _scorer(
    "choice", "the label of the right choice, in whatever spelling", "choices:ChoiceScorer", "ChoiceSettings"
)
json = _scorer("json", "JSON by its fields, by a schema, or both", "json_fields:JsonScorer", "JsonSettings")
anls = _scorer(
    "anls",
    "similarity of the spelling, as document question answering is scored",
    "spelling:AnlsScorer",
    "AnlsSettings",
)
math = _scorer("math", "mathematical expressions that are equal", "mathematics:MathScorer", "MathSettings")
llm_judge = _scorer("llm_judge", "a model judges the answer by a rubric", "judging:JudgeScorer", "JudgeSettings")
python = _scorer("python", "a function of your own, by object path", "functions:PythonScorer", "PythonSettings")
command = _scorer(
    "command", "a program of your own, which reads JSON and prints JSON", "programs:CommandScorer", "CommandSettings"
)

__getattr__ = lazy_version("skillopt-scorers")
