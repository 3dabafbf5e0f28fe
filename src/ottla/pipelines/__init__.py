"""Streaming pipelines on Spark: the case studies that Ottla comes with, and the frame that they stand in.

`frame` says what a pipeline is and runs it; each other folder is one pipeline. Nothing here loads Spark before a
pipeline runs.
"""
