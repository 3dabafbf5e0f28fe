"""Classic groups: members that agree among themselves on who reads what, in rounds.

    Empty --join--> PreparingRebalance --all have joined--> CompletingRebalance --the leader's sync--> Stable
      ^                  |     ^                                   |                                     |
      \\--nobody is left--/     \\------------------- a member comes, changes or goes --------------------/

A round (a generation) begins when everybody has joined, or the time for it is over. The broker chooses a leader and a
protocol that all members know; the leader is told of all members, and hands in what each of them gets. The broker does
not look into that: to it these are bytes, so groups of other clients (Kafka Connect) work the same.

- `client`: who sends a request
- `member`, `group`: one member, one group; what commits and listings ask of a group
- `members`: who is in the group, who leads it, and the protocol they agree on
- `subscription`: which topics its members read
- `records`: a group as a record, and back
- `sessions`: members that were not heard of for too long
- `rebalance`: from one generation to the next
- `joining`, `syncing`, `leaving`: what requests do
- `deliveries`: answers for many at once
- `groups`: all of it, as a part of the machine

A classic group runs ahead of its records, as in Kafka: who waits, who has joined and the generation that is being
agreed on are not kept. A record is written when the leader has handed in the assignment, when a static member came back
under another id, and when the group is new or has become empty. A load makes the group of the last record, stable or
empty.
"""

from ottla.groups.classic.client import Client
from ottla.groups.classic.group import ClassicGroup, State
from ottla.groups.classic.groups import ClassicGroups, ClassicMembers
from ottla.groups.classic.member import ClassicMember

__all__ = ["ClassicGroup", "ClassicGroups", "ClassicMember", "ClassicMembers", "Client", "State"]
