"""Kafka's text form of its 16-byte ids: URL-safe base64 without padding, 22 characters."""

import base64
import binascii

from ottla.protocol.schema import ZERO_UUID

__all__ = ["ZERO_UUID", "uuid_from_text", "uuid_to_text"]


def uuid_to_text(uuid: bytes) -> str:
    if len(uuid) != 16:
        raise ValueError(f"an id has 16 bytes, this one has {len(uuid)}")
    return base64.urlsafe_b64encode(uuid)[:22].decode("ascii")


def uuid_from_text(text: str) -> bytes:
    """The id, or ValueError; only the one canonical spelling of an id is accepted."""
    try:
        uuid = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"an id is 22 characters of URL-safe base64, this is {text!r}") from error
    if len(uuid) != 16 or uuid_to_text(uuid) != text:
        raise ValueError(f"an id is 22 characters of URL-safe base64, this is {text!r}")
    return uuid
