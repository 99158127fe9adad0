"""`optdyn list`."""

from rich.console import Console
from rich.table import Table


def list_scenarios() -> None:
    """Print the scenarios and their variants; the first variant is the default. Then tasks and suites."""
    import optdyn as od
    from optdyn import bench

    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("scenario", style="bold", no_wrap=True)
    table.add_column("variants (the first is the default)")
    for name, variants in sorted(od.systems.available().items()):
        table.add_row(name, ", ".join(variants))
    Console().print(table)

    tasks = Table(box=None, padding=(0, 2, 0, 0))
    tasks.add_column("task", style="bold", no_wrap=True)
    tasks.add_column("what `optdyn mpc` controls")
    for name, description in od.systems.available_tasks().items():
        tasks.add_row(name, description)
    Console().print()
    Console().print(tasks)

    suites = Table(box=None, padding=(0, 2, 0, 0))
    suites.add_column("suite", style="bold", no_wrap=True)
    suites.add_column("what `optdyn bench` measures")
    for name, description in bench.available().items():
        suites.add_row(name, description)
    Console().print()
    Console().print(suites)
