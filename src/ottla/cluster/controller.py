"""The controller: the one broker that may change topics, settings of topics, and who leads.

Decide, then apply
    A decision is a pure function of the newest image and a request (`topics`, `config_changes`, `elections`). What
    it wants written goes to the store in one transaction, and the image changes because the store did. A decision
    made on an image that turns out to be old fails in the store and is made again on a newer one.
Election
    `/controller` is ephemeral: who creates it is the controller, in one transaction with counting up
    `/controller_epoch`. Every later write checks that the epoch is still the one of this election, so whatever a
    controller of the past still has under way fails.
Brokers
    When brokers come, go or shut down, the active controller elects leaders anew (see `elections`) and then notes in
    `/brokers/admitted` which brokers it has dealt with.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from ottla.cluster import config_changes, paths, quota_changes, registry
from ottla.cluster.config_changes import ConfigRules
from ottla.cluster.elections import UNCLEAN_CONFIG, admitted_after, elect_all
from ottla.cluster.image import NO_CONTROLLER, ClusterImage
from ottla.cluster.leader_requests import ElectionResult, ElectionType, Planned, elect_leaders
from ottla.cluster.metadata import MetadataCache
from ottla.cluster.producer_ids import ProducerIdBlock, take_block
from ottla.cluster.reassignments import Reassignment, ReassignmentResult, alter_reassignments
from ottla.cluster.registry import ControllerRecord
from ottla.cluster.requests import (
    AlterConfigsRequest,
    AlterConfigsResult,
    AlterQuotasRequest,
    AlterQuotasResult,
    Charge,
    ControllerSettings,
    CreatePartitionsResult,
    CreateTopicResult,
    Decision,
    DeleteTopicResult,
    NewPartitions,
    NewTopic,
    free_of_charge,
)
from ottla.cluster.topics import TopicDecisions
from ottla.cluster.transactions import ControllerTerm, TermOver
from ottla.coordination.store import (
    BadVersion,
    ConnectionLost,
    Create,
    NodeExists,
    Operation,
    SessionExpired,
    Set,
    Store,
    StoreError,
)
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.uuids import ZERO_UUID
from ottla.runtime import IdSource

__all__ = ["Controller", "ControllerSettings", "NewPartitions", "NewTopic"]

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

_RETRY_SECONDS = 0.2
MOST_WAITING = 500


class Controller:
    """Runs for office from `start` to `close`. Requests are answered with NOT_CONTROLLER while it is not active."""

    def __init__(
        self,
        store: Store,
        metadata: MetadataCache,
        *,
        node_id: int,
        ids: IdSource,
        settings: ControllerSettings | None = None,
        rules: ConfigRules | None = None,
    ) -> None:
        self._store = store
        self._metadata = metadata
        self._node_id = node_id
        self._ids = ids
        self._settings = settings or ControllerSettings()
        self._rules = rules or ConfigRules()
        self._term: ControllerTerm | None = None
        self._deciding = asyncio.Lock()
        self._waiting = 0
        self._work = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None
        self._unsubscribe: Callable[[], None] | None = None

    @property
    def is_active(self) -> bool:
        return self._term is not None

    @property
    def epoch(self) -> int:
        """The epoch of the current term, -1 without one."""
        return -1 if self._term is None else self._term.epoch

    # Office

    async def start(self) -> None:
        """Run for office once, and deal with all brokers if elected; from then on follow the cluster."""
        self._unsubscribe = self._metadata.subscribe(self._image_changed)
        try:
            await self._step()
        except ConnectionLost:
            self._work.set()
        self._worker = asyncio.create_task(self._run(), name="controller")

    async def close(self) -> None:
        """Stop, and leave office so that another broker is elected at once."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
            self._worker = None
        async with self._deciding:
            term, self._term = self._term, None
            if term is not None:
                try:
                    await term.resign()
                except StoreError as error:
                    logger.info("leaving office failed, the session's end will do it: %s", error)

    def session_expired(self) -> None:
        """The session is over, and with it the term."""
        self._term = None

    async def _run(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            try:
                await self._step()
            except SessionExpired:
                self._term = None
            except (StoreError, KafkaError) as error:
                logger.warning("the controller will try again: %s", error)
                asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._work.set)
            except Exception:
                logger.exception("the controller failed and will try again")
                asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._work.set)

    async def _step(self) -> None:
        async with self._deciding:
            if self._term is not None and not self._term.is_current(self._metadata.image):
                logger.info("broker %d is no longer the controller", self._node_id)
                self._term = None
            if self._term is None:
                await self._run_for_office()
            if self._term is not None:
                await self._deal_with_brokers(self._term)

    def _image_changed(self, old: ClusterImage, new: ClusterImage) -> None:
        if (
            new.controller_id == NO_CONTROLLER
            or new.controller_id != old.controller_id
            or new.controller_epoch != old.controller_epoch
            or new.brokers is not old.brokers
        ):
            self._work.set()

    async def _run_for_office(self) -> None:
        if self._metadata.image.controller_id not in (NO_CONTROLLER, self._node_id):
            return
        holder, counter = await self._store.get_many([paths.CONTROLLER, paths.CONTROLLER_EPOCH])
        if counter is None:
            raise StoreError(f"{paths.CONTROLLER_EPOCH} is missing; the layout of the store is incomplete")
        epoch = registry.decode_counter(counter, "epoch")
        if holder is not None:
            record = registry.decode_controller(holder)
            if (record.session_id, record.epoch) == (self._store.session_id, epoch):
                # It was created in this very session, and the answer got lost.
                await self._take_office(epoch, counter.version)
            return
        record = ControllerRecord(self._node_id, epoch + 1, self._store.session_id)
        try:
            await self._store.transact(
                [
                    Create(paths.CONTROLLER, registry.encode_controller(record), is_ephemeral=True),
                    Set(paths.CONTROLLER_EPOCH, registry.encode_counter("epoch", record.epoch), counter.version),
                ]
            )
        except (NodeExists, BadVersion):
            await self._metadata.refresh([paths.CONTROLLER, paths.CONTROLLER_EPOCH])
            return
        await self._take_office(record.epoch, counter.version + 1)

    async def _take_office(self, epoch: int, epoch_version: int) -> None:
        """What others wrote before the election must be known before anything is decided."""
        await self._metadata.reload()
        self._term = ControllerTerm(self._store, self._metadata, epoch, epoch_version)
        logger.info("broker %d is the controller, epoch %d", self._node_id, epoch)

    # Brokers that come and go

    async def _deal_with_brokers(self, term: ControllerTerm) -> None:
        def decide(image: ClusterImage) -> list[Decision[None]]:
            decisions = [Decision(None, (write,)) for write in elect_all(image, self._settings, term.epoch)]
            admitted = admitted_after(image)
            if admitted != image.admitted:
                note: Operation = Set(paths.ADMITTED_BROKERS, registry.encode_admitted(admitted))
                decisions.append(Decision(None, (note,)))
            return decisions

        try:
            await term.carry_out(decide)
        except TermOver:
            self._term = None
            self._work.set()

    # Requests

    async def create_topics(
        self, requests: Sequence[NewTopic], validate_only: bool = False, charge: Charge = free_of_charge
    ) -> list[CreateTopicResult]:
        """One result for each distinct name; once it is here, the image has the topics that were created."""
        planned: dict[str, bytes] = {}
        return await self._answer(
            lambda epoch, image: self._topic_decisions(epoch, charge).create_topics(image, requests, planned),
            lambda code, message: [CreateTopicResult(name, code, message) for name in _names(requests)],
            validate_only,
        )

    async def delete_topics(
        self, topics: Sequence[str | bytes], charge: Charge = free_of_charge
    ) -> list[DeleteTopicResult]:
        """One result for each distinct name (str) or topic id (bytes)."""
        planned: dict[str | bytes, tuple[str, bytes]] = {}
        return await self._answer(
            lambda epoch, image: self._topic_decisions(epoch, charge).delete_topics(image, topics, planned),
            lambda code, message: [_not_deleted(asked, code, message) for asked in dict.fromkeys(topics)],
        )

    async def create_partitions(
        self, requests: Sequence[NewPartitions], validate_only: bool = False, charge: Charge = free_of_charge
    ) -> list[CreatePartitionsResult]:
        """One result for each distinct name."""
        planned: dict[str, bytes] = {}
        return await self._answer(
            lambda epoch, image: self._topic_decisions(epoch, charge).create_partitions(image, requests, planned),
            lambda code, message: [CreatePartitionsResult(name, code, message) for name in _names(requests)],
            validate_only,
        )

    async def alter_topic_configs(
        self, requests: Sequence[AlterConfigsRequest], validate_only: bool = False
    ) -> list[AlterConfigsResult]:
        """One result for each request, in order."""
        results = await self._answer(
            lambda epoch, image: config_changes.alter_topic_configs(image, requests, self._rules),
            lambda code, message: [AlterConfigsResult(request.name, code, message) for request in requests],
            validate_only,
        )
        self._elect_if_allowed_by(requests)
        return results

    async def alter_broker_configs(
        self, requests: Sequence[AlterConfigsRequest], validate_only: bool = False
    ) -> list[AlterConfigsResult]:
        """One result for each request, in order."""
        results = await self._answer(
            lambda epoch, image: config_changes.alter_broker_configs(image, requests, self._rules),
            lambda code, message: [AlterConfigsResult(request.name, code, message) for request in requests],
            validate_only,
        )
        self._elect_if_allowed_by(requests)
        return results

    async def alter_group_configs(
        self, requests: Sequence[AlterConfigsRequest], validate_only: bool = False
    ) -> list[AlterConfigsResult]:
        """One result for each request, in order."""
        return await self._answer(
            lambda epoch, image: config_changes.alter_group_configs(image, requests, self._rules),
            lambda code, message: [AlterConfigsResult(request.name, code, message) for request in requests],
            validate_only,
        )

    async def alter_client_metrics(
        self, requests: Sequence[AlterConfigsRequest], validate_only: bool = False
    ) -> list[AlterConfigsResult]:
        """One result for each request, in order."""
        return await self._answer(
            lambda epoch, image: config_changes.alter_client_metrics(image, requests, self._rules),
            lambda code, message: [AlterConfigsResult(request.name, code, message) for request in requests],
            validate_only,
        )

    def _elect_if_allowed_by(self, requests: Sequence[AlterConfigsRequest]) -> None:
        """A partition without a leader may get one when unclean elections are allowed."""
        if any(change.name == UNCLEAN_CONFIG for request in requests for change in request.changes):
            self._work.set()

    async def alter_client_quotas(
        self, requests: Sequence[AlterQuotasRequest], validate_only: bool = False
    ) -> list[AlterQuotasResult]:
        """One result for each distinct entity."""
        return await self._answer(
            lambda epoch, image: quota_changes.alter_client_quotas(image, requests),
            lambda code, message: [
                AlterQuotasResult(entity, code, message)
                for entity in dict.fromkeys(request.entity for request in requests)
            ],
            validate_only,
        )

    async def elect_leaders(
        self, election: ElectionType, asked: Mapping[str, Sequence[int]] | None
    ) -> tuple[list[ElectionResult], KafkaError | None]:
        """One result for each topic, None asking for all of them; or none, and why."""
        planned: Planned = {}
        refusals: list[KafkaError] = []

        def refuse(code: ErrorCode, message: str) -> list[ElectionResult]:
            refusals.append(KafkaError(code, message))
            return []

        results = await self._answer(lambda epoch, image: elect_leaders(image, election, asked, planned, epoch), refuse)
        return results, refusals[0] if refusals else None

    async def alter_reassignments(
        self, requests: Sequence[Reassignment], may_change_replication_factor: bool = True
    ) -> list[ReassignmentResult]:
        """One result for each request, in order."""
        return await self._answer(
            lambda epoch, image: alter_reassignments(image, requests, may_change_replication_factor),
            lambda code, message: [ReassignmentResult(code, message) for _ in requests],
        )

    async def next_producer_id_block(self) -> ProducerIdBlock:
        """Ids that no one else was or will be given. Works on every broker, active controller or not."""
        return await take_block(self._store)

    def _topic_decisions(self, epoch: int, charge: Charge) -> TopicDecisions:
        return TopicDecisions(self._settings, self._rules.validate_topic, self._ids, epoch, charge)

    async def _answer(
        self,
        decide: Callable[[int, ClusterImage], list[Decision[Result]]],
        refuse: Callable[[ErrorCode, str], list[Result]],
        validate_only: bool = False,
    ) -> list[Result]:
        """In turn. A request goes on when its client has left, so nothing else bounds how many wait."""
        if self._waiting >= MOST_WAITING:
            return refuse(ErrorCode.REQUEST_TIMED_OUT, f"{MOST_WAITING} requests wait for the controller already.")
        self._waiting += 1
        try:
            async with self._deciding:
                return await self._answer_now(decide, refuse, validate_only)
        finally:
            self._waiting -= 1

    async def _answer_now(
        self,
        decide: Callable[[int, ClusterImage], list[Decision[Result]]],
        refuse: Callable[[ErrorCode, str], list[Result]],
        validate_only: bool,
    ) -> list[Result]:
        term = self._term
        if term is None:
            return refuse(ErrorCode.NOT_CONTROLLER, "This broker is not the controller.")
        epoch = term.epoch
        try:
            if validate_only:
                return [decision.result for decision in decide(epoch, self._metadata.image)]
            return await term.carry_out(lambda image: decide(epoch, image))
        except TermOver:
            self._term = None
            self._work.set()
            return refuse(ErrorCode.NOT_CONTROLLER, "This broker is no longer the controller.")
        except KafkaError as error:
            return refuse(error.code, error.message)
        except StoreError as error:
            logger.error("a request failed in the coordination store: %s", error)
            return refuse(ErrorCode.UNKNOWN_SERVER_ERROR, f"The coordination store failed: {error}")


def _names(requests: Sequence[NewTopic] | Sequence[NewPartitions]) -> list[str]:
    return list(dict.fromkeys(request.name for request in requests))


def _not_deleted(asked: str | bytes, code: ErrorCode, message: str) -> DeleteTopicResult:
    if isinstance(asked, str):
        return DeleteTopicResult(asked, ZERO_UUID, code, message)
    return DeleteTopicResult(None, asked, code, message)
