"""Change data capture: the rows of a database's tables, and every change to them, as records of a topic, exactly once.

    ottla capture sqlite:bank.db --name bank --topic bank.changes --table transactions=account

PostgreSQL is read by logical decoding (`postgres.py`), SQLite through a log that triggers fill (`sqlite.py`). Either is
a `Source`: a consistent snapshot with a position, then all that was committed after a position, in commit order.

The connector (`connector.py`) moves a source to a topic. What must stay true, whatever is killed when:

1. Changes and the position behind them are written in one transaction of the connector's transactional id: readers at
   `read_committed` see both or neither.
2. A connector first takes over its transactional id, which ends what an older one has left open and shuts that one out.
   Only then does it read the position. So the position is the last word, and nobody else adds to it.
3. The database is told that changes are no longer needed after the transaction with their position is committed, never
   before.

| killed | the topic has | the next connector |
|---|---|---|
| in the snapshot | an open transaction, which is aborted | finds no position and takes a new snapshot |
| before a commit | the same | begins at the position before; the database still has it all |
| after the commit, before the database is told | changes and position | begins behind them |

A position belongs to the tables that were captured up to it, and to the snapshot that this began with, its
*incarnation*: both are kept with it. Other tables are refused. A new snapshot has a higher incarnation, by which
changes are ordered before their positions, since those of another database may be lower.

A key is one column of a table, and all tables go to one topic: so everything about one key, from whatever table, lies
in one partition, in the order in which it was committed.
"""
