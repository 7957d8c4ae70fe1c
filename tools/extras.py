"""Print the requirements of pyproject.toml's extras, for pip.

`core` names the package's own dependencies, `lint` the tools of `make lint`.
"""

import re
import sys
from pathlib import Path

LINT = ["clang-format==18.*", "ruff>=0.6"]


def array(text: str, name: str) -> list[str]:
    """The strings of the array `name = [...]`; Python 3.10 has no tomllib."""
    found = re.search(rf"^{name} = \[(.*?)\]$", text, re.MULTILINE | re.DOTALL)
    if not found:
        sys.exit(f"extras.py: pyproject.toml has no list {name!r}")
    return re.findall(r'"([^"]+)"', found.group(1))


def main() -> None:
    text = (Path(__file__).parent.parent / "pyproject.toml").read_text()
    for name in sys.argv[1:]:
        if name == "lint":
            requirements = LINT
        else:
            requirements = array(text, "dependencies" if name == "core" else name)
        print("\n".join(requirements))


if __name__ == "__main__":
    main()
