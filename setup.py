"""Builds the compiled twin of the record code; everything else about the package is in pyproject.toml.

The extension is optional: without a C compiler, or when the build fails, the install goes on and the pure-Python
twin is used, which says so the first time it does work.
"""

import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

RECORDS = "src/ottla/records"
FLAGS = ["/O2"] if sys.platform == "win32" else ["-O3", "-std=c11", "-g0"]


class OptionalBuild(build_ext):
    """Whatever goes wrong, from a missing compiler to a crashed one, costs speed and not the install."""

    def build_extension(self, ext: Extension) -> None:
        try:
            super().build_extension(ext)
        except Exception as error:
            self.warn(f"{ext.name} could not be built, so its slow pure-Python twin will be used: {error}")


def extensions() -> list[Extension]:
    native = Extension(
        "ottla.records._native",
        [f"{RECORDS}/_native.pyx"],
        depends=[
            f"{RECORDS}/_crc32c.h",
            f"{RECORDS}/_wire.h",
            f"{RECORDS}/_native_batches.pxi",
            f"{RECORDS}/_native_records.pxi",
            f"{RECORDS}/_native_arrow.pxi",
            f"{RECORDS}/_native_arrow_encoder.pxi",
        ],
        include_dirs=[RECORDS],
        extra_compile_args=FLAGS,
    )
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    built = list(cythonize([native], build_dir="build/cython"))
    for extension in built:
        extension.optional = True
    return built


setup(ext_modules=extensions(), cmdclass={"build_ext": OptionalBuild})
