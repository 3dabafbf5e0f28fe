"""What is said to a consumer group, from its first member to its last, right and wrong. Each has a group of its own."""

from collections.abc import Callable

from tests.compat.groups.consumer_talk import ConsumerTalk
from tests.compat.groups.mixed_talk import MixedTalk

Script = Callable[[MixedTalk], None]

SESSION_MS = 1_000
# Enough for a timer to be late on a busy machine.
LATE_MS = 1_500


def a_member_alone(talk: ConsumerTalk) -> None:
    talk.beat("m1", 1)
    talk.describe()
    talk.join("m1", "four")
    talk.describe()
    talk.beat("m1", 1)
    talk.beat("m1", 1, {"four": [0, 1, 2, 3]})
    talk.beat("m1", 1, {"four": [0, 1, 2, 3]}, rebalance_timeout_ms=5_000, subscribed_topic_names=["four"])
    talk.join("m1", "four")
    talk.beat("m1", -1)
    talk.beat("m1", -1)
    talk.beat("m1", 1)
    talk.describe(0)
    talk.join("m1", "one")
    talk.beat("m1", -1)


def partitions_change_hands(talk: ConsumerTalk) -> None:
    talk.join("m1", "four")
    talk.join("m2", "four")
    talk.describe()
    talk.beat("m1", 1, {"four": [0, 1, 2, 3]})
    talk.describe()
    talk.beat("m2", 2, {})
    talk.beat("m1", 1)
    talk.beat("m1", 1, {"four": [0, 1]})
    talk.beat("m2", 2, {})
    talk.beat("m2", 2, {"four": [2, 3]})
    talk.describe()
    talk.beat("m1", -1)
    talk.beat("m2", 2, {"four": [2, 3]})
    talk.describe()


def epochs_and_strangers(talk: ConsumerTalk) -> None:
    talk.join("m1", "two")
    talk.beat("m1", 1, {"two": [0, 1]}, subscribed_topic_names=["two", "one"])
    talk.beat("m1", 1, {"two": [0, 1]})
    talk.beat("m1", 1, {"two": [0, 7]})
    talk.beat("m1", 1)
    talk.beat("m1", 3, {})
    talk.beat("m9", 1)
    talk.beat("m9", -1)
    talk.beat("m1", 2, {"two": [0, 1]}, instance_id="stranger")
    talk.beat("m1", 2, {"nothing": [0]})


def wrong_requests(talk: ConsumerTalk) -> None:
    for version in (0, 1):
        talk.beat("m1", 0, {}, version=version)
        talk.beat("m1", 0, {}, version=version, subscribed_topic_names=["one"])
        talk.beat("m1", 0, None, version=version, subscribed_topic_names=["one"], rebalance_timeout_ms=1)
        talk.beat("m1", 0, {"one": [0]}, version=version, subscribed_topic_names=["one"], rebalance_timeout_ms=1)
        talk.beat("m1", 0, {}, version=version, rebalance_timeout_ms=1)
        for name in ("group_id", "instance_id", "rack_id"):
            fields = {name: " ", "subscribed_topic_names": ["one"], "rebalance_timeout_ms": 1}
            talk.beat("m1", 0, {}, version=version, **fields)
        for epoch in (-1, -2, -3, 1):
            talk.beat("", epoch, version=version)
            talk.beat("m1", epoch, version=version)
            talk.beat("m1", epoch, version=version, instance_id="i")
        for assignor in ("", "best"):
            fields = {"server_assignor": assignor, "subscribed_topic_names": ["one"], "rebalance_timeout_ms": 1}
            talk.beat("m1", 0, {}, version=version, **fields)
    talk.beat("", 0, {}, subscribed_topic_names=["one"], rebalance_timeout_ms=1)
    for regex in ("(", "*", "a**", "[", r"\1", "(?=a)"):
        talk.join("m1", subscribed_topic_regex=regex)


def static_members(talk: ConsumerTalk) -> None:
    talk.join("m1", "four", instance_id="i1")
    talk.join("m2", "four", instance_id="i2")
    talk.beat("m1", 1, {"four": [0, 1, 2, 3]}, instance_id="i1")
    talk.beat("m1", 1, {"four": [0, 1]}, instance_id="i1")
    talk.beat("m2", 2, {}, instance_id="i2")
    talk.join("m3", "four", instance_id="i1")
    talk.beat("m3", 2, instance_id="i1")
    talk.beat("m1", -2, instance_id="i1")
    talk.describe()
    talk.beat("m1", 2, instance_id="i1")
    talk.join("m3", "four", instance_id="i1")
    talk.beat("m1", 2, instance_id="i1")
    talk.beat("m3", 2, {"four": [0, 1]}, instance_id="i1")
    talk.beat("m2", 2, {"four": [2, 3]}, instance_id="i2")
    talk.beat("m2", -2, instance_id="i2")
    talk.join("m4", "four", "one", instance_id="i2")
    talk.beat("m3", -1, instance_id="i1")
    talk.beat("m4", 3, {"four": [2, 3]}, instance_id="i2")
    talk.beat("m4", -2, instance_id="i2")


