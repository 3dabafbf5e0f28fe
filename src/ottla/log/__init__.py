"""Partition logs on disk, in Kafka's format.

| module                | holds                                                                                  |
|-----------------------|----------------------------------------------------------------------------------------|
| `log`                 | one partition's log: append, read, roll, flush                                         |
| `segment`, `*_index`  | one segment file and its two sparse indexes                                            |
| `retention`           | which segments are no longer kept, and how they go                                     |
| `loader`, `recovery`  | from the files of a directory to a log, after a clean stop or a crash                  |
| `producer_state`      | what idempotent producers sent last; snapshots of it                                   |
| `leader_epochs`       | which leader epoch began at which offset                                               |
| `cleaner`             | which log is compacted, when, and how far                                              |
| `compaction`, `*_swap`| one compaction of one log; how its segments take the place of the old ones             |
| `validation`          | what a producer's bytes must satisfy before they are appended                          |
| `directory`, `manager`| a `log.dir` with its lock and checkpoints; all logs of all directories                 |
| `config`              | the topic keys                                                                         |
"""
