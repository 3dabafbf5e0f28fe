"""Consumer groups of the next generation (KIP-848): the broker decides who reads what, and tells members one by one.

Three epochs tell how far each has come, and none ever goes back:

    group epoch        grows with every change of members, subscriptions or topics
    assignment epoch   the group epoch for which the target assignment was worked out
    member epoch       the assignment epoch that this member has come to

    heartbeat -> `membership`      who is it, and what did it change?
              -> `subscriptions`   a new group epoch, if that matters to others
              -> `targets`         a new target assignment, if the last one is of an older epoch (`assignors`)
              -> `reconciliation`  one step of this member towards its target

A partition is given to a member only when nobody else has it: not when the other was told to give it back, but when
it said that it did, left, or took too long.
"""
