"""Picks members by their load, while the load changes with every pick.

Members are sorted by load once. Those with the least form a range at the left end, those with the most one at the
right end; each range is gone through member by member, and when it is through, its level has moved by one partition
and takes in the neighbours of the new level:

    load |              #          the least loaded range grows to the right,
         |  [...>  ]###[#<--]      the most loaded one to the left;
         |  [#####]####[####]      both are level inside
         +--------------------
"""


class Balancer:
    """`loads` belongs to the caller, who changes it as partitions are given and taken."""

    def __init__(self, loads: list[int], members: list[int]) -> None:
        self._loads = loads
        self._members = sorted(members, key=lambda member: (loads[member], member))
        least, most = loads[self._members[0]], loads[self._members[-1]]
        self.imbalance = most - least
        self._least_end = 0
        self._least_level = least - 1
        self._least_next = 0
        self._most_start = len(self._members)
        self._most_end = len(self._members)
        self._most_level = most + 1
        self._most_next = len(self._members) - 1

    def next_least_loaded(self) -> int:
        if self._least_next >= self._least_end:
            self._least_level += 1
            while self._least_end < len(self._members) and self._load_at(self._least_end) == self._least_level:
                self._least_end += 1
            self._least_next = 0
        member = self._members[self._least_next]
        self._least_next += 1
        return member

    def next_most_loaded(self) -> int | None:
        """None when nobody is left who could give anything."""
        if self._most_next < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                self._most_level = self._load_at(self._most_start - 1)
            else:
                self._most_level -= 1
            while self._most_start > 0 and self._load_at(self._most_start - 1) == self._most_level:
                self._most_start -= 1
            self._most_next = self._most_end - 1
        if self._most_next < 0:
            return None
        member = self._members[self._most_next]
        self._most_next -= 1
        return member

    def exclude_last_most_loaded(self) -> None:
        """The one that was just picked has nothing to give: out of the range with it."""
        place = self._most_next + 1
        last = self._most_end - 1
        self._members[place], self._members[last] = self._members[last], self._members[place]
        self._most_end -= 1

    def is_balanced(self) -> bool:
        return self._most_level - self._least_level <= 1

    def _load_at(self, place: int) -> int:
        return self._loads[self._members[place]]
