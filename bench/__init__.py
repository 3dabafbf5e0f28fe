"""Ottla beside Apache Kafka, measured in one run.

`python -m bench` starts both brokers and gives them the same work in turns (Kafka, Ottla, Kafka, Ottla, ...), three
times, and compares the medians. The figures themselves belong to the machine; only the ratios mean anything.

| module           | what it is for                                                                    |
|------------------|-----------------------------------------------------------------------------------|
| `sections/`      | what is measured: one module per kind of work                                     |
| `jobs/`          | the load: each one a process of its own, so that it never shares an interpreter   |
| `peers`          | the two brokers, as processes                                                     |
| `wire`           | one plain connection that speaks Kafka's protocol, and the batches that are sent  |
| `rows`           | every row of the table with its goal                                              |
| `results`        | samples, medians, ratios, and the file they are kept in                           |
| `report`         | the table on the terminal; `document`: the page and the plot in `docs/`           |
| `pipelines_part` | what the page says of pipelines beside the table                                  |
"""
