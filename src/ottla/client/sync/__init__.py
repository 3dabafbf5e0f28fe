"""The sync face: the async clients in a loop of a background thread, called from any other."""
