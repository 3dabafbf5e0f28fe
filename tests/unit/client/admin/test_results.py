"""Results: a value or an error for each thing, and nothing that fails unnoticed."""

import pickle

import pytest

from ottla.client.admin import Results
from ottla.client.admin.failures import failure
from ottla.client.errors import BrokerError, OttlaError, SomeFailed, UnknownTopic
from ottla.protocol.errors import ErrorCode

REFUSED = failure(ErrorCode.POLICY_VIOLATION, "too many.", "bills")
UNKNOWN = failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None, "shops")


def test_values_and_errors_by_key() -> None:
    outcomes: dict[str, int | OttlaError] = {"orders": 3, "bills": REFUSED}
    results = Results(outcomes)
    assert results["orders"] == 3
    with pytest.raises(BrokerError, match="bills: too many"):
        results["bills"]
    with pytest.raises(KeyError):
        results["nobody asked"]
    assert list(results) == ["orders", "bills"]
    assert len(results) == 2
    assert "bills" in results
    assert results.succeeded == {"orders": 3}
    assert results.errors == {"bills": REFUSED}


def test_raising_where_something_failed() -> None:
    fine: Results[str, int] = Results({"orders": 3})
    assert fine.raise_for_errors() is fine
    with pytest.raises(BrokerError) as raised:
        Results({"orders": 3, "bills": REFUSED}).raise_for_errors()
    assert raised.value is REFUSED
    with pytest.raises(SomeFailed) as several:
        Results({"bills": REFUSED, "shops": UNKNOWN}).raise_for_errors()
    assert several.value.errors == {"bills": REFUSED, "shops": UNKNOWN}
    again = pickle.loads(pickle.dumps(several.value))
    assert [str(error) for error in again.errors.values()] == [str(REFUSED), str(UNKNOWN)]


def test_errors_name_the_thing_the_code_and_what_to_do() -> None:
    assert str(REFUSED).startswith("bills: too many (POLICY_VIOLATION); ask for less")
    assert isinstance(UNKNOWN, UnknownTopic)
    assert str(UNKNOWN).startswith("shops: unknown topic or partition (UNKNOWN_TOPIC_OR_PARTITION); there is no such")


def test_a_code_of_a_newer_broker_is_told_by_its_number() -> None:
    error = failure(9999, "out of tea", "orders")
    assert error.code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "orders: out of tea (9999)" in str(error)
