"""Time to import the package and to print the help of its command, beyond NumPy and SciPy.

Each number is the median over fresh processes, less that of `import numpy, scipy`. Worker
processes pay for the import, too. Run it on an idle core.
"""

import subprocess
import sys
import time
from statistics import median

N_PROCESSES = 15
BARE = ("-c", "import numpy, scipy")
TARGETS = {
    "import lodl": (("-c", "import lodl"), 0.15),
    "lodl --help": (("-m", "lodl.cli", "--help"), 0.25),
}


def seconds(arguments: tuple[str, ...]) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def main() -> None:
    commands = [BARE, *(command for command, _ in TARGETS.values())]
    # Round by round, so that a busy moment meets all commands alike.
    rounds = [[seconds(command) for command in commands] for _ in range(N_PROCESSES)]
    bare, *others = (median(times) for times in zip(*rounds, strict=True))
    print(f"import numpy, scipy  {bare:.3f} s")
    for (name, (_, target)), total in zip(TARGETS.items(), others, strict=True):
        print(f"{name:<19}  {total - bare:.3f} s more, target {target} s")


if __name__ == "__main__":
    main()
