"""What a membership needs to know of a consumer's settings."""

from dataclasses import dataclass

from ottla.client.config import ConsumerConfig
from ottla.client.errors import ConfigError
from ottla.client.membership.assignors import Assignor, assignors_of


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """Times are in milliseconds, as Kafka's settings of these names have them."""

    group_id: str
    group_instance_id: str | None = None
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    request_timeout_ms: int = 30_000
    client_rack: str | None = None
    exclude_internal_topics: bool = True
    assignors: tuple[Assignor, ...] = ()
    remote_assignor: str | None = None


def settings_of(config: ConsumerConfig) -> GroupSettings:
    """ConfigError for what no group can have."""
    if not config.group_id:
        raise ConfigError("group.id is missing: subscribing needs a group; use assign to read without one")
    is_classic = config.group_protocol == "classic"
    if is_classic and config.heartbeat_interval_ms >= config.session_timeout_ms:
        raise ConfigError(
            f"heartbeat.interval.ms ({config.heartbeat_interval_ms}) must be below session.timeout.ms "
            f"({config.session_timeout_ms}); a third of it is usual"
        )
    strategy = config.partition_assignment_strategy
    if isinstance(strategy, str):
        strategy = [name.strip() for name in strategy.split(",") if name.strip()]
    elif not isinstance(strategy, list | tuple):
        strategy = [strategy]
    return GroupSettings(
        group_id=config.group_id,
        group_instance_id=config.group_instance_id,
        session_timeout_ms=config.session_timeout_ms,
        heartbeat_interval_ms=config.heartbeat_interval_ms,
        max_poll_interval_ms=config.max_poll_interval_ms,
        request_timeout_ms=config.request_timeout_ms,
        client_rack=config.client_rack or None,
        exclude_internal_topics=config.exclude_internal_topics,
        assignors=assignors_of(strategy) if is_classic else (),
        remote_assignor=config.group_remote_assignor,
    )
