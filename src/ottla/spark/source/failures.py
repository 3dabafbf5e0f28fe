"""What can go wrong in the source. `ottla.spark.telling` has how it reaches the user."""

from ottla.client.errors import ConfigError, OttlaError


class OptionError(ConfigError):
    """An option that is missing, not allowed here, or has a value that means nothing."""


class SchemaError(ConfigError):
    """A schema with a column that the source does not have, or not with that type."""


class DataLoss(OttlaError):
    """Records that the query has to read are not there any more, and `failOnDataLoss` is true."""


class ReadFailed(OttlaError):
    """A range of offsets could not be read."""

    is_retriable = True
