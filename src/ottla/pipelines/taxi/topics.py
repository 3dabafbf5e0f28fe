"""Names of what GetTaxi reads and writes."""

REPORTS = "gettaxi.reports"
MATCHES = "gettaxi.matches"
SURGE = "gettaxi.surge"
COSTS = "gettaxi.costs"
