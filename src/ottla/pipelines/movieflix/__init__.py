"""MovieFlix: where to go on watching, a profile of each user, and what to watch next."""
