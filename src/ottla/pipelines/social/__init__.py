"""MySocialMedia: posts, likes and comments; totals as they come, and what is trending. See docs/pipelines/SOCIAL.md."""
