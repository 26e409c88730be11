"""A benchmark of sums for SkillOpt."""

from skillopt_kernel import PLUGIN_API, Manifest

plugin = Manifest(
    kind="env",
    name="arithmetic",
    api=PLUGIN_API,
    summary="sums of whole numbers, made from a seed",
    factory="acme_skillopt_env_arithmetic.environment:ArithmeticEnvironment",
    settings="acme_skillopt_env_arithmetic.environment:ArithmeticSettings",
)
