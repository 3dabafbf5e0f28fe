"""Client quotas on this broker: what clients use is measured, and who uses too much has to wait.

| file             | what it has                                                             |
|------------------|-------------------------------------------------------------------------|
| rates.py         | rates over a sliding window, token buckets, how long one has to wait    |
| limits.py        | whose limit it is: users, client ids and their defaults                 |
| clients.py       | the measurements of all clients in one respect, bounded                 |
| mutations.py     | how much of the cluster one request changes                             |
| addresses.py     | connections from one address                                            |
| broker_quotas.py | all of it, as the cluster's image says                                  |
| metering.py      | requests measured around their handlers                                 |
| enforcement.py   | from a new image to the dispatcher and the server                       |
"""
