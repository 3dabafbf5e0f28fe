"""What drivers and users report, as every part of the pipeline has it after parsing."""

from __future__ import annotations

from typing import NamedTuple

POSITION = "position"
REQUEST = "request"
PICKUP = "pickup"
DROPOFF = "dropoff"


class Report(NamedTuple):
    """One event. Reports sort in the order in which they are handled: by event time, then by id.

    Ids that an event does not have are empty: a driver without a ride, a request without a driver.
    """

    event_time: int
    event_id: str
    kind: str
    lat: float
    lon: float
    driver_id: str
    user_id: str
    ride_id: str

    @property
    def place(self) -> tuple[float, float]:
        return self.lat, self.lon
