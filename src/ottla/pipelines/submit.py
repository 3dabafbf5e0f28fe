"""For `spark-submit`: runs pipelines on the cluster that it was given, and prints how far they are as JSON lines.

    spark-submit --master spark://host:7077 $(python -m ottla.pipelines.submit --path) campaign \\
        --bootstrap broker:9092 --data /shared/pipelines
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ottla.client.errors import OttlaError
from ottla.pipelines.frame import catalogue
from ottla.pipelines.frame.order import Order, carry_out, fed, stopped_by_signals
from ottla.pipelines.frame.place import Place, absolute
from ottla.pipelines.frame.progress import Progress
from ottla.pipelines.frame.telling import PipelineError, first_line, system_failure
from ottla.runtime.properties import parse_properties


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="ottla.pipelines.submit", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(catalogue.names()))
    parser.add_argument("--path", action="store_true", help="print where this file is, and end")
    parser.add_argument("--bootstrap", help="some brokers, localhost:9092 unless --config or -X names others")
    parser.add_argument("-X", action="append", default=[], metavar="KEY=VALUE", help="a setting of clients, repeatable")
    parser.add_argument("--config", type=Path, metavar="FILE", help="properties with settings of clients; -X wins")
    parser.add_argument("--data", default="ottla-pipelines", help="for checkpoints and the lake; all workers see it")
    parser.add_argument("--source", choices=("ottla", "kafka"), default="ottla", help="the format that reads topics")
    parser.add_argument("--every", default="1 second", help="the time between two micro-batches")
    parser.add_argument("--most-per-batch", type=int, help="the most records of a micro-batch: all unless given")
    parser.add_argument(
        "--begin", choices=("published", "anew"), help="put checkpoints aside; begin there, or at published offsets"
    )
    parser.add_argument("--once", action="store_true", help="work off what is there, and end")
    parser.add_argument("--seconds", type=float, help="end after so long")
    given = parser.parse_args(arguments)
    if given.path:
        sys.stdout.write(f"{Path(__file__).resolve()}\n")
        return 0
    if not given.names:
        parser.error(f"name a pipeline: {', '.join(catalogue.names())}")
    client = {} if given.config is None else parse_properties(given.config.read_text(encoding="utf-8"))
    client |= _settings(given.X, parser)
    named = client.pop("bootstrap.servers", "localhost:9092")
    order = Order(
        [catalogue.pipeline(name) for name in given.names],
        Place(given.bootstrap or named, absolute(given.data), given.source, given.most_per_batch, client, given.begin),
        every=given.every,
        is_once=given.once,
        seconds=given.seconds,
    )
    try:
        with stopped_by_signals() as stop, fed(order) as feeder:
            carry_out(order, feeder, _tell, stop)
    except (OttlaError, PipelineError) as error:
        sys.stderr.write(f"ottla: {first_line(str(error))}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"ottla: {system_failure(error)}\n")
        return 1
    return 0


def _settings(pairs: Iterable[str], parser: argparse.ArgumentParser) -> dict[str, str]:
    settings = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key.strip():
            parser.error(f"-X {pair}: it must look like key=value, such as -X security.protocol=SSL")
        settings[key.strip()] = value.strip()
    return settings


def _tell(found: list[Progress]) -> None:
    for one in found:
        sys.stdout.write(json.dumps(one.row()) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
