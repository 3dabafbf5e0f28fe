"""A producer that sends a record at a fixed rate and waits for each answer, timed from when the record was due.

A stall of the broker therefore also counts for the records that were due meanwhile. Ends after `seconds`, or when
there is a file `until`.
"""

from __future__ import annotations

import os
import time

from bench.batches import one_record
from bench.job import Figures, Specification, job_main
from bench.wire import Connection, check, produce_answer, produce_request

_LOOK_EVERY = 20


def work(specification: Specification) -> Figures:
    rate, until = int(specification["rate"]), str(specification.get("until", ""))
    request = produce_request(specification["topic"], 0, one_record().data, 0)
    took: list[float] = []
    with Connection(int(specification["port"])) as connection:
        check(produce_answer(connection.exchange(request)).error_code, "producing")
        due = started = time.perf_counter()
        while due - started < specification["seconds"]:
            time.sleep(max(0.0, due - time.perf_counter()))
            answer = connection.exchange(request)
            took.append(time.perf_counter() - due)
            check(produce_answer(answer).error_code, "producing")
            due += 1 / rate
            if until and len(took) % _LOOK_EVERY == 0 and os.path.exists(until):
                break
    took.sort()
    return {
        "records": len(took),
        "seconds": time.perf_counter() - started,
        "p50_ms": took[len(took) // 2] * 1000,
        "p99_ms": took[len(took) * 99 // 100] * 1000,
        "max_ms": took[-1] * 1000,
    }


if __name__ == "__main__":
    job_main(work)
