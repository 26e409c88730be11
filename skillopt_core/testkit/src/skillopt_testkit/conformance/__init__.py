"""One suite for each kind of plugin."""
