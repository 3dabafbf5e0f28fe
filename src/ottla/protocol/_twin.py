"""The choice between the compiled codecs and those that are written as text, made once, here."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.protocol.decoder import Decoder, compile_decoder
from ottla.protocol.encoder import Encoder, compile_encoder
from ottla.protocol.schema import StructType, compile_constructor
from ottla.twins import native_of

__all__ = ["IS_NATIVE", "decoder_of", "encoder_of", "equip"]

if TYPE_CHECKING:
    from ottla.protocol import _native

    IS_NATIVE = True
else:
    _native = native_of("ottla.protocol")
    IS_NATIVE = _native is not None


def decoder_of(cls: StructType, version: int, flexible: bool) -> Decoder:
    return _native.Codec(cls, version, flexible).decode if IS_NATIVE else compile_decoder(cls, version, flexible)


def encoder_of(cls: StructType, version: int, flexible: bool) -> Encoder:
    return _native.Codec(cls, version, flexible).encode if IS_NATIVE else compile_encoder(cls, version, flexible)


def equip(cls: StructType) -> Callable[..., None]:
    """Give a class its constructor, which is also handed out."""
    if IS_NATIVE:
        return _native.equip(cls)
    constructor = compile_constructor(cls)
    type.__setattr__(cls, "__init__", constructor)
    return constructor
