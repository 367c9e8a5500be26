"""Tables, picture and verdict of the rows that are here.

`lodl benchmark peers --scale full --out results/peers` does the same once it has computed what is
missing.

    python results/peers/draw.py                  # those of rows.jsonl
    python results/peers/draw.py earlier.jsonl    # only prints where we stand there
"""

import sys
from pathlib import Path

from lodl._json import write_text
from lodl_benchmarks.pages import read_json_rows, save_figure
from lodl_benchmarks.peers import draw_peers, draw_ranks, tables
from lodl_benchmarks.peers._standings import verdict
from lodl_benchmarks.peers._summary import scores

HERE = Path(__file__).parent


def main(name: str = "") -> None:
    """Write `peers.md`, `peers` and `ranks` as SVG and PNG, and print what was to be shown."""
    rows = [values for _, values in read_json_rows(HERE / (name or "rows.jsonl"))]
    if name:
        first = tables(rows)[0]
        print(f"{first.caption}\n\n{first.markdown()}\n")
        print("\n".join(verdict(scores(rows))))
        return
    text = "\n\n".join(f"## {one.caption}\n\n{one.markdown()}" for one in tables(rows))
    write_text(HERE / "peers.md", f"{text}\n")
    save_figure(draw_peers(rows), HERE / "peers")
    save_figure(draw_ranks(rows), HERE / "ranks")
    print("\n".join(verdict(scores(rows))))


if __name__ == "__main__":
    main(*sys.argv[1:])
