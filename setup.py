"""Builds what is compiled; everything else about the package is in pyproject.toml.

- `ottla.records._native`, the compiled twin of the record code, `ottla.client.producer._native`, that of the
  producer's way of a record into its batch, `ottla.client.consumer._native`, that of the consumer's records,
  `ottla.protocol._native`, that of the codecs of all messages, and `ottla.client._native`, calls of the system that
  keep the interpreter.
- The modules on the way of a produced and a fetched batch, in the broker and in the clients, compiled from the very
  `.py` files that would run otherwise: the same behaviour with fewer instructions, and no twin to keep in step.

  Their plain classes become extension types, whose fields are found without a look into a dictionary.

All of it is optional: without a C compiler, or when the build fails, the install goes on and pure Python is used,
which says so the first time it does work on records. `OTTLA_PURE=1` builds nothing.
"""

import ast
import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

RECORDS = "src/ottla/records"
CONSUMER = "src/ottla/client/consumer"
PRODUCER = "src/ottla/client/producer"
PROTOCOL = "src/ottla/protocol"
AWAIT = "src/ottla/client/_await.pxi"
HOT_MODULES = (
    "ottla.broker.api.fetch",
    "ottla.broker.api.produce",
    "ottla.broker.connection",
    "ottla.broker.dispatch",
    "ottla.broker.due_answers",
    "ottla.broker.fetch_sessions",
    "ottla.broker.metrics_requests",
    "ottla.broker.metrics_text",
    "ottla.broker.outbox",
    "ottla.broker.vigil",
    "ottla.client.connections",
    "ottla.client.connections_answers",
    "ottla.client.connections_frames",
    "ottla.client.connections_link",
    "ottla.client.connections_versions",
    "ottla.client.connections_waiting",
    "ottla.client.connections_wire",
    "ottla.client.consumer.attention",
    "ottla.client.consumer.batches",
    "ottla.client.consumer.consumer",
    "ottla.client.consumer.core",
    "ottla.client.consumer.fetcher",
    "ottla.client.consumer.positions",
    "ottla.client.consumer.prefetch",
    "ottla.client.consumer.prompt_wait",
    "ottla.client.consumer.sessions",
    "ottla.client.consumer.supply",
    "ottla.client.producer.batches",
    "ottla.client.producer.courier",
    "ottla.client.producer.engine",
    "ottla.client.producer.idle_topics",
    "ottla.client.producer.metrics",
    "ottla.client.producer.partitions",
    "ottla.client.producer.room",
    "ottla.client.producer.sender",
    "ottla.client.producer.sequences",
    "ottla.client.producer.shipment",
    "ottla.client.producer.unknown_topics",
    "ottla.client.producer.waiting",
    "ottla.client.producer.waking",
    "ottla.client.sync.lent_loop",
    "ottla.client.sync.loop_thread",
    "ottla.client.sync.naps",
    "ottla.client.sync.wheel",
    "ottla.log.log",
    "ottla.log.segment",
    "ottla.log.validation",
    "ottla.protocol.framing",
    "ottla.protocol.message",
    "ottla.replication.partition",
    "ottla.replication.waiting",
    "ottla.runtime.promise",
    "ottla.runtime.real",
    "ottla.runtime.real_disk",
)
FLAGS = ["/O2"] if sys.platform == "win32" else ["-O3", "-std=c11", "-g0"]

HOT_FLAGS = ["/O2"] if sys.platform == "win32" else ["-O2", "-g0"]


DECLARATIONS = Path("build/declarations")


def fields_of(declared: ast.ClassDef) -> list[str]:
    """What its methods set on `self`, and what it has slots for."""
    fields: set[str] = set()
    for node in ast.walk(declared):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            fields.add(node.attr)
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__slots__":
            fields.update(ast.literal_eval(node.value))
    return sorted(fields)


