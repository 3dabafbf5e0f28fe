"""What went through a partition since the broker started, counted where it happens.

A count is one addition to a plain attribute; sums and names are made when somebody asks (`ottla.broker.metrics`).
"""


class Traffic:
    """Counts that only grow, with the meaning of Kafka's BrokerTopicMetrics.

    A request counts once for each partition that it names. One that fails counts as failed only where the failure is
    none of those that clients are expected to meet, such as a leader that has moved.
    """

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "failed_fetch_requests",
        "failed_produce_requests",
        "fetch_requests",
        "messages_in",
        "produce_requests",
    )

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.produce_requests = 0
        self.fetch_requests = 0
        self.failed_produce_requests = 0
        self.failed_fetch_requests = 0

    def add(self, other: "Traffic") -> None:
        self.messages_in += other.messages_in
        self.bytes_in += other.bytes_in
        self.bytes_out += other.bytes_out
        self.produce_requests += other.produce_requests
        self.fetch_requests += other.fetch_requests
        self.failed_produce_requests += other.failed_produce_requests
        self.failed_fetch_requests += other.failed_fetch_requests
