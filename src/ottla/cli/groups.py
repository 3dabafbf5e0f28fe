"""`ottla groups`: list, describe, lag, reset, delete."""

import asyncio
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.completion import group_ids, topic_names
from ottla.cli.connecting import (
    Bootstrap,
    ConfigFile,
    Json,
    NotThere,
    Settings,
    Timeout,
    WrongUsage,
    target,
)
from ottla.cli.output import Output, table_of
from ottla.cli.positions import EXPLANATION, parse_position
from ottla.cli.running import run_admin, tell_results

if TYPE_CHECKING:
    from ottla.client.admin import AsyncAdmin

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")

Group = Annotated[str, typer.Argument(metavar="GROUP", autocompletion=group_ids, show_default=False)]
Groups = Annotated[list[str], typer.Argument(metavar="GROUP...", autocompletion=group_ids, show_default=False)]
SomeGroups = Annotated[
    list[str] | None, typer.Argument(metavar="[GROUP...]", autocompletion=group_ids, show_default=False)
]
STATES = (
    "Stable",
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "NotReady",
    "Dead",
    "Unknown",
)
TYPES = ("classic", "consumer", "share", "streams")
LAG_COLUMNS = ("group", "topic", "partition", "committed", "end", "lag", "member", "host")


@app.command("list")
def list_groups(
    states: Annotated[
        list[str] | None, typer.Option("--state", help="Stable, Empty, PreparingRebalance ... Repeatable.")
    ] = None,
    types: Annotated[list[str] | None, typer.Option("--type", help="classic or consumer. Repeatable.")] = None,
    json: Json = False,
    bootstrap: Bootstrap = None,
    settings: Settings = None,
    config_file: ConfigFile = None,
    timeout: Timeout = None,
) -> None:
    """List the groups of the cluster.

    [bold]Examples[/bold]

        ottla groups list

        ottla groups list --state Stable --type consumer
    """
    output = Output(json)

    async def work(admin: "AsyncAdmin") -> None:
        chosen_states = [_known("--state", state, STATES) for state in states or ()]
        chosen_types = [_known("--type", kind, TYPES) for kind in types or ()]
        rows = [
            {
                "group": one.group_id,
                "type": one.type,
                "state": one.state,
                "protocol": one.protocol_type,
                "coordinator": one.coordinator,
            }
            for one in await admin.list_groups(states=chosen_states, types=chosen_types)
        ]
        output.rows(("group", "type", "state", "coordinator"), rows, empty="there are no groups")

    run_admin(target(bootstrap, settings, config_file, timeout), output, work)


def _known(option: str, given: str, known: tuple[str, ...]) -> str:
    """As Kafka writes it. A broker would answer a word that it does not know with no groups."""
    found = next((one for one in known if one.lower() == given.lower()), None)
    if found is None:
        raise WrongUsage(f"{option} {given}: it must be {', '.join(known[:-1])} or {known[-1]}")
    return found


@app.command("describe")
def describe_groups(
    ids: Groups,
    json: Json = False,
    bootstrap: Bootstrap = None,
    settings: Settings = None,
    config_file: ConfigFile = None,
    timeout: Timeout = None,
) -> None:
    """Show state, members and assignments of groups.

    [bold]Examples[/bold]

        ottla groups describe billing
    """
    output = Output(json)

    async def work(admin: "AsyncAdmin") -> bool:
        results = await admin.describe_groups(ids)
        for group in results.succeeded.values():
            members = [
                {
                    "member": member.member_id,
                    "instance": member.instance_id,
                    "client": member.client_id,
                    "host": member.host.removeprefix("/"),
                    "assignment": [str(partition) for partition in member.assignment],
                }
                for member in group.members
            ]
            head = {
                "group": group.group_id,
                "type": group.type,
                "state": group.state,
                "assignor": group.assignor or None,
                "coordinator": group.coordinator,
            }
            if output.is_json:
                output.line({**head, "members": members})
            else:
                output.facts({**head, "members": len(members)})
                output.rows(("member", "instance", "client", "host", "assignment"), members, empty="no members")
        return tell_results(output, type(results)(results.errors), "group", "described", lambda _: {})

    run_admin(target(bootstrap, settings, config_file, timeout), output, work)


@app.command("lag")
def show_lag(
    ids: SomeGroups = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Keep the table up to date until Ctrl-C.")] = False,
    interval: Annotated[float, typer.Option("--interval", min=0.2, help="Seconds between two looks.")] = 2.0,
    json: Json = False,
    bootstrap: Bootstrap = None,
    settings: Settings = None,
    config_file: ConfigFile = None,
    timeout: Timeout = None,
) -> None:
    """Show how far groups are behind, of all groups where none are named.

    With --watch as a live table on a terminal, else as lines for every look.

    [bold]Examples[/bold]

        ottla groups lag billing

        ottla groups lag billing --watch --interval 1

        ottla groups lag --json
    """
    output = Output(json)

    async def work(admin: "AsyncAdmin") -> None:
        if watch and not output.is_json and sys.stdout.isatty():
            await _live_lag(admin, output, ids, interval)
            return
        while True:
            rows = await _lag_rows(admin, ids)
            output.rows(LAG_COLUMNS, rows, empty="nothing is committed")
            sys.stdout.flush()
            if not watch:
                return
            await asyncio.sleep(interval)

    run_admin(target(bootstrap, settings, config_file, timeout), output, work, is_endless=watch)


