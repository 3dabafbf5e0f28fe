"""`ottla topics`: list, describe, create, delete, alter."""

from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.completion import topic_names
from ottla.cli.configs import refuse_unknown
from ottla.cli.connecting import (
    Bootstrap,
    ConfigFile,
    Json,
    Settings,
    Timeout,
    WrongUsage,
    pairs,
    target,
)
from ottla.cli.output import Output
from ottla.cli.running import run_admin, tell_results

if TYPE_CHECKING:
    from ottla.client.admin import AsyncAdmin, TopicDescription

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")

Names = Annotated[list[str], typer.Argument(metavar="TOPIC...", autocompletion=topic_names, show_default=False)]
SomeNames = Annotated[
    list[str] | None, typer.Argument(metavar="[TOPIC...]", autocompletion=topic_names, show_default=False)
]
Configs = Annotated[
    list[str] | None, typer.Option("--set", "-s", metavar="KEY=VALUE", help="A setting of the topic. Repeatable.")
]


@app.command("list")
def list_topics(
    internal: Annotated[bool, typer.Option("--internal", "-i", help="Also the topics that brokers keep.")] = False,
    json: Json = False,
    bootstrap: Bootstrap = None,
    settings: Settings = None,
    config_file: ConfigFile = None,
    timeout: Timeout = None,
) -> None:
    """List the topics of the cluster.

    [bold]Examples[/bold]

        ottla topics list

        ottla topics list --internal --json
    """
    output = Output(json)

    async def work(admin: "AsyncAdmin") -> None:
        rows = [
            {
                "topic": topic.name,
                "partitions": topic.partitions,
                "replicas": topic.replication_factor,
                "internal": topic.is_internal,
                "id": topic.topic_id,
            }
            for topic in await admin.list_topics(include_internal=internal)
        ]
        output.rows(("topic", "partitions", "replicas"), rows, empty="there are no topics: ottla topics create NAME")

    run_admin(target(bootstrap, settings, config_file, timeout), output, work)


@app.command("describe")
def describe_topics(
    names: SomeNames = None,
    json: Json = False,
    bootstrap: Bootstrap = None,
    settings: Settings = None,
    config_file: ConfigFile = None,
    timeout: Timeout = None,
) -> None:
    """Show partitions, leaders, replicas, offsets and settings of topics; of all of them where none are named.

    [bold]Examples[/bold]

        ottla topics describe orders

        ottla topics describe orders --json
    """
    output = Output(json)

    async def work(admin: "AsyncAdmin") -> bool:
        wanted = list(names or ()) or [topic.name for topic in await admin.list_topics()]
        results = await admin.describe_topics(wanted)
        for topic in results.succeeded.values():
            await _describe(admin, output, topic)
        return tell_results(output, type(results)(results.errors), "topic", "described", lambda _: {})

    run_admin(target(bootstrap, settings, config_file, timeout), output, work)


async def _describe(admin: "AsyncAdmin", output: Output, topic: "TopicDescription") -> None:
    from ottla.client.admin import ConfigResource, ConfigSource, OffsetSpec
    from ottla.client.types import TopicPartition

    partitions = [(topic.name, one.partition) for one in topic.partitions]
    starts = await admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
    ends = await admin.list_offsets(partitions)
    resource = ConfigResource.topic(topic.name)
    configs = (await admin.describe_configs(resource)).succeeded.get(resource, {})
    changed = {
        name: entry.value for name, entry in configs.items() if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG
    }
    rows = []
    for one in topic.partitions:
        key = TopicPartition(topic.name, one.partition)
        start, end = starts.succeeded.get(key), ends.succeeded.get(key)
        rows.append(
            {
                "partition": one.partition,
                "leader": one.leader if one.leader >= 0 else None,
                "replicas": list(one.replicas),
                "in_sync": list(one.in_sync),
                "offline": list(one.offline),
                "start": None if start is None else start.offset,
                "end": None if end is None else end.offset,
            }
        )
    if output.is_json:
        head = {"topic": topic.name, "id": topic.topic_id, "internal": topic.is_internal, "configs": changed}
        output.line({**head, "partitions": rows})
        return
    output.facts({"topic": topic.name, "id": topic.topic_id, "settings": changed or "(all default)"})
    output.rows(("partition", "leader", "replicas", "in_sync", "start", "end"), rows, empty="no partitions")


