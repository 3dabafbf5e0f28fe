"""Settings of other Python clients: what a user of theirs is told to write here."""

import ast
import inspect
import logging
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from ottla import Admin, AsyncAdmin, AsyncConsumer, AsyncProducer, Consumer, Producer
from ottla.client.config import AdminConfig, ClientConfig, ConsumerConfig, ProducerConfig, resolve
from ottla.client.config_others import FOR_ALL, FOR_CONSUMERS, FOR_PRODUCERS, HARMLESS_OF_OTHERS
from ottla.client.config_settings import settings_of
from ottla.client.errors import ConfigError

SERVER = "localhost:9092"
CLIENTS: dict[str, tuple[type[Any], type[Any]]] = {
    "producer": (Producer, AsyncProducer),
    "consumer": (Consumer, AsyncConsumer),
    "admin": (Admin, AsyncAdmin),
}
KINDS: tuple[type[ClientConfig], ...] = (ProducerConfig, ConsumerConfig, AdminConfig)
OWN: dict[type[ClientConfig], Mapping[str, str]] = {
    ProducerConfig: FOR_PRODUCERS,
    ConsumerConfig: FOR_CONSUMERS,
    AdminConfig: {},
}
REFUSED = [
    pytest.param(kind, name, id=f"{kind.__name__}-{name}") for kind in KINDS for name in sorted({*FOR_ALL, *OWN[kind]})
]


def names_of(*kinds: type[ClientConfig]) -> set[str]:
    return {name for kind in kinds for one in settings_of(kind).values() for name in (one.name, *one.aliases)}


def refusal(kind: type[ClientConfig], name: str) -> str:
    with pytest.raises(ConfigError) as refused:
        resolve(kind, SERVER, None, {name: "x"})
    return str(refused.value)


@pytest.mark.parametrize("consumer", [Consumer, AsyncConsumer])
@pytest.mark.parametrize("name", ["interceptor.classes", "interceptor_classes", "interceptors"])
def test_a_consumer_refuses_interceptors_which_it_would_not_call(consumer: Callable[..., Any], name: str) -> None:
    for given in ({"config": {name: [print]}}, {name: [print]}):
        with pytest.raises(ConfigError, match=rf"^{name} cannot be used: a consumer calls no interceptors; do their"):
            consumer(SERVER, **given)


@pytest.mark.parametrize("client", [client for clients in CLIENTS.values() for client in clients])
def test_a_dictionary_in_the_first_place_is_answered_with_where_it_goes(client: Callable[..., Any]) -> None:
    role = client.__name__.removeprefix("Async")
    expected = rf"write {role}\(config=\{{\.\.\.\}}\) or Async{role}\(config=\{{\.\.\.\}}\)"
    with pytest.raises(ConfigError, match=expected):
        client({"bootstrap.servers": SERVER, "client.id": "me"})


def test_what_is_no_address_and_no_dictionary_is_refused_by_name() -> None:
    for given in (9092, b"localhost:9092", ("localhost", 9092)):
        with pytest.raises(ConfigError, match=r"^bootstrap\.servers cannot be .*9092"):
            Producer(given)  # type: ignore[arg-type]  # the mistake that is tested
    with pytest.raises(ConfigError, match=r"^config takes a dictionary .* not list$"):
        Producer(SERVER, config=[("sasl.password", "secret")])  # type: ignore[arg-type]  # the mistake that is tested


