"""What `make run` does in a checkout for a first screen that comes soon: it starts with plain Python, without Spark.

| module         | holds                                                                                               |
|----------------|-----------------------------------------------------------------------------------------------------|
| `requirements` | what an extra of `pyproject.toml` needs, installed by pip, with how far that is                     |
| `compiled`     | which modules are out of date, and compiling them for the next start with what the machine spares   |
| `place`        | before a start: what is newly compiled goes into place, and what is out of date goes away           |
| `prepare`      | beside the screen: Spark, then `compiled`                                                           |
"""
