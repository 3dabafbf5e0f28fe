"""The columns of streams: of records, and of the events in their values."""

from pyspark.sql.types import StructField, StructType

from ottla.pipelines.frame.pipeline import Source

RECORD = "key BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"


def struct_of(ddl: str) -> StructType:
    found = StructType.fromDDL(ddl)
    if not isinstance(found, StructType):
        raise ValueError(f"expected columns with their types, such as 'name STRING'; got {ddl!r}")
    return found


def fields_of(one: Source) -> StructType:
    """Of an event of this input, or a row of this table."""
    return struct_of(one.ddl)


def merged_fields(inputs: tuple[Source, ...]) -> StructType:
    """Of a record of any of these; those that one of them does not have are null there."""
    merged: dict[str, StructField] = {}
    for one in inputs:
        for field in fields_of(one).fields:
            if merged.setdefault(field.name, field).dataType != field.dataType:
                raise ValueError(f"{one.topic.name} has {field.name} as another type than an input before it")
    return StructType(list(merged.values()))
