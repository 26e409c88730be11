"""The commands `skillopt-train` and `skillopt-eval`: the kernel's commands with a flag for each key."""
