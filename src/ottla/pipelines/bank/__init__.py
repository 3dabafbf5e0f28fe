"""MyBank: an alert for each large transaction, by limits that people set themselves. See docs/pipelines/MYBANK.md."""