@pytest.mark.parametrize(
    ("kind", "name", "advice"),
    [
        (ConsumerConfig, "consumer_timeout_ms", "iterate over consumer.records(timeout=1.0), which ends when no"),
        (ConsumerConfig, "enable.partition.eof", "use consumer.to_arrow(), which reads up to the ends of the part"),
        (ConsumerConfig, "queued.min.messages", "use prefetch.bytes, the most bytes that are buffered ahead"),
        (ConsumerConfig, "enable.auto.offset.store", "leave it out: a record counts as done when the next one is"),
        (ConsumerConfig, "auto.commit.enable", "use enable.auto.commit"),
        (
            ConsumerConfig,
            "on_commit",
            "give a function of (offsets, error) to consumer.commit_async(); commits by auto_",
        ),
        (ProducerConfig, "on_delivery", "give each call its own, producer.send(topic, value, on_delivery=callback)"),
        (ProducerConfig, "delivery.report.only.error", "leave it out: producer.flush() raises where records failed"),
        (ProducerConfig, "queue.buffering.max.messages", "use buffer.memory, in bytes of records that wait"),
        (ProducerConfig, "queue.buffering.max.ms", "use linger.ms"),
        (ProducerConfig, "queue_buffering_max_ms", "use linger_ms"),
        (ProducerConfig, "compression.codec", "use compression.type"),
        (ProducerConfig, "message.max.bytes", "use max.request.size; the limit of brokers is max.message.bytes"),
        (ProducerConfig, "stats_cb", "call producer.metrics()"),
        (ConsumerConfig, "statistics.interval.ms", "call consumer.metrics()"),
        (AdminConfig, "metadata.broker.list", "use bootstrap.servers"),
        (AdminConfig, "socket.timeout.ms", "use request.timeout.ms"),
        (AdminConfig, "ssl_cafile", "use ssl_ca_location"),
        (AdminConfig, "ssl_context", "use ssl_ca_location, and ssl_certificate_location and ssl_key_location for"),
        (AdminConfig, "sasl_oauth_token_provider", "use sasl_oauthbearer_token_callback=provider.token"),
        (AdminConfig, "loop", "leave it out: an async client belongs to the event loop in which it is started"),
        (AdminConfig, "error_cb", "leave it out: a call that fails raises its error"),
        (AdminConfig, "debug", "use Python's logging: logging.basicConfig() and logging.getLogger("),
        (AdminConfig, "consumer_timeout_ms", "leave it out here, it is for consumers"),
        (ProducerConfig, "queued.min.messages", "leave it out here, it is for consumers"),
        (ConsumerConfig, "compression.codec", "leave it out here, it is for producers"),
        (AdminConfig, "stats_cb", "leave it out here, it is for producers and consumers"),
    ],
)
def test_what_others_have_is_refused_with_what_to_write(kind: type[ClientConfig], name: str, advice: str) -> None:
    assert refusal(kind, name).startswith(f"there is no setting {name!r}: {advice}")


@pytest.mark.parametrize(("kind", "name"), REFUSED)
def test_no_other_name_is_suggested_and_the_user_s_spelling_is_kept(kind: type[ClientConfig], name: str) -> None:
    for spelling in (name, name.replace(".", "_")):
        text = refusal(kind, spelling)
        advice = text.removeprefix(f"there is no setting {spelling!r}: ")
        assert advice != text
        assert "did you mean" not in text
        assert "`" not in text
        settings = names_of(*KINDS) if "." not in spelling else {one.replace(".", "_") for one in names_of(*KINDS)}
        foreign = {one for one in settings if "." in one or "_" in one} & set(re.findall(r"[\w.]*\w", advice))
        assert not foreign, "these are spelt in the other way"


@pytest.mark.parametrize(("kind", "name"), REFUSED)
def test_an_advice_names_what_exists(kind: type[ClientConfig], name: str) -> None:
    own = OWN[kind]
    marked = re.findall("`([^`]+)`", own.get(name) or FOR_ALL[name])
    settings = names_of(kind) if name in own else names_of(*KINDS)
    for one in marked:
        assert one in settings or one.startswith("logging.") or _can_be_called(one), f"there is no {one}"


def _can_be_called(code: str) -> bool:
    """Whether both clients, the sync and the async one, take the call."""
    if code == "for record in consumer":
        return hasattr(Consumer, "__iter__") and hasattr(AsyncConsumer, "__aiter__")
    call = ast.parse(code, mode="eval").body
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Attribute)
    sync_client, async_client = CLIENTS[ast.unparse(call.func.value)]
    method = getattr(async_client, call.func.attr)
    inspect.signature(method).bind_partial(None, *call.args, **{one.arg or "": one.value for one in call.keywords})
    return callable(getattr(sync_client, call.func.attr))


def test_what_exists_here_is_not_refused() -> None:
    for kind in KINDS:
        assert not {name.replace("_", ".") for name in {*FOR_ALL, *OWN[kind]}} & names_of(kind)
    assert not HARMLESS_OF_OTHERS & {*FOR_ALL, *FOR_PRODUCERS, *FOR_CONSUMERS}


@pytest.mark.parametrize("name", sorted(HARMLESS_OF_OTHERS))
def test_what_is_not_missed_is_accepted_with_a_warning(name: str, caplog: pytest.LogCaptureFixture) -> None:
    for kind in KINDS:
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            assert resolve(kind, SERVER, {name: "x"}) == resolve(kind, SERVER)
        assert f"{name} has no effect in this client" in caplog.text
