"""A testing kit for agents and policies: a scripted model, the real loop, real tools, real files."""

from chimera.testing.harness import (
    AssembledHarness,
    Harness,
    HarnessRun,
    create_assembled_harness,
    create_harness,
    default_test_tools,
)

__all__ = [
    "AssembledHarness",
    "Harness",
    "HarnessRun",
    "create_assembled_harness",
    "create_harness",
    "default_test_tools",
]
