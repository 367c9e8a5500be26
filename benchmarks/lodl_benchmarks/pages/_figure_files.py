"""Figures as files: SVG and PNG on white."""

from pathlib import Path

from lodl.report.style import style

from matplotlib.figure import Figure  # isort: skip - after the check that it is installed


def save_figure(figure: Figure, path: str | Path) -> tuple[Path, Path]:
    """Write `path`.svg and `path`.png, on white so that they are readable on any background.

    The same figure gives the same bytes.
    """
    svg, png = (Path(f"{path}.{suffix}") for suffix in ("svg", "png"))
    svg.parent.mkdir(parents=True, exist_ok=True)
    with style():
        figure.savefig(svg, metadata={"Date": None, "Creator": None}, facecolor="white")
        figure.savefig(png, metadata={"Software": None}, facecolor="white", dpi=160)
    return svg, png
