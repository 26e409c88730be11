"""What both backends on Claude Code share: how it signs in, what it is given, and how its events are read."""
