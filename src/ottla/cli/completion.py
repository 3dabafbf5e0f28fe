"""Names of topics and groups for the shell's completion, from the broker that the command line names.

Completing must never fail nor hang, and never print anything else: it happens in the middle of a line that is being
typed. Whatever goes wrong, there is nothing to complete.
"""

import asyncio
import contextlib
import io
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import typer

from ottla.cli.connecting import target
from ottla.cli.waiting import nobody_listens

if TYPE_CHECKING:
    from ottla.client.admin import AsyncAdmin

PATIENCE_SECONDS = 2.0


def topic_names(context: typer.Context, incomplete: str) -> list[str]:
    async def ask(admin: "AsyncAdmin") -> list[str]:
        return [topic.name for topic in await admin.list_topics(include_internal=incomplete.startswith("_"))]

    return _names(context, incomplete, ask)


def group_ids(context: typer.Context, incomplete: str) -> list[str]:
    async def ask(admin: "AsyncAdmin") -> list[str]:
        return [group.group_id for group in await admin.list_groups()]

    return _names(context, incomplete, ask)


def _names(context: typer.Context, incomplete: str, ask: Callable[["AsyncAdmin"], Awaitable[list[str]]]) -> list[str]:
    async def names() -> list[str]:
        from ottla.client.admin import AsyncAdmin

        given = context.params
        place = target(given.get("bootstrap"), given.get("settings"), given.get("config_file"), PATIENCE_SECONDS)
        admin = AsyncAdmin(config=place.admin_properties())
        async with asyncio.timeout(PATIENCE_SECONDS):
            if await nobody_listens(admin.config.bootstrap_servers):
                return []
            async with admin:
                return await ask(admin)

    # What clients log goes to standard error, where nothing else was set up.
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            return [name for name in asyncio.run(names()) if name.startswith(incomplete)]
        except (Exception, KeyboardInterrupt):
            return []