def declare_types(module: str) -> None:
    """Tell Cython which classes of a module can be extension types: those without a base and without a decorator.

    Cython wants that in a `.pxd` file. It says nothing that is not in the module, so it is made from it.
    """
    source = Path("src", *module.split(".")).with_suffix(".py")
    lines = []
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and not node.bases and not node.decorator_list:
            lines.append(f"cdef class {node.name}:\n    cdef object __weakref__")
            lines += [f"    cdef public object {field}" for field in fields_of(node)]
    declarations = DECLARATIONS.joinpath(*module.split(".")).with_suffix(".pxd")
    declarations.parent.mkdir(parents=True, exist_ok=True)
    for folder in declarations.parents[: len(module.split(".")) - 1]:
        if not (folder / "__init__.pxd").exists():
            (folder / "__init__.pxd").touch()
    text = "\n".join(lines) + "\n"
    if not declarations.exists() or declarations.read_text() != text:
        declarations.write_text(text)


class OptionalBuild(build_ext):
    """Whatever goes wrong, from a missing compiler to a crashed one, costs speed and not the install."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extension(self, ext: Extension) -> None:
        try:
            super().build_extension(ext)
        except Exception as error:
            self.warn(f"{ext.name} could not be built, so pure Python will be used in its place, slowly: {error}")


def extensions() -> list[Extension]:
    if os.environ.get("OTTLA_PURE") == "1":
        return []
    native = Extension(
        "ottla.records._native",
        [f"{RECORDS}/_native.pyx"],
        depends=[
            f"{RECORDS}/_crc32c.h",
            f"{RECORDS}/_wire.h",
            f"{RECORDS}/_memory.h",
            f"{RECORDS}/_columns.h",
            f"{RECORDS}/_compaction.h",
            f"{RECORDS}/_native_memory.pxi",
            f"{RECORDS}/_native_batches.pxi",
            f"{RECORDS}/_native_records.pxi",
            f"{RECORDS}/_native_compaction.pxi",
            f"{RECORDS}/_native_arrow.pxi",
            f"{RECORDS}/_native_arrow_encoder.pxi",
        ],
        include_dirs=[RECORDS],
        extra_compile_args=FLAGS,
    )
    consumer = Extension(
        "ottla.client.consumer._native",
        [f"{CONSUMER}/_native.pyx"],
        depends=[f"{RECORDS}/_wire.h", AWAIT],
        include_dirs=[RECORDS],
        extra_compile_args=FLAGS,
    )
    producer = Extension(
        "ottla.client.producer._native",
        [f"{PRODUCER}/_native.pyx"],
        depends=[
            f"{RECORDS}/_wire.h",
            f"{RECORDS}/_memory.h",
            f"{RECORDS}/_native_memory.pxi",
            AWAIT,
            f"{PRODUCER}/_native_records.pxi",
            f"{PRODUCER}/_native_appender.pxi",
            f"{PRODUCER}/_native_table.pxi",
        ],
        include_dirs=[RECORDS],
        extra_compile_args=FLAGS,
    )
    protocol = Extension(
        "ottla.protocol._native",
        [f"{PROTOCOL}/_native.pyx"],
        depends=[f"{PROTOCOL}/_native_decoder.pxi", f"{PROTOCOL}/_native_encoder.pxi"],
        extra_compile_args=FLAGS,
    )
    client = Extension("ottla.client._native", ["src/ottla/client/_native.pyx"], extra_compile_args=FLAGS)
    hot = [Extension(name, [f"src/{name.replace('.', '/')}.py"], extra_compile_args=HOT_FLAGS) for name in HOT_MODULES]
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    for name in HOT_MODULES:
        declare_types(name)
    # Annotations are for people and type checkers: they must not change what a compiled module does.
    directives = {"language_level": 3, "annotation_typing": False, "binding": True}
    at_once = os.cpu_count() or 1
    built = [
        *cythonize([native, consumer, producer, protocol, client], build_dir="build/cython", nthreads=at_once),
        *cythonize(
            hot,
            build_dir="build/cython",
            include_path=[str(DECLARATIONS)],
            compiler_directives=directives,
            nthreads=at_once,
        ),
    ]
    for extension in built:
        extension.optional = True
    return built


setup(ext_modules=extensions(), cmdclass={"build_ext": OptionalBuild})
