"""Where things are in the coordination store.

| path                          | lives     | holds                                                               |
|-------------------------------|-----------|---------------------------------------------------------------------|
| `/cluster_id`                 | for ever  | the id the cluster got when it was first started                    |
| `/brokers/ids/<id>`           | ephemeral | a broker that is alive: endpoints, rack, incarnation                |
| `/brokers/admitted`           | for ever  | the broker epochs that a controller has dealt with (see elections)  |
| `/brokers/directories/<id>`   | for ever  | the ids of the log directories a broker has (see log_directories)   |
| `/controller`                 | ephemeral | who the controller is                                               |
| `/controller_epoch`           | for ever  | counts elections; its version fences controllers of the past        |
| `/topics/<name>`              | for ever  | topic id and replica assignment                                     |
| `/topics/<name>/<chunk>`      | for ever  | leaders, ISRs and epochs of 100 partitions: chunk 0 has 0 to 99 ... |
| `/configs/topics/<name>`      | for ever  | what a topic sets itself; no node when it sets nothing              |
| `/configs/brokers/<id>`       | for ever  | dynamic settings of one broker, or of all as `<default>`            |
| `/configs/groups/<name>`      | for ever  | what a group sets itself; its name is escaped                       |
| `/configs/client-metrics/<n>` | for ever  | a subscription to client metrics; its name is escaped               |
| `/quotas/<entity>`            | for ever  | the quotas of a user, a client id, both, or an address              |
| `/producer_ids`               | for ever  | the first producer id not given out yet                             |
"""

from collections.abc import Iterable
from urllib.parse import quote

CLUSTER_ID = "/cluster_id"
BROKERS = "/brokers"
BROKER_IDS = "/brokers/ids"
ADMITTED_BROKERS = "/brokers/admitted"
BROKER_DIRECTORIES = "/brokers/directories"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
TOPICS = "/topics"
CONFIGS = "/configs"
TOPIC_CONFIGS = "/configs/topics"
BROKER_CONFIGS = "/configs/brokers"
GROUP_CONFIGS = "/configs/groups"
CLIENT_METRICS = "/configs/client-metrics"
QUOTAS = "/quotas"
PRODUCER_IDS = "/producer_ids"

DEFAULT_BROKER = "<default>"
DEFAULT_ENTITY = "<default>"
PARTITIONS_PER_CHUNK = 100


def broker(node_id: int) -> str:
    return f"{BROKER_IDS}/{node_id}"


def broker_directories(node_id: int) -> str:
    return f"{BROKER_DIRECTORIES}/{node_id}"


def topic(name: str) -> str:
    return f"{TOPICS}/{name}"


def topic_state(name: str, chunk: int) -> str:
    return f"{TOPICS}/{name}/{chunk}"


def topic_config(name: str) -> str:
    return f"{TOPIC_CONFIGS}/{name}"


def broker_config(node_id: int | None) -> str:
    """The node of one broker's settings, or of the ones for all brokers when there is no id."""
    return f"{BROKER_CONFIGS}/{DEFAULT_BROKER if node_id is None else node_id}"


def group_config(name: str) -> str:
    return f"{GROUP_CONFIGS}/{quote(name, safe='')}"


def client_metrics(name: str) -> str:
    return f"{CLIENT_METRICS}/{quote(name, safe='')}"


def quotas(parts: Iterable[tuple[str, str | None]]) -> str:
    """The node of one entity's quotas: its types and names, such as `client-id=<default>,user=alice`.

    Names are escaped, so none of them is taken for the default, nor for two parts.
    """
    named = (f"{kind}={DEFAULT_ENTITY if name is None else quote(name, safe='')}" for kind, name in parts)
    return f"{QUOTAS}/{','.join(named)}"


def chunk_count(partition_count: int) -> int:
    return -(-partition_count // PARTITIONS_PER_CHUNK)
