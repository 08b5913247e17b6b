"""The documentation turns the drift threshold into an angle, wrongly.

Run it with any elfmem: it exits 1 while the behaviour is there, 0 without it.
"""

import asyncio
import inspect
import math
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from elfmem.config import ReviewConfig


async def main():
    texts = {"ReviewConfig": inspect.getdoc(ReviewConfig)}
    package = Path(find_spec("elfmem").origin).parent
    texts["mcp.py"] = (package / "mcp.py").read_text()
    angle = math.degrees(math.acos(1 - 2 * ReviewConfig().drift_threshold))
    wrong = [
        name for name, text in texts.items() if "\u226430\u00b0" in text or "~52 degrees" in text
    ]
    return (
        f"drift = (1 - cos) / 2, so a drift of 0.35 is {angle:.1f} degrees",
        f"an angle of 30 or 52 degrees is given in {', '.join(wrong) or 'no place'}",
        bool(wrong),
    )


def report(expected, happened, misbehaves):
    print(f"elfmem {version('elfmem')}")
    print(f"expected: {expected}")
    print(f"happened: {happened}")
    print("MISBEHAVES" if misbehaves else "AS EXPECTED")
    sys.exit(1 if misbehaves else 0)


if __name__ == "__main__":
    report(*asyncio.run(main()))
