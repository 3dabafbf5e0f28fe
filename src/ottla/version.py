"""The version, in a module that imports nothing: the rooms below the clients need it, too."""

__version__ = "0.1.0"
