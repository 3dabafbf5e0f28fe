"""The choice between the compiled twin of the producer's hot path and the plain one, made once, here."""

import os
from typing import TYPE_CHECKING

__all__ = ["IS_NATIVE", "twin"]

if TYPE_CHECKING:
    from ottla.client.producer import _native as twin

    IS_NATIVE = True
elif os.environ.get("OTTLA_PURE") == "1":
    from ottla.client.producer import _pure as twin

    IS_NATIVE = False
else:
    try:
        from ottla.client.producer import _native as twin

        IS_NATIVE = True
    except ImportError:
        from ottla.client.producer import _pure as twin

        IS_NATIVE = False
