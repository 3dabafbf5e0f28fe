"""Kafka's wire protocol, sans-IO: messages declared as typed classes, codecs compiled from them, framing, errors.

| module               | holds                                                                                    |
|----------------------|------------------------------------------------------------------------------------------|
| `messages`           | one module per API: its request, its response, and the structs within                    |
| `schema`             | what a declaration is made of: wire types, fields and their versions                     |
| `message`            | the base classes of requests and responses: versions, `encode`, `decode`                 |
| `decoder`, `encoder` | the compiler: a class and a version become one straight-line function, on first use      |
| `source`, `wire`     | the text of such a function; what it calls where the straight line ends                  |
| `registry`           | from an API key to the class of its request                                              |
| `framing`            | length prefixes and headers                                                              |
| `errors`, `api_keys`, `uuids` | Kafka's numbers and names                                                       |
"""
