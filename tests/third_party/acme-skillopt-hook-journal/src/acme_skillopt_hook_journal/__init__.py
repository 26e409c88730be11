"""A hook plugin that keeps a diary of the run."""

from skillopt_kernel import PLUGIN_API, Manifest

plugin = Manifest(
    kind="hook",
    name="journal",
    api=PLUGIN_API,
    summary="keeps a diary of the run in a Markdown file",
    factory="acme_skillopt_hook_journal.journal:Journal",
    settings="acme_skillopt_hook_journal.journal:JournalSettings",
)