def subscriptions_change(talk: ConsumerTalk) -> None:
    talk.join("m1", "four", "two", "missing")
    talk.beat("m1", 1, {"four": [0, 1, 2, 3], "two": [0, 1]}, subscribed_topic_names=["four", "one"])
    talk.beat("m1", 1, {"four": [0, 1, 2, 3]})
    talk.beat("m1", 2, {"four": [0, 1, 2, 3], "one": [0]}, subscribed_topic_names=[])
    talk.beat("m1", 2, {})
    talk.beat("m1", 3, {}, rack_id="rack", rebalance_timeout_ms=7_000, server_assignor="range")
    talk.describe()


def assignors(talk: ConsumerTalk) -> None:
    talk.join("m1", "four", "two", server_assignor="range")
    talk.join("m2", "four", "two", server_assignor="range")
    talk.beat("m1", 1, {"four": [0, 1], "two": [0]})
    talk.beat("m2", 2, {})
    talk.join("m3", "four", server_assignor="uniform")
    talk.describe()


def a_full_group(talk: ConsumerTalk) -> None:
    for number in range(1, 5):
        talk.join(f"m{number}", "four")
    talk.beat("m9", 1)
    talk.beat("m1", -1)


def silence(talk: ConsumerTalk) -> None:
    talk.join("m1", "four", rebalance_timeout_ms=400)
    talk.join("m2", "four")
    talk.beat("m1", 1, {"four": [0, 1, 2, 3]})
    talk.wait(400 + LATE_MS)
    talk.beat("m1", 1, {"four": [0, 1]})
    talk.beat("m2", 2, {})
    talk.shorten_sessions(SESSION_MS)
    talk.beat("m2", 3, {"four": [0, 1, 2, 3]})
    talk.wait(SESSION_MS + LATE_MS)
    talk.beat("m2", 3, {"four": [0, 1, 2, 3]})
    talk.describe()


def expressions(talk: ConsumerTalk) -> None:
    talk.join("m1", subscribed_topic_regex="(four|two)$")
    talk.wait(LATE_MS)
    talk.join("m1", subscribed_topic_regex="(four|two)$")
    talk.describe()
    talk.join("m2", "one", subscribed_topic_regex="(four|two)$")
    talk.beat("m1", 1, {"four": [0, 1, 2, 3], "two": [0, 1]})
    talk.beat("m2", -1)
    talk.beat("m1", 1, {"four": [0, 1, 2, 3], "two": [0, 1]}, subscribed_topic_regex="", subscribed_topic_names=["one"])
    talk.describe()
    talk.beat("m1", -1)


def a_topic_comes(talk: ConsumerTalk) -> None:
    name = f"{talk.group}-new"
    talk.join("m1", "one", name)
    talk.create_topic(name)
    talk.beat_until_news("m1", 1, {"one": [0]})


def up_and_down_again(talk: MixedTalk) -> None:
    """A classic group, then members of both protocols, then a classic group. Generations and epochs are one count."""
    talk.classic_join("C", "four")
    talk.classic_sync("C", {"four": [0, 1, 2, 3]})
    talk.classic_beat("C")
    talk.join("m1", "four")
    talk.describe()
    talk.classic_beat("C")
    talk.classic_sync("C")
    talk.classic_join("C", "four", owned={"four": [0, 1, 2, 3]})
    talk.classic_sync("C")
    talk.classic_beat("C")
    talk.describe()
    talk.classic_join("C", "four", owned={"four": [0, 1]})
    talk.classic_sync("C")
    talk.classic_beat("C")
    talk.beat("m1", 1, {})
    talk.beat("m1", -1)
    talk.describe()
    talk.classic_beat("C")
    talk.classic_join("C", "four", owned={"four": [0, 1]})
    talk.classic_sync("C", {"four": [0, 1, 2, 3]})
    talk.classic_leave("C")


def classic_members_join_a_consumer_group(talk: MixedTalk) -> None:
    talk.join("m1", "four")
    talk.classic_join("C", "four", protocol_type="connect")
    talk.classic_join("C", "four", member_id="stranger")
    talk.classic_leave("stranger")
    talk.classic_join("C", "four")
    talk.classic_beat("C")
    talk.classic_beat("C", generation_id=9)
    talk.classic_beat("C", member_id="m1")
    talk.classic_beat("C", group_instance_id="i")
    talk.classic_sync("C", protocol_name="sticky")
    talk.classic_sync("C", protocol_type="connect")
    talk.classic_sync("C", generation_id=9)
    talk.classic_sync("C")
    talk.beat("m1", 1, {"four": [0, 1, 2, 3]})
    talk.beat("m1", 1, talk.assigned)
    talk.classic_beat("C")
    talk.classic_join("C", "four")
    talk.classic_sync("C")
    talk.describe()
    talk.classic_leave("C", "C", "nobody")
    talk.classic_leave("m1")
    talk.describe()


def the_kind_of_an_empty_group(talk: MixedTalk) -> None:
    talk.join("m1", "one")
    talk.beat("m1", -1)
    talk.classic_join("C", "one")
    talk.classic_leave("C")
    talk.join("m1", "one")
    talk.describe()


SCRIPTS: tuple[Script, ...] = (
    a_member_alone,
    partitions_change_hands,
    epochs_and_strangers,
    wrong_requests,
    static_members,
    subscriptions_change,
    assignors,
    a_full_group,
    silence,
    expressions,
    a_topic_comes,
    up_and_down_again,
    classic_members_join_a_consumer_group,
    the_kind_of_an_empty_group,
)