async def _lag_rows(admin: "AsyncAdmin", ids: list[str] | None) -> list[dict[str, object]]:
    from ottla.cli.lag import lags_of, lags_of_all

    found = await lags_of(admin, list(ids)) if ids else await lags_of_all(admin)
    return [row.row() for row in found]


async def _live_lag(admin: "AsyncAdmin", output: Output, ids: list[str] | None, interval: float) -> None:
    from rich.live import Live

    with Live(console=output.console, auto_refresh=False, transient=False) as live:
        while True:
            rows = await _lag_rows(admin, ids)
            behind = sum(row["lag"] for row in rows if isinstance(row["lag"], int))
            title = f"{time.strftime('%H:%M:%S')}  lag {behind}  (Ctrl-C ends)"
            live.update(table_of(LAG_COLUMNS, rows, title), refresh=True)
            await asyncio.sleep(interval)


@app.command("reset")
def reset_offsets(
    group: Group,
    to: Annotated[str | None, typer.Option("--to", metavar="PLACE", help=f"{EXPLANATION}.")] = None,
    by: Annotated[int | None, typer.Option("--by", metavar="N", help="Move by so many records; -N goes back.")] = None,
    topics: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            "-t",
            metavar="TOPIC[:PARTITIONS]",
            autocompletion=topic_names,
            help="Only of this topic, such as orders or orders:0,2-3. Repeatable.",
        ),
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Do it; without, it is only shown.")] = False,
    json: Json = False,
    bootstrap: Bootstrap = None,
    settings: Settings = None,
    config_file: ConfigFile = None,
    timeout: Timeout = None,
) -> None:
    """Move the offsets of a group: shows where they would go, and moves them with --apply.

    The group must have no members: stop its consumers first.

    [bold]Examples[/bold]

        ottla groups reset billing --to beginning

        ottla groups reset billing --to 2h --topic orders --apply

        ottla groups reset billing --by -100 --topic orders:0,2 --apply
    """
    output = Output(json)

    async def work(admin: "AsyncAdmin") -> bool:
        if (to is None) == (by is None):
            raise WrongUsage("say where the offsets go: either --to PLACE or --by N")
        return await _reset(admin, output, group, to, by, list(topics or ()), apply)

    run_admin(target(bootstrap, settings, config_file, timeout), output, work)


async def _reset(
    admin: "AsyncAdmin", output: Output, group: str, to: str | None, by: int | None, topics: list[str], apply: bool
) -> bool:
    from ottla.cli.reset import bounds_of, chosen, planned

    position = None if to is None else parse_position(to, int(time.time() * 1000))
    committed = (await admin.list_group_offsets(group))[group]
    described = (await admin.describe_topics({text.partition(":")[0] for text in topics})).raise_for_errors()
    sizes = {name: len(topic.partitions) for name, topic in described.items()}
    partitions = chosen(committed, topics, sizes)
    if not partitions:
        raise NotThere(f"group {group} has no offsets: name the topics with --topic")
    moves = planned(committed, await bounds_of(admin, partitions, position), position, by)
    status = "moved" if apply else "would move"
    if apply:
        results = await admin.alter_group_offsets(group, {move.partition: move.new for move in moves})
        results.raise_for_errors()
    rows = [{"group": group, **move.row(), "status": status} for move in moves]
    output.rows(("topic", "partition", "current", "new", "change", "lag"), rows, empty="nothing to move")
    if not apply:
        output.note("nothing was changed yet: add --apply to do it")
    return True


@app.command("delete")
def delete_groups(
    ids: Groups,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
    bootstrap: Bootstrap = None,
    settings: Settings = None,
    config_file: ConfigFile = None,
    timeout: Timeout = None,
) -> None:
    """Delete groups and their offsets. They must have no members. Asks first, unless told --yes.

    [bold]Examples[/bold]

        ottla groups delete billing --yes
    """
    output = Output(json)

    async def work(admin: "AsyncAdmin") -> bool:
        from ottla.cli.topics import confirmed

        if not yes and not confirmed(f"Delete {', '.join(ids)} and all offsets?"):
            raise WrongUsage("nothing was deleted: confirm it, or give --yes")
        return tell_results(output, await admin.delete_groups(ids), "group", "deleted", lambda _: {})

    run_admin(target(bootstrap, settings, config_file, timeout), output, work)
