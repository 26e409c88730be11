"""Plugins: manifests, discovery, the assembly of one run's plugin manager, and the typed calls of hooks."""
