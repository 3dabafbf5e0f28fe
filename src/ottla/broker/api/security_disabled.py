"""What the APIs of access rules have in common while there is no authorizer."""

from ottla.broker.connection import CloseConnection

NO_AUTHORIZER = "this broker has no authorizer, so there are no access rules"
UNKNOWN = 0


def refuse_unknown(*codes: int) -> None:
    """Zero is Kafka's word for a type that the client itself does not know: it takes that for a broken request."""
    if UNKNOWN in codes:
        raise CloseConnection(f"an access rule with an unknown type, pattern, operation or permission came: {codes}")
