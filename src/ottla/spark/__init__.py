"""Ottla for Spark: a source and a sink that need no jars."""
