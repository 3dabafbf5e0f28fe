"""The client: producer, consumer and admin, async inside, with a thin sync face. For Ottla and Apache Kafka alike.

| module        | holds                                                                                             |
|---------------|---------------------------------------------------------------------------------------------------|
| `config`      | the settings of each client, by Kafka's names and as keywords                                     |
| `errors`      | what can go wrong, as exceptions that say what to do                                              |
| `cluster`     | what is known of brokers, topics and leaders: immutable, replaced as a whole                      |
| `network`     | the interface between the clients and their connections; `connections` has the real ones          |
| `prompt_io`   | sends, receives and looks at sockets that keep the interpreter                                    |
| `producer`    | batches, deliveries, sequences, transactions                                                      |
| `consumer`    | fetch sessions, positions, records and tables, commits                                            |
| `membership`  | groups, both protocols, and the assignors                                                         |
| `admin`       | everything that is asked or changed about a cluster                                               |
| `security`    | TLS and SASL                                                                                      |
| `sync`        | the sync face: one loop in a background thread                                                    |

Only `connections`, `prompt_io`, `security`, `sync` and the faces touch sockets, threads and the clock; everything else
is handed what it needs, so that a simulation can drive it.
"""
