"""Ottla: an event streaming platform for Python and PySpark people, speaking Kafka's protocol.

Importing this package stays cheap: nothing heavy is loaded before it is used.
"""

__version__ = "0.1.0"

__all__ = ["__version__"]
