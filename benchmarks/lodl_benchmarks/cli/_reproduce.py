"""`lodl reproduce`: the paper's tables and figures, a command each."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import typer

from lodl.cli._modules import named
from lodl.errors import DataError, InvalidInputError
from lodl_benchmarks.cli._budget import budget
from lodl_benchmarks.cli._jobs import Jobs
from lodl_benchmarks.cli._markdown import print_markdown, show_tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lodl_benchmarks.experiments import RunSize
    from lodl_benchmarks.runner import Experiment, Setup

Scale: TypeAlias = Annotated[
    str,
    typer.Option(
        help="quick: minutes; paper: 10 domain seeds x 10 models, hours. Both resume where they "
        "stopped."
    ),
]
Domains: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        help="linear, web, portfolio or, with --prices, portfolio-prices; may be given several "
        "times. All if absent."
    ),
]
Prices: TypeAlias = Annotated[
    Path | None, typer.Option(help="CSV of Date, Symbol, Close: adds portfolio-prices.")
]
Out: TypeAlias = Annotated[
    Path, typer.Option(help="Folder of rows, samples, tables and figures; commands share it.")
]
Seeds: TypeAlias = Annotated[
    int | None, typer.Option(min=1, help="Number of domain seeds; that of the scale if absent.")
]

OUT = Path("runs")
_OF_FILE = "portfolio-prices"
_COSTS_TEXT = (
    "Seconds of one core per domain seed; the samples are shared by all learned losses. Sampling "
    "is timed by the clock, fitting and training by the processor."
)
_Record = TypeVar("_Record")

reproduce = typer.Typer(
    help="Reproduce the paper's tables and figures.", no_args_is_help=True, rich_markup_mode=None
)


def table1(
    scale: Scale = "quick",
    domain: Domains = None,
    prices: Prices = None,
    seeds: Seeds = None,
    out: Out = OUT,
    n_jobs: Jobs = -1,
) -> None:
    """Decision quality of every loss in every domain, beside the paper's numbers."""
    from lodl_benchmarks import experiments, paper, runner  # torch: only where needed

    setups = _chosen_setups(domain, prices)
    plan = experiments.table1_experiments(_size(scale, seeds, experiments.SCALES), setups)
    table = paper.table1(runner.run(plan, out, setups=setups, n_jobs=n_jobs))
    write_slices(out, plan, setups)
    _publish_table(
        out,
        "table1",
        table,
        table.table().markdown(),
        f"{paper.QUALITY_TEXT} DecisionHinges and DecisionRanking have 20 samples per instance "
        "where no other number stands.",
        table.costs().markdown(),
        _COSTS_TEXT,
    )


def table2a(scale: Scale = "quick", seeds: Seeds = None, out: Out = OUT, n_jobs: Jobs = -1) -> None:
    """Decision quality in Web Advertising by the sampler that losses are learned with."""
    from lodl_benchmarks import experiments, paper, runner  # torch: only where needed

    size = _size(scale, seeds, experiments.SCALES)
    plan = experiments.table2a_experiments(size)
    table = paper.table2a(runner.run(plan, out, setups=experiments.SETUPS, n_jobs=n_jobs))
    text = f"Web Advertising, {size.n_samples:,} samples per instance, {_runs(size)}."
    _publish_table(out, "table2a", table, table.table().markdown(), f"{paper.QUALITY_TEXT} {text}")


def table2b(scale: Scale = "quick", seeds: Seeds = None, out: Out = OUT, n_jobs: Jobs = -1) -> None:
    """Decision quality in Web Advertising by the number of samples that losses are learned from."""
    from lodl_benchmarks import experiments, paper, runner  # torch: only where needed

    size = _size(scale, seeds, experiments.SCALES)
    plan = experiments.table2b_experiments(size)
    table = paper.table2b(runner.run(plan, out, setups=experiments.SETUPS, n_jobs=n_jobs))
    text = f"Web Advertising, {_runs(size)}. The paper has 50, 500 and 5,000 samples."
    _publish_table(
        out,
        "table2b",
        table,
        table.table().markdown(),
        f"{paper.QUALITY_TEXT} {text}",
        table.costs("samples").markdown(),
        _COSTS_TEXT,
    )


