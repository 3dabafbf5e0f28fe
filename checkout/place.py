"""Before `make run` starts: compiled modules that are new go to their places (`checkout.compiled`)."""

from pathlib import Path

from checkout.compiled import Checkout

if __name__ == "__main__":
    Checkout(Path(__file__).parents[1]).place()
