"""Tables, picture and verdict of the rows that are here.

`lodl benchmark peers --scale full --out results/peers` does the same once it has computed what is
missing.

    python results/peers/draw.py
"""

from pathlib import Path

from lodl.benchmarks.peers import draw_peers, tables
from lodl.benchmarks.peers._standings import verdict
from lodl.benchmarks.peers._summary import scores
from lodl.report import save_figure
from lodl.report.parts import read_json_rows, write_text

HERE = Path(__file__).parent


def main() -> None:
    """Write `peers.md`, `peers.svg` and `peers.png`, and print what was to be shown."""
    rows = [values for _, values in read_json_rows(HERE / "rows.jsonl")]
    text = "\n\n".join(f"## {one.caption}\n\n{one.markdown()}" for one in tables(rows))
    write_text(HERE / "peers.md", f"{text}\n")
    save_figure(draw_peers(rows), HERE / "peers")
    print("\n".join(verdict(scores(rows))))


if __name__ == "__main__":
    main()
