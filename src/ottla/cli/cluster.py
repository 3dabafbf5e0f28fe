"""`ottla cluster`: brokers, features, disks, quotas of a cluster at a glance."""

from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.connecting import Bootstrap, ConfigFile, Json, Settings, Timeout, target
from ottla.cli.output import Output, size_text
from ottla.cli.running import run_admin

if TYPE_CHECKING:
    from ottla.client.admin import AsyncAdmin


def run(
    features: Annotated[bool, typer.Option("--features", help="Also the levels of features.")] = False,
    disks: Annotated[bool, typer.Option("--disks", help="Also log directories and their sizes.")] = False,
    json: Json = False,
    bootstrap: Bootstrap = None,
    settings: Settings = None,
    config_file: ConfigFile = None,
    timeout: Timeout = None,
) -> None:
    """Show the cluster: its id, its brokers, and who is the controller.

    [bold]Examples[/bold]

        ottla cluster

        ottla cluster --disks --bootstrap-server broker-1:9092

        ottla cluster --features --json
    """
    output = Output(json)

    async def work(admin: "AsyncAdmin") -> None:
        found = await admin.describe_cluster(include_fenced=True)
        brokers = [
            {
                "broker": one.node_id,
                "host": one.host,
                "port": one.port,
                "rack": one.rack,
                "state": "fenced" if one.is_fenced else "up",
                "controller": one.node_id == found.controller_id,
            }
            for one in found.brokers
        ]
        levels = await _levels(admin) if features else {}
        directories = await _directories(admin) if disks else []
        if output.is_json:
            extra = {**({"features": levels} if features else {}), **({"log_dirs": directories} if disks else {})}
            output.line({"cluster": found.cluster_id, "controller": found.controller_id, "brokers": brokers, **extra})
            return
        output.facts({"cluster": found.cluster_id, "controller": found.controller_id, "brokers": len(brokers)})
        output.rows(("broker", "host", "port", "rack", "state", "controller"), brokers, empty="no brokers")
        if features:
            rows = [{"feature": name, **level} for name, level in levels.items()]
            output.rows(("feature", "level", "supported"), rows, empty="the cluster has no features with levels")
        if disks:
            shown = [
                {**one, **{key: size_text(int(str(one[key]))) for key in ("size", "usable", "total")}}
                for one in directories
            ]
            columns = ("broker", "directory", "replicas", "size", "usable", "total", "error")
            output.rows(columns, shown, empty="no broker told its directories")

    run_admin(target(bootstrap, settings, config_file, timeout), output, work)


async def _levels(admin: "AsyncAdmin") -> dict[str, dict[str, object]]:
    found = await admin.describe_features()
    return {
        name: {
            "level": found.finalized[name].highest if name in found.finalized else None,
            "supported": f"{versions.lowest} to {versions.highest}",
        }
        for name, versions in found.supported.items()
    }


async def _directories(admin: "AsyncAdmin") -> list[dict[str, object]]:
    results = await admin.describe_log_dirs()
    rows: list[dict[str, object]] = [
        {
            "broker": node_id,
            "directory": one.path,
            "replicas": len(one.replicas),
            "size": one.size_bytes,
            "usable": one.usable_bytes,
            "total": one.total_bytes,
            "error": None if one.error is None else str(one.error),
        }
        for node_id, directories in results.succeeded.items()
        for one in directories.values()
    ]
    return rows
