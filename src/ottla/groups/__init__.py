"""Consumer groups: who reads what, and how far they have come. Their state is kept in `__consumer_offsets`."""
