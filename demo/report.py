"""What the demo prints at its end: the counts, what differs, the analyst's first query, and where to go on."""

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import sql
from rich.console import Console
from rich.table import Table

from demo.comparison import Comparison
from demo.settings import WAREHOUSES, Airflow

SHOWN_DIFFERENCES = 5

QUESTION = "Where does our revenue come from?"
QUERY = sql.SQL("""\
select c.country, o.currency, count(*) as orders, sum(o.price) as revenue,
       round(avg(o.price), 2) as average
from orders as o join customers as c using (customer_id)
where o.status in ('paid', 'shipped')
group by c.country, o.currency
order by orders desc, c.country""")

NEXT = (
    "make status           what runs, and where",
    "schemas/<name>.avsc   write one to add a feed: its DAG appears in seconds, with a topic and tables of its own",
    "make down             stop everything; `make up` brings it back with all its data",
)


def counts(comparisons: Sequence[Comparison]) -> Table:
    """One line per feed: how many records and rows stand in each store, and whether they are the right ones."""
    loaded = [f"loaded {warehouse}" for warehouse in WAREHOUSES]
    titles = ("feed", "published", "archived", "clean", "quarantined", *loaded, "reconciled")
    return _table(titles, [_counts(each) for each in comparisons], left=("feed", "reconciled"))


def answers(rows: Sequence[Mapping[str, Any]]) -> Table:
    """The rows of a query."""
    titles = tuple(rows[0]) if rows else ("no rows",)
    cells = [[_number(value) for value in row.values()] for row in rows]
    return _table(titles, cells, left=("country", "currency"))


def explain(console: Console, comparison: Comparison) -> None:
    """The first differences of every store; personal values are never shown."""
    if comparison.archived != comparison.published:
        _line(console, f"{comparison.feed}, archive: {comparison.published} published, {comparison.archived} archived")
    for store, found in comparison.differing.items():
        if found:
            _line(console, f"{comparison.feed}, {store}: {len(found)} keys differ from the oracle")
            for difference in found[:SHOWN_DIFFERENCES]:
                _line(console, f"  {difference}")


def query(console: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    console.print(f"\n[bold]An analyst's first query in finance:[/] {QUESTION}\n")
    _line(console, QUERY.as_string())
    console.print()
    console.print(answers(rows))


def closing(console: Console, airflow: Airflow) -> None:
    console.print(f"\n[bold]Airflow[/]  {airflow.url}  user {airflow.user}  password ", end="", highlight=False)
    _line(console, airflow.password)
    console.print("\n[bold]Try next[/]")
    for line in NEXT:
        _line(console, f"  {line}")


def _counts(comparison: Comparison) -> list[str]:
    rows = (comparison.published, comparison.archived, comparison.clean, comparison.quarantined)
    loaded = [_number(comparison.loaded[name]) if name in comparison.loaded else "–" for name in WAREHOUSES]
    verdict = "✓" if comparison.reconciled else "✗"
    return [comparison.feed, *map(_number, rows), *loaded, verdict]


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in titles:
        table.add_column(title, justify="left" if title in left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _number(value: object) -> str:
    return str(value) if isinstance(value, str) or value is None else f"{value:,}"


def _line(console: Console, text: str) -> None:
    """Text as it is: no markup is read in it, and no number or path is coloured or wrapped."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)
