"""A broker with a doctored handler, searched: run as a program, it prints how many executions the finding took.

The handler fails on one value of a timestamp, and for one partition only.
"""

import random
import sys
from dataclasses import replace
from typing import Any

from tests.fuzz.guided import Minimiser, Search
from tests.fuzz.instrument import Coverage, instrumented
from tests.fuzz.loading import prefer_sources

DOCTORED = """
def handle(broker, context, request):
    for topic in request.topics:
        for partition in topic.partitions:
            if partition.partition_index == 0:
                if partition.timestamp == 0x0BADCAFE:
                    raise RuntimeError("planted")
    return original(broker, context, request)
"""


def main(executions: int) -> None:
    coverage = Coverage()
    prefer_sources(coverage)
    from tests.fuzz.targets.broker import BrokerTarget

    from ottla.broker import dispatch
    from ottla.protocol.api_keys import ApiKey

    handler = dispatch._registered[ApiKey.LIST_OFFSETS]
    scope: dict[str, Any] = {**coverage.namespace(), "original": handler.function}
    exec(compile(instrumented(DOCTORED, "<doctored>", coverage, "doctored"), "<doctored>", "exec"), scope)

    async def doctored(broker: Any, context: Any, request: Any) -> Any:
        return await scope["handle"](broker, context, request)

    dispatch._registered[ApiKey.LIST_OFFSETS] = replace(handler, function=doctored)
    # What is asked is whether it is found, not how small it can be made.
    Minimiser.MOST_RUNS = 20
    target = BrokerTarget()
    search = Search(target, coverage, random.Random(1))
    search.begin(target.seeds())
    while not search.found and search.executions < executions:
        search.step()
    for found in search.found.values():
        print(search.executions, found.kind, len(found.inputs))  # noqa: T201 - the answer to the test that runs this


if __name__ == "__main__":
    main(int(sys.argv[1]))
