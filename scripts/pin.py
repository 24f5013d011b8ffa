"""Write the versions that are installed in this environment into constraints.txt."""

from __future__ import annotations

from importlib.metadata import distributions
from pathlib import Path

TARGET = Path(__file__).parents[1] / "constraints.txt"
HEADER = "# The versions that Chimera is tested with. Written by `make pin`.\n"
OURS = {"chimera-harness", "pip", "setuptools", "wheel"}


def pins() -> list[str]:
    """Return one `name==version` line for each installed distribution, in order of name."""
    found = {dist.metadata["Name"].lower().replace("_", "-"): dist.version for dist in distributions()}
    return [f"{name}=={version}" for name, version in sorted(found.items()) if name not in OURS]


def main() -> None:
    lines = pins()
    TARGET.write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} versions pinned in {TARGET.name}")


if __name__ == "__main__":
    main()
