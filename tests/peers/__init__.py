"""The systems Ottla is compared with, and Ottla itself as a process of its own: install them, run them, end them."""
