"""`ottla configs`: settings of topics, brokers and groups."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.connecting import (
    Bootstrap,
    ConfigFile,
    Json,
    NotThere,
    Settings,
    Timeout,
    WrongUsage,
    pairs,
    target,
)
from ottla.cli.output import Output
from ottla.cli.running import run_admin, tell_results

if TYPE_CHECKING:
    from ottla.client.admin import AsyncAdmin, ConfigResource
    from ottla.client.admin.configs import Change, ConfigEntry

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")

Resource = Annotated[
    str,
    typer.Argument(
        metavar="RESOURCE",
        help="topic:NAME, broker:ID, brokers (the defaults of all), group:ID, client-metrics:NAME or logger:ID.",
        show_default=False,
    ),
]
_KINDS = "topic:NAME, broker:ID, brokers, group:ID, client-metrics:NAME or logger:ID"


@app.command("list")
def list_resources(
    json: Json = False,
    bootstrap: Bootstrap = None,
    settings: Settings = None,
    config_file: ConfigFile = None,
    timeout: Timeout = None,
) -> None:
    """List what has settings.

    [bold]Examples[/bold]

        ottla configs list
    """
    output = Output(json)

    async def work(admin: "AsyncAdmin") -> None:
        rows = [
            {"type": one.type.name.lower().replace("_", "-"), "name": one.name}
            for one in await admin.list_config_resources()
        ]
        output.rows(("type", "name"), rows, empty="nothing has settings")

    run_admin(target(bootstrap, settings, config_file, timeout), output, work)


@app.command("describe")
def describe(
    resource: Resource,
    keys: Annotated[list[str] | None, typer.Argument(metavar="[KEY...]", show_default=False)] = None,
    everything: Annotated[bool, typer.Option("--all", "-a", help="Also what is at its default.")] = False,
    documentation: Annotated[bool, typer.Option("--docs", help="With what each setting means.")] = False,
    json: Json = False,
    bootstrap: Bootstrap = None,
    settings: Settings = None,
    config_file: ConfigFile = None,
    timeout: Timeout = None,
) -> None:
    """Show settings and where each value comes from: those that were changed, or all, or the named ones.

    [bold]Examples[/bold]

        ottla configs describe topic:orders

        ottla configs describe broker:1 --all

        ottla configs describe topic:orders retention.ms --docs
    """
    output = Output(json)

    async def work(admin: "AsyncAdmin") -> None:
        wanted = parse_resource(resource)
        results = await admin.describe_configs(wanted, names=keys or None, include_documentation=documentation)
        await refuse_unknown(admin, wanted, set(keys or ()) - set(results[wanted]))
        rows = [
            {
                "key": entry.name,
                "value": "(hidden)" if entry.is_sensitive else entry.value,
                "source": entry.source.name.lower().replace("_", " "),
                "type": entry.type.name.lower(),
                "read_only": entry.is_read_only,
                **({"documentation": entry.documentation} if documentation else {}),
            }
            for entry in sorted(results[wanted].values(), key=lambda entry: entry.name)
            if everything or keys or _is_changed(entry)
        ]
        columns = ("key", "value", "source", *(["documentation"] if documentation else []))
        output.rows(columns, rows, empty=f"{wanted}: all settings are at their defaults; --all shows them")

    run_admin(target(bootstrap, settings, config_file, timeout), output, work)


async def refuse_unknown(admin: "AsyncAdmin", resource: "ConfigResource", names: Collection[str]) -> None:
    """Say that a setting does not exist. The defaults of all brokers are listed only where they were changed: there,
    what is missing may well exist."""
    from difflib import get_close_matches

    from ottla.client.admin import ConfigResource

    if not names or resource == ConfigResource.all_brokers():
        return
    known = sorted((await admin.describe_configs(resource))[resource])
    missing = set(names) - set(known)
    if not missing:
        return
    unknown = min(missing)
    near = get_close_matches(unknown, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "--all shows those that there are"
    raise NotThere(f"{resource} has no setting {unknown!r}: {hint}")


@app.command("alter")
def alter(
    resource: Resource,
    new: Annotated[
        list[str] | None, typer.Option("--set", "-s", metavar="KEY=VALUE", help="A new value. Repeatable.")
    ] = None,
    unset: Annotated[
        list[str] | None, typer.Option("--unset", "-u", metavar="KEY", help="Back to the default. Repeatable.")
    ] = None,
    append: Annotated[
        list[str] | None, typer.Option("--append", metavar="KEY=VALUE", help="Add to a list. Repeatable.")
    ] = None,
    subtract: Annotated[
        list[str] | None, typer.Option("--subtract", metavar="KEY=VALUE", help="Take out of a list. Repeatable.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only check that it would work.")] = False,
    json: Json = False,
    bootstrap: Bootstrap = None,
    settings: Settings = None,
    config_file: ConfigFile = None,
    timeout: Timeout = None,
) -> None:
    """Change settings; those that are not named stay as they are.

    [bold]Examples[/bold]

        ottla configs alter topic:orders --set retention.ms=86400000

        ottla configs alter brokers --set log.cleaner.backoff.ms=1000

        ottla configs alter topic:orders --append cleanup.policy=compact --unset retention.ms
    """
    output = Output(json)

    async def work(admin: "AsyncAdmin") -> bool:
        from ottla.client.admin import Append, Subtract

        changes: dict[str, Change] = dict(pairs(new))
        changes |= dict.fromkeys(unset or ())
        changes |= {key: Append(value) for key, value in pairs(append, "--append")}
        changes |= {key: Subtract(value) for key, value in pairs(subtract, "--subtract")}
        if not changes:
            raise WrongUsage("nothing to change: give --set, --unset, --append or --subtract")
        altered = parse_resource(resource)
        await refuse_unknown(admin, altered, unset or ())
        results = await admin.alter_configs({altered: changes}, validate_only=dry_run)
        return tell_results(output, results, "resource", "could be changed" if dry_run else "changed", lambda _: {})

    run_admin(target(bootstrap, settings, config_file, timeout), output, work)


def _is_changed(entry: "ConfigEntry") -> bool:
    """Since Kafka 4.1 `min.insync.replicas` is set for all brokers without anybody's doing."""
    found = (entry.name, entry.value, entry.source.name)
    return not entry.is_default and found != ("min.insync.replicas", "1", "DYNAMIC_DEFAULT_BROKER_CONFIG")


def parse_resource(text: str) -> "ConfigResource":
    from ottla.client.admin import ConfigResource, ResourceType

    kinds = {
        "topic": ResourceType.TOPIC,
        "broker": ResourceType.BROKER,
        "group": ResourceType.GROUP,
        "client-metrics": ResourceType.CLIENT_METRICS,
        "logger": ResourceType.BROKER_LOGGER,
    }
    if text == "brokers":
        return ConfigResource.all_brokers()
    kind, separator, name = text.partition(":")
    if not separator or kind not in kinds or not name:
        raise WrongUsage(f"{text!r} has no settings: name {_KINDS}")
    return ConfigResource(kinds[kind], name)
