"""Names of what MovieFlix reads and writes."""

VIEWS = "movieflix.views"
CATALOGUE = "movieflix.catalogue"
POSITIONS = "movieflix.positions"
PROFILES = "movieflix.profiles"
NEXT_SHOWS = "movieflix.next-shows"
