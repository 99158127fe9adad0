"""`optdyn list`."""

from rich.console import Console
from rich.table import Table


def list_scenarios() -> None:
    """Print the scenarios and their variants; the first variant is the default."""
    import optdyn as od

    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("scenario", style="bold", no_wrap=True)
    table.add_column("variants (the first is the default)")
    for name, variants in sorted(od.systems.available().items()):
        table.add_row(name, ", ".join(variants))
    Console().print(table)
