"""How a serializer or deserializer that a user gave is called: with the value alone, or with topic and value.

| given                                          | called with                                                |
|------------------------------------------------|------------------------------------------------------------|
| one parameter, others with defaults            | the value: `lambda value: ...`, `json.loads`, `str.encode` |
| two parameters                                 | topic and value, unless their names say otherwise          |
| an instance of confluent_kafka's classes       | the value and a `SerializationContext`                     |
| a function of C that does not tell             | the value                                                  |

What fits none of this is refused when the client is made: a serializer that takes its arguments the other way round
would write the topic as the value.
"""

import inspect
import sys
from collections.abc import Callable
from typing import Any

from ottla.client.errors import ConfigError

_CONFLUENT = "confluent_kafka.serialization"
# Names of a first parameter that is the value, and of a second one that is no value.
_VALUES = frozenset({"obj", "object", "value", "val", "v", "data", "record", "message", "msg", "payload", "key", "buf"})
_CONTEXTS = frozenset({"ctx", "context", "topic", "headers"})


def with_topic(given: Callable[..., Any], what: str) -> Callable[[str, Any], Any]:
    """`given` as a function of topic and value; `what` is the setting, such as `key.serializer`."""
    confluent = _confluent(given, what)
    if confluent is not None:
        return confluent
    if _takes_topic(given, what):
        return given

    def call(topic: str, value: Any) -> Any:
        return given(value)

    return call


def refuse_class(given: type, what: str) -> None:
    """A class of confluent_kafka's instead of an instance: say so."""
    module = sys.modules.get(_CONFLUENT)
    if module is not None and issubclass(given, module.Serializer | module.Deserializer):
        raise ConfigError(f"{what}: an instance expected, the class came: write {given.__name__}(...)")


def _confluent(given: Any, what: str) -> Callable[[str, Any], Any] | None:
    module = sys.modules.get(_CONFLUENT)
    if module is None or not isinstance(given, module.Serializer | module.Deserializer):
        return None
    wanted = module.Deserializer if what.endswith("deserializer") else module.Serializer
    if not isinstance(given, wanted):
        raise ConfigError(f"{what}: a {wanted.__name__} expected, {type(given).__name__} came, which is none")
    context = module.SerializationContext
    field = module.MessageField.KEY if what.startswith("key") else module.MessageField.VALUE

    def call(topic: str, value: Any) -> Any:
        return given(value, context(topic, field))

    return call


def _takes_topic(given: Callable[..., Any], what: str) -> bool:
    if inspect.iscoroutinefunction(given):
        raise ConfigError(f"{what}: a plain function expected, a coroutine function came: it is called for each record")
    try:
        parameters = inspect.signature(given).parameters.values()
    except (TypeError, ValueError):
        return False
    if any(one.kind is one.KEYWORD_ONLY and one.default is one.empty for one in parameters):
        raise _refusal(given, what, parameters)
    places = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    required = [one for one in places if one.default is one.empty]
    if len(required) > 2 or not places:
        raise _refusal(given, what, parameters)
    is_topic_first = places[0].name.strip("_").startswith("topic")
    if len(required) < 2:
        return is_topic_first and (len(places) > 1 or any(one.kind is one.VAR_POSITIONAL for one in parameters))
    first, second = required[0].name.strip("_"), required[1].name.strip("_")
    if first in _VALUES or second in _CONTEXTS:
        raise _refusal(given, what, parameters)
    return True


def _refusal(given: object, what: str, parameters: Any) -> ConfigError:
    value = "data" if what.endswith("deserializer") else "value"
    shown = ", ".join(str(one) for one in parameters)
    name = getattr(given, "__name__", None) or type(given).__name__
    return ConfigError(
        f"{what}: a function of ({value}) or of (topic, {value}) expected, in this order and by these names, "
        f"{name}({shown}) came: wrap it, as in lambda {value}: {'f' if name == '<lambda>' else name}({value}, ...)"
    )
