"""The README's example with five seeds of its data: what is gained on new instances.

python results/readme.py
"""

import contextlib
import io
import os
import re
import tempfile
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def gain(code: str, seed: int) -> tuple[float, float]:
    """Return the mean regret on new instances, before and after."""
    names: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code.replace("default_rng(0)", f"default_rng({seed})"), names)
    return names["before"].mean(), names["after"].mean()  # type: ignore[attr-defined]


if __name__ == "__main__":
    code = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[0]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for seed in range(5):
            before, after = gain(code, seed)
            print(f"seed {seed}: {before:.3f} -> {after:.3f}, {1 - after / before:.0%} less")
