"""A guard for the whole repository: tests run against installed distributions, never against bare folders."""

import skillopt_kernel

if skillopt_kernel.__file__ is None:
    # `skillopt_kernel` without a file is a namespace made of a folder in this checkout: nothing is installed.
    raise RuntimeError(
        "skillopt_kernel is not installed: run `pip install -r requirements.txt` in the root first (see README.md)"
    )
