"""A home for Spark that starts its Python processes faster.

Spark puts `$SPARK_HOME/python/lib/pyspark.zip` before everything else on the path of its Python processes. Nothing
that is imported from an archive is kept compiled, so each process compiles PySpark anew, for about a second; a run of
a streaming query starts one. Where `pip` has installed PySpark for the workers anyway, the archive is not needed.

    python -m ottla.spark.home ~/.spark-home        prints what to set SPARK_HOME to
"""

import contextlib
import hashlib
import sys
from pathlib import Path


def quick_spark_home(directory: str | Path) -> Path:
    """Make `directory` a SPARK_HOME of links to the installed PySpark, without the archive. May be called again."""
    installed = _installed()
    home = Path(directory).expanduser().resolve()
    home.mkdir(parents=True, exist_ok=True)
    for entry in installed.iterdir():
        link = home / entry.name
        if entry.name in ("python", "__pycache__"):
            continue
        if link.is_symlink() and link.resolve() != entry:
            link.unlink()
        # Another process may make the same home.
        with contextlib.suppress(FileExistsError):
            link.symlink_to(entry)
    return home


def shared_spark_home(directory: str | Path) -> Path:
    """One in `directory`, named by the version and the place of PySpark: another environment has another, and does not
    change the links below a Spark that runs."""
    import pyspark

    place = hashlib.sha256(str(_installed()).encode()).hexdigest()[:12]
    return quick_spark_home(Path(directory) / f"{pyspark.__version__}-{place}")


def _installed() -> Path:
    import pyspark

    return Path(pyspark.__file__).resolve().parent


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m ottla.spark.home DIRECTORY\n")
        return 2
    sys.stdout.write(f"export SPARK_HOME={quick_spark_home(arguments[0])}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
