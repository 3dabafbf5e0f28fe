"""Chunks that are garbage: what the collector does to a view in their cycle must not matter to them."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.unit.client.consumer.stored import batch, chunk, taken

from ottla.records import Codec

ROOT = Path(__file__).resolve().parents[4]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src")}


class Holder:
    """In a cycle with a chunk, and with the view that the chunk is read from."""

    def __init__(self, data: memoryview, twin: Any) -> None:
        self.data = data
        self.chunk = chunk(data, twin=twin, decode_value=self.decode)

    def decode(self, topic: str, data: bytes) -> bytes:
        return data


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_a_view_in_the_same_cycle_may_be_cleared_first(twin: Any, codec: Codec) -> None:
    for _ in range(50):
        holder = Holder(memoryview(bytearray(batch([b"a", b"b"], codec=codec))), twin)
        assert len(taken(holder.chunk, 1)) == 1
        del holder
    assert gc.collect() > 0


def test_no_process_dies_of_it() -> None:
    code = (
        "import tests.unit.client.consumer.test_collected_chunks as t, gc\n"
        "from ottla.client.consumer import _twin as twin\n"
        "for _ in range(50):\n"
        "    t.taken(t.Holder(memoryview(bytearray(t.batch([b'a', b'b']))), twin).chunk, 1)\n"
        "gc.collect()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60, cwd=ROOT, env=ENVIRONMENT
    )
    assert (done.returncode, done.stderr) == (0, "")
