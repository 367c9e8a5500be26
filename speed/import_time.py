"""Time to import the package, warm; worker processes pay it too."""

import subprocess
import sys
import time
from statistics import median

TARGET = 0.5


def seconds(statement: str) -> float:
    times = []
    for _ in range(7):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True)
        times.append(time.perf_counter() - started)
    return median(times)


def main() -> None:
    bare, numpy, lodl = (seconds(text) for text in ("pass", "import numpy", "import lodl"))
    print(f"import numpy  {numpy - bare:.2f} s")
    print(f"import lodl   {lodl - bare:.2f} s, target under {TARGET} s")


if __name__ == "__main__":
    main()