def table3(
    scale: Scale = "quick",
    domain: Domains = None,
    prices: Prices = None,
    seeds: Seeds = None,
    out: Out = OUT,
    n_jobs: Jobs = -1,
) -> None:
    """Errors of the learned losses, and whether they predict the quality of decisions."""
    from lodl_benchmarks import experiments, pages, paper, runner  # torch: only where needed

    setups = _chosen_setups(domain, prices)
    size = _size(scale, seeds, experiments.TABLE3_SCALES)
    plan = experiments.table3_experiments(size, setups)
    table = paper.Table3.of(runner.run(plan, out, setups=setups, n_jobs=n_jobs))
    pages.save_figure(paper.draw_table3(list(table.domains.values())), out / "table3")
    write_slices(out, plan, setups)
    _publish_table(
        out,
        "table3",
        table,
        "\n\n".join(part.markdown() for part in table.tables()),
        "Mean absolute error of a learned loss at the predictions of the models trained on it (the "
        "paper's empirical neighbourhood) and on held-out samples around labels (its Gaussian "
        "neighbourhood; instances with nothing to decide have none and are left out there), in "
        "expected clicks for Web Advertising, else in the objective's unit; normalised test "
        f"decision quality. {size.n_samples:,} samples per instance, {_runs(size)}: "
        "mean ± standard deviation; the paper's in brackets, a star where the two intervals do not "
        "meet. DecisionHinges and DecisionRanking have 20 samples, or as many as stand there. They "
        "are bounds of the regret rather than fits of it: they have no error around labels and no "
        "part in the lines. Oracle calls are those of one domain seed.",
    )


def figure_losses(
    scale: Scale = "quick",
    out: Out = OUT,
    n_jobs: Jobs = -1,  # noqa: ARG001 (one instance is one task)
) -> None:
    """The example of two agents: true decision loss, handcrafted and learned losses."""
    from lodl_benchmarks import experiments, paper, runner  # torch: only where needed

    n_samples = _size(scale, None, experiments.SCALES).n_samples
    settings = paper.LossesSettings(n_samples, versions=runner.versions())
    data = _kept(out, "figure-losses", paper.LossesFigure, settings)
    if data is None:
        data = experiments.losses_figure(settings)
    _publish_figure(out, "figure-losses", data, paper.draw_losses(data))


def figure_linear(
    scale: Scale = "quick", seeds: Seeds = None, out: Out = OUT, n_jobs: Jobs = -1
) -> None:
    """True and learned mappings of the Linear Model."""
    from lodl_benchmarks import experiments, paper, runner  # torch: only where needed

    setup = experiments.SETUPS["linear"]
    plan = experiments.linear_figure_experiments(_size(scale, seeds, experiments.SCALES))
    rows = runner.run(plan, out, setups=experiments.SETUPS, n_jobs=n_jobs)
    settings = experiments.linear_settings(plan, rows, setup)
    data = _kept(out, "figure-linear", paper.LinearFigure, settings)
    if data is None:
        data = experiments.linear_figure(plan, rows, setup=setup, out=out, n_jobs=n_jobs)
    _publish_figure(out, "figure-linear", data, paper.draw_linear(data))


def figure_cost(scale: Scale = "quick", out: Out = OUT, n_jobs: Jobs = -1) -> None:
    """Time to train a model, by cores and by models; run nothing else on the machine meanwhile."""
    from lodl._json import write_text
    from lodl_benchmarks import experiments, paper  # torch: only where needed

    settings = experiments.cost_settings(named("scale", scale, experiments.COST_SCALES), n_jobs)
    data = _kept(out, "figure-cost", paper.CostFigure, settings)
    if data is None:
        data = experiments.cost_figure(settings)
    print_markdown(data.markdown())
    _publish_figure(out, "figure-cost", data, paper.draw_cost(data))
    write_text(out / "figure-cost.md", f"{data.markdown()}\n")


