"""The compiled codecs; their rules are in `_native.pyx`."""

from collections.abc import Callable
from typing import Any

from ottla.protocol.encoder import Part
from ottla.protocol.schema import StructType
from ottla.protocol.wire import Buffer

class Codec:
    def __init__(self, cls: StructType, version: int, flexible: bool) -> None: ...
    def decode(self, buffer: Buffer, position: int, exact: bool) -> Any: ...
    def encode(self, message: Any, head: bytes) -> list[Part]: ...

def equip(cls: StructType) -> Callable[..., None]: ...
