"""Campaign compare: which of two campaigns sells better, and how sure that is. See docs/pipelines/CAMPAIGN.md."""
