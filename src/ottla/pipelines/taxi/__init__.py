"""GetTaxi: a close driver for each user, surge prices by neighbourhood, and what each ride costs."""
