"""``pytest-fairness merge``, ``salvage`` and ``export``: what can be done with the folder of a run."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_fairness.commands import add_path, add_run, add_run_or_last
from pytest_fairness.words import count


def add(subparsers: Any) -> None:
    """Declare the three."""
    parser = subparsers.add_parser(
        "merge",
        help="put the shards of a run (--fairness-shard K/N) together, to be judged with --fairness-replay",
        example="pytest-fairness merge shard-1/ shard-2/ shard-3/",
    )
    add_run(parser, "runs", nargs="+", judged=False, help="the run of each shard")
    _add_into(parser, "the merged run is made (the project's)")
    parser.set_defaults(run=merge)
    parser = subparsers.add_parser(
        "salvage",
        help="put what still verifies of a damaged run into a new one, and list what is lost",
        example="pytest-fairness salvage 2026-02-28-001",
    )
    add_run(parser, "damaged", judged=False, help="the damaged run, which is only read")
    _add_into(parser, "the new run is made (where RUN lies)")
    parser.set_defaults(run=salvage)
    parser = subparsers.add_parser(
        "export",
        help="write the records of a run, checked, to trials*.jsonl in its folder; or its tables",
        example="pytest-fairness export last --csv tables/",
    )
    add_run_or_last(parser)
    for kind in ("csv", "parquet"):
        about = f"write trials, findings, groups, pairs as {kind} files instead"
        add_path(parser, f"--{kind}", about, metavar="DIR")
    sqlite = "write trials and attempts as tables of a new SQLite file instead"
    add_path(parser, "--sqlite", sqlite, metavar="FILE")
    parser.set_defaults(run=export)


def _add_into(parser: argparse.ArgumentParser, made: str) -> None:
    """Add the option that names the folder of runs in which a run is *made*."""
    add_path(parser, "--into", f"the folder of runs in which {made}", metavar="DIR")


def merge(arguments: argparse.Namespace) -> tuple[str, int]:
    """Put shards together; say where the run is and how it is judged."""
    from pytest_fairness.runs.manifest import read_manifest
    from pytest_fairness.runs.merge import merge
    from pytest_fairness.runs.project import runs_root
    from pytest_fairness.runs.reader import reading

    merged = merge(arguments.runs, arguments.into or runs_root())
    with reading(merged) as reader:
        trials = len(reader)
    stages = [entry["stage"] for entry in read_manifest(merged)["merged_from"]]
    shards = count(stages.count(max(stages)), "shard")
    if max(stages) > 1:
        shards = f"{shards} of stage {max(stages)} with the stages before"
    return (
        f"merged {shards}, {trials:,} trials: {merged}\n"
        f"judge them with the same tests: pytest --fairness-replay={merged}\n"
    ), 0


def salvage(arguments: argparse.Namespace) -> tuple[str, int]:
    """Salvage a damaged run; say what was kept, what was lost, and how the new run is used."""
    from pytest_fairness.reports.escaping import terminal
    from pytest_fairness.runs.salvage import salvage

    damaged: Path = arguments.damaged
    done = salvage(damaged, arguments.into or damaged.resolve().parent)
    losses = [terminal(f"lost: {lost}") for lost in done.lost]
    lines = [
        f"salvaged {done.records:,} records, {done.trials:,} trials: {done.directory}",
        *(losses or ["nothing was lost"]),
        f"{damaged} is as it was",
        f"ask what is missing: the same command with --fairness-resume {done.directory.name}",
        f"judge what is there: pytest --fairness-replay={done.directory}",
    ]
    return "\n".join([*lines, ""]), 0


def export(arguments: argparse.Namespace) -> tuple[str, int]:
    """Export the records, or the tables; say which files were written, and how many records or rows
    each holds.
    """
    if arguments.csv or arguments.parquet:
        lines = _exported_tables(arguments)
    elif arguments.sqlite:
        lines = _exported_database(arguments)
    else:
        lines = _exported_records(arguments.folder)
    return "".join(f"{line}\n" for line in lines), 0


def _exported_tables(arguments: argparse.Namespace) -> Iterator[str]:
    from pytest_fairness.reports.run_tables import TABLES, open_run

    run = open_run(arguments.folder)
    written: list[Path] = []
    if arguments.csv:
        written += run.to_csv(arguments.csv)
    if arguments.parquet:
        written += run.to_parquet(arguments.parquet)
    rows = {name: len(getattr(run, name)) for name in TABLES}
    for path in written:
        yield f"{path}: {rows[path.stem]:,} rows"


def _exported_database(arguments: argparse.Namespace) -> Iterator[str]:
    from pytest_fairness.runs.export import export_tables
    from pytest_fairness.runs.reader import reading

    with reading(arguments.folder) as reader:
        rows = export_tables(reader, arguments.sqlite)
    for name, number in rows.items():
        yield f"{arguments.sqlite}, {name}: {number:,} rows"


def _exported_records(folder: Path) -> Iterator[str]:
    from pytest_fairness.runs.manifest import LOGS
    from pytest_fairness.runs.store import RunStore

    with RunStore.open(folder, writer="export") as store:
        store.export()
        heads = store.manifest()["logs"]
    for path in sorted(folder.glob(LOGS)):
        yield f"{path}: {heads[path.name]['records']:,} records"
