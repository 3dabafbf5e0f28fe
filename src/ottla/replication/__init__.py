"""Partitions on this broker: leading, following, the high watermark, and requests that wait for it."""