def settings(
    domain: Domains = None,
    prices: Prices = None,
    n_samples: Annotated[int, typer.Option(min=10, help="Points per instance.")] = 2000,
    out: Out = OUT / "settings",
    n_jobs: Jobs = -1,
) -> None:
    """Choose sampler, surrogate and learning rates on validation data, with separate seeds."""
    from rich.console import Console

    from lodl_benchmarks import experiments, runner  # torch: only where needed

    setups = _chosen_setups(domain, prices)
    plan = experiments.tuning_experiments(setups, n_samples)
    rows = runner.run(plan, out, setups=setups, n_jobs=n_jobs)
    Console(highlight=False).print_json(json.dumps(experiments.choose(rows)))


def spo(
    scale: Annotated[str, typer.Option(help="quick (a minute) or full (hours, resumable).")] = (
        "quick"
    ),
    published: Annotated[
        Path | None, typer.Option(help="CSV of the published figures: results/spo/README.md.")
    ] = None,
    n: Annotated[
        list[int] | None, typer.Option("--n", help="Training instances: 100, 1000 or 5000.")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option("--methods", help="Name of a method; repeat for several.")
    ] = None,
    draws: Annotated[int | None, typer.Option(min=1, help="Number of draws of each cell.")] = None,
    out: Out = OUT / "spo",
    n_jobs: Jobs = 1,
) -> None:
    """The founding table of SPO+, and the learner on the same draws. Shows all rows of `out`."""
    from lodl_benchmarks import pages
    from lodl_benchmarks import spo as room  # torch: only where needed

    figures = None if published is None else room.read_published(published)
    chosen = named("scale", scale, room.SCALES)
    methods = list(method or chosen.methods)
    for name in methods:
        named("methods", name, room.METHODS)
    cells = [name for name in chosen.cells if n is None or room.CELLS[name].n in n]
    seeds = {size: of_size[:draws] for size, of_size in chosen.draws.items()}
    room.run(room.plan(cells, methods, seeds), out, n_jobs=n_jobs)
    rows = [values for _, values in pages.read_json_rows(out / "rows.jsonl")]
    show_tables(room.tables(rows, figures), out, "spo.md")


RealModels: TypeAlias = Annotated[
    list[str] | None, typer.Option("--models", help="Name of a model; repeat for several.")
]
RealMethods: TypeAlias = Annotated[
    list[str] | None, typer.Option("--methods", help="Name of a method; repeat for several.")
]


def pjm(
    load: Annotated[Path, typer.Option(help="pjm_load.csv.gz: results/real/README.md.")],
    model: RealModels = None,
    method: RealMethods = None,
    out: Out = OUT / "real",
) -> None:
    """Generation for the load of a power grid: published costs, simple methods, and the learner."""
    _reproduce_real(load, "pjm_load.csv.gz", "pjm-2014-12", 0, model, method, out)


def semo(
    days: Annotated[
        Path,
        typer.Option(help="semo_prices.csv.gz, with semo_tasks.json: results/real/README.md."),
    ],
    model: RealModels = None,
    method: RealMethods = None,
    seeds: Annotated[int, typer.Option(min=0, help="Number of random splits.")] = 5,
    out: Out = OUT / "real",
) -> None:
    """Irish electricity prices, knapsacks and schedules: simple methods, SPO+ and the learner."""
    _reproduce_real(days, "semo_prices.csv.gz", "semo-", seeds, model, method, out)


def _reproduce_real(
    file: Path,
    name: str,
    prefix: str,
    seeds: int,
    models: list[str] | None,
    methods: list[str] | None,
    out: Path,
) -> None:
    """Run the tasks with a prefix on a file, and show them next to published figures."""
    from lodl_benchmarks import real as room  # torch: only where needed

    if file.name != name:
        raise InvalidInputError(f"The file must have the name {name}, got {file.name}.")
    tasks = [task for task in room.TASKS if task.startswith(prefix)]
    chosen = [model for model in models or room.MODELS if named("models", model, room.MODELS)]
    known = dict.fromkeys(room.METHODS, True)
    run = [method for method in methods or known if named("methods", method, known)]
    room.run(room.plan(file.parent, tasks, chosen, run, seeds), out)
    rows = room.stored_rows(out)
    show_tables(room.published_tables(rows, tasks), out, f"{prefix.partition('-')[0]}.md")


