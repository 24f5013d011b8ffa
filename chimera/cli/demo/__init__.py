"""`chimera demo`: a coding agent at work under policy, on real files, with a scripted model."""

from __future__ import annotations

__all__ = ["run_demo"]


def run_demo(*, with_policy: bool = True) -> int:
    """Show the demo, and return 0 when everything that it claims was found to be so, else 1."""
    from chimera.cli.demo.show import Demo
    from chimera.cli.screen import make_console

    return Demo(make_console(), with_policy=with_policy).run()
