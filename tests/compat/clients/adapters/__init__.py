"""One module per client library: the library, driven in the vocabulary of `tests.compat.clients.model`."""
