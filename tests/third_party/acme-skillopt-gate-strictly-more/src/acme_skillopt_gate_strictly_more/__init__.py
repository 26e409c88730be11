"""A gate that counts solved tasks."""

from skillopt_kernel import PLUGIN_API, Manifest

plugin = Manifest(
    kind="gate",
    name="strictly_more",
    api=PLUGIN_API,
    summary="a candidate must solve so many more tasks than the current skill",
    factory="acme_skillopt_gate_strictly_more.gate:StrictlyMoreGate",
    settings="acme_skillopt_gate_strictly_more.gate:StrictlyMoreSettings",
    section="evaluation",
)
