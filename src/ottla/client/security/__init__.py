"""TLS and SASL: what a connection goes through before it is used.

| module  | holds                                                                       |
|---------|-----------------------------------------------------------------------------|
| `guard` | what a configuration asks for: whether TLS, whether SASL, with which secret |
| `tls`   | whom a client trusts, and how it proves who it is                           |
| `pkcs12`| stores of that format, by way of `cryptography`                             |
| `sasl`  | the conversation; PLAIN and OAUTHBEARER                                     |
| `scram` | SCRAM-SHA-256 and SCRAM-SHA-512                                             |
| `oauth` | tokens for OAUTHBEARER                                                      |
| `jaas`  | `sasl.jaas.config`                                                          |
"""
