"""The load. A job is a module run as a process of its own: a specification comes in as JSON, figures go out as JSON."""
