"""The choice between the compiled twin of the producer's hot path and the plain one, made once, here."""

from typing import TYPE_CHECKING

from ottla.twins import native_of

__all__ = ["IS_NATIVE", "twin"]

if TYPE_CHECKING:
    from ottla.client.producer import _native as twin

    IS_NATIVE = True
else:
    twin = native_of("ottla.client.producer")
    IS_NATIVE = twin is not None
    if not IS_NATIVE:
        from ottla.client.producer import _pure as twin