@app.command("create")
def create_topics(
    names: Names,
    partitions: Annotated[
        int | None, typer.Option("--partitions", "-p", min=1, help="How many; the broker's default if not given.")
    ] = None,
    replicas: Annotated[
        int | None, typer.Option("--replicas", "-r", min=1, help="Copies of each; the broker's default if not given.")
    ] = None,
    configs: Configs = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="A topic that is there already is no error.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only check that it would work.")] = False,
    json: Json = False,
    bootstrap: Bootstrap = None,
    settings: Settings = None,
    config_file: ConfigFile = None,
    timeout: Timeout = None,
) -> None:
    """Create topics.

    [bold]Examples[/bold]

        ottla topics create orders --partitions 6

        ottla topics create clicks --set retention.ms=3600000 --set cleanup.policy=delete
    """
    output = Output(json)

    async def work(admin: "AsyncAdmin") -> bool:
        from ottla.client.admin import NewTopic, Results
        from ottla.protocol.errors import ErrorCode

        values: dict[str, str | None] = dict(pairs(configs))
        new = [NewTopic(name, partitions, replicas, values) for name in names]
        results = await admin.create_topics(new, validate_only=dry_run)
        told = tell_results(
            output,
            Results(results.succeeded),
            "topic",
            "could be created" if dry_run else "created",
            lambda topic: {"id": topic.topic_id, "partitions": topic.partitions, "replicas": topic.replication_factor},
        )
        there = {
            name
            for name, error in results.errors.items()
            if if_not_exists and getattr(error, "code", None) == ErrorCode.TOPIC_ALREADY_EXISTS
        }
        for name in sorted(there):
            output.done({"topic": name, "status": "exists"}, f"topic {name}: is there already")
        refused = {name: error for name, error in results.errors.items() if name not in there}
        return tell_results(output, Results(refused), "topic", "created", lambda _: {}) and told

    run_admin(target(bootstrap, settings, config_file, timeout), output, work)


@app.command("delete")
def delete_topics(
    names: Names,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
    bootstrap: Bootstrap = None,
    settings: Settings = None,
    config_file: ConfigFile = None,
    timeout: Timeout = None,
) -> None:
    """Delete topics and all their records. Asks first, unless told --yes.

    [bold]Examples[/bold]

        ottla topics delete orders

        ottla topics delete orders bills --yes
    """
    output = Output(json)

    async def work(admin: "AsyncAdmin") -> bool:
        if not yes and not confirmed(f"Delete {', '.join(names)} and all records in it?"):
            raise WrongUsage("nothing was deleted: confirm it, or give --yes")
        results = await admin.delete_topics(names, wait=True)
        return tell_results(output, results, "topic", "deleted", lambda _: {})

    run_admin(target(bootstrap, settings, config_file, timeout), output, work)


@app.command("alter")
def alter_topic(
    name: Annotated[str, typer.Argument(metavar="TOPIC", autocompletion=topic_names, show_default=False)],
    partitions: Annotated[
        int | None, typer.Option("--partitions", "-p", min=1, help="The new number of partitions, more than now.")
    ] = None,
    configs: Configs = None,
    unset: Annotated[
        list[str] | None, typer.Option("--unset", "-u", metavar="KEY", help="Back to the default. Repeatable.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only check that it would work.")] = False,
    json: Json = False,
    bootstrap: Bootstrap = None,
    settings: Settings = None,
    config_file: ConfigFile = None,
    timeout: Timeout = None,
) -> None:
    """Give a topic more partitions, or change its settings.

    [bold]Examples[/bold]

        ottla topics alter orders --partitions 12

        ottla topics alter orders --set retention.ms=86400000 --unset cleanup.policy
    """
    output = Output(json)

    async def work(admin: "AsyncAdmin") -> bool:
        from ottla.client.admin import ConfigResource, Results

        changes: dict[str, str | None] = {**dict(pairs(configs)), **dict.fromkeys(unset or ())}
        if partitions is None and not changes:
            raise WrongUsage("nothing to change: give --partitions, --set or --unset")
        did = "could be changed" if dry_run else "changed"
        succeeded = True
        if changes:
            await refuse_unknown(admin, ConfigResource.topic(name), unset or ())
            altered = await admin.alter_configs({ConfigResource.topic(name): changes}, validate_only=dry_run)
            told = Results({name: altered.errors.get(ConfigResource.topic(name))})
            succeeded = tell_results(output, told, "topic", f"settings {did}", lambda _: {})
        if partitions is not None and succeeded:
            grown = await admin.create_partitions({name: partitions}, validate_only=dry_run)
            succeeded = tell_results(output, grown, "topic", f"{did} to {partitions} partitions", lambda _: {})
        return succeeded

    run_admin(target(bootstrap, settings, config_file, timeout), output, work)


def confirmed(question: str) -> bool:
    """Ask the person; nobody there means no."""
    import sys

    return sys.stdin.isatty() and typer.confirm(question, err=True)
