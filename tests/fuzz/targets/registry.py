"""The guided targets by name, and the share of the time that each of them gets."""

from dataclasses import dataclass
from importlib import import_module

from tests.fuzz.target import Target


@dataclass(frozen=True, slots=True)
class Listing:
    """Where a target is: loaded when it is wanted, since the broker's modules must not be loaded too early."""

    place: str
    share: float

    def make(self) -> Target:
        module, _, name = self.place.partition(":")
        target: Target = getattr(import_module(f"tests.fuzz.targets.{module}"), name)()
        return target


TARGETS = {
    "broker": Listing("broker:BrokerTarget", 0.5),
    "log-directory": Listing("log_directory:LogDirectoryTarget", 0.15),
    "messages": Listing("messages:MessagesTarget", 0.1),
    "batches": Listing("batches:BatchesTarget", 0.1),
    "compression": Listing("compression:CompressionTarget", 0.05),
    "small-files": Listing("small_files:SmallFilesTarget", 0.04),
    "settings": Listing("settings:SettingsTarget", 0.03),
    "http": Listing("http:HttpTarget", 0.03),
}
