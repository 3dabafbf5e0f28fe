"""From the bytes of a frame to an answer, and what bytes that are none may be."""

import copy
import struct
from collections.abc import Sequence

from ottla.client.connections_versions import Plan
from ottla.client.errors import OttlaError
from ottla.protocol.errors import ErrorCode, MalformedMessage
from ottla.protocol.message import Response
from ottla.protocol.wire import skip_tags

_INT16 = struct.Struct(">h")


def decode_answer(plan: Plan, frame: memoryview) -> Response:
    position = 4
    if plan.has_tags:
        try:
            position = 5 if frame[4] == 0 else skip_tags(frame, 4, len(frame))
        except IndexError:
            raise MalformedMessage("the header of the answer is cut off") from None
    if plan.is_api_versions and len(frame) >= 6:
        (code,) = _INT16.unpack_from(frame, position)
        if code == ErrorCode.UNSUPPORTED_VERSION:
            return plan.answer.decode(frame, 0, position, exact=False)
    return plan.answer.decode(frame, plan.version, position, exact=False)


def copy_of(error: OttlaError) -> OttlaError:
    """The same error for one more caller: a traceback belongs to one of them."""
    copied = copy.copy(error)
    copied.__cause__ = error.__cause__
    return copied


def bad_length(beginning: Sequence[int], size: int, limit_bytes: int) -> str:
    text = f"it announces {size} bytes, receive.message.max.bytes allows {limit_bytes}"
    first = bytes(beginning)
    if first[:2] == b"\x15\x03" or first[:2] == b"\x16\x03":
        return f"{text}. This looks like TLS: set security.protocol to SSL or SASL_SSL"
    if first[:4] == b"HTTP":
        return f"{text}. This looks like HTTP: is it the right port?"
    return text
