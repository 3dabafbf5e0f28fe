"""One module per API, each with its request and its response; `ottla.protocol.registry` finds them by key."""
