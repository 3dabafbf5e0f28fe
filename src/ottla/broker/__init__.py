"""The broker: sockets, dispatch, one file per API, settings."""