IN_ORDER: tuple[Callable[..., None], ...] = (
    table1,
    table2a,
    table2b,
    table3,
    figure_losses,
    figure_linear,
    figure_cost,
)

others: tuple[Callable[..., None], ...] = (settings, spo, pjm, semo, budget)
for command in (*IN_ORDER, *others):
    reproduce.command()(command)


@reproduce.command("all")
def every(
    scale: Scale = "quick",
    prices: Prices = None,
    seeds: Seeds = None,
    out: Out = OUT,
    n_jobs: Jobs = -1,
) -> None:
    """Every table and figure, one after the other. Rows that the folder holds are not run again."""
    options = {"scale": scale, "prices": prices, "seeds": seeds, "out": out, "n_jobs": n_jobs}
    for command in IN_ORDER:
        taken = signature(command).parameters.keys() & options.keys()
        command(**{name: options[name] for name in taken})


def write_slices(out: Path, plan: Sequence["Experiment"], setups: Mapping[str, "Setup"]) -> None:
    """Write slices of learned losses, of Web Advertising if it is there, else of the first domain.

    If only rows were copied to the folder, there are no losses to cut, and an older file stays.
    """
    from lodl._json import write_json
    from lodl_benchmarks.experiments import slices_of_losses  # torch: only where needed

    shown = "web" if "web" in setups else next(iter(setups))
    slices = slices_of_losses([e for e in plan if e.domain == shown], out, setups)
    if slices is not None:
        write_json(out / "slices.json", slices)


def _chosen_setups(domains: list[str] | None, prices: Path | None) -> Mapping[str, "Setup"]:
    """Return the setups of the given domains. Defaults to all."""
    from lodl_benchmarks import experiments  # torch: only where needed

    if prices is None and _OF_FILE in (domains or ()):
        raise InvalidInputError(f"`domain` {_OF_FILE} needs --prices FILE, the prices to use.")
    setups = experiments.SETUPS if prices is None else experiments.setups_with_prices(prices)
    return {name: named("domain", name, setups) for name in domains or setups}


def _size(scale: str, seeds: int | None, scales: Mapping[str, "RunSize"]) -> "RunSize":
    """Return the scale of a name, with another number of seeds if one is given."""
    size = named("scale", scale, scales)
    return size if seeds is None else replace(size, n_seeds=seeds)


def _runs(size: "RunSize") -> str:
    return f"{size.n_seeds} x {size.n_initialisations} runs (domain seeds x initialisations)"


def _kept(out: Path, name: str, kind: type[_Record], settings: object) -> _Record | None:
    """Return the figure's data that is there already, if it was made with the same settings."""
    from lodl_benchmarks.pages import read_json

    out.mkdir(parents=True, exist_ok=True)  # or fail before hours are spent
    try:
        data: Any = read_json(out / f"{name}.json", kind)
    except DataError:  # make it again
        return None
    return data if data is not None and data.settings == settings else None


def _publish_figure(out: Path, name: str, data: Any, figure: "Figure") -> None:
    """Write a figure as data and drawn, and say where it is."""
    from lodl._json import write_json
    from lodl_benchmarks.pages import save_figure

    path = write_json(out / f"{name}.json", data)
    svg, png = save_figure(figure, out / name)
    typer.echo(f"Figure: {svg}, {png}, data: {path}")


def _publish_table(out: Path, name: str, data: Any, *text: str) -> None:
    """Write a table as data and as Markdown, show it, and say where it is."""
    from lodl._json import write_json, write_text

    write_json(out / f"{name}.json", data)
    path = write_text(out / f"{name}.md", "\n\n".join(text) + "\n")
    for part in text:
        print_markdown(part)
    typer.echo(f"Rows: {out / 'rows.jsonl'}, table: {path}")
