"""Ingestion: any topic in the lake, once, and the freshest minutes beside it. See docs/pipelines/INGESTION.md."""
