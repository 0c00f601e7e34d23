"""Requests of an admin client that nobody waits for any more."""

import gc
import time
import weakref
from concurrent.futures import Future

import pytest
from confluent_kafka import Consumer, KafkaException

from parquet_sink.errors import KafkaFailed, KafkaRefused
from parquet_sink.kafka.client.causes import Cause
from parquet_sink.kafka.client.log import ClientLog
from parquet_sink.kafka.cluster import requests
from parquet_sink.kafka.cluster.cluster import KafkaCluster
from parquet_sink.kafka.cluster.requests import AdminRequests
from parquet_sink.kafka.settings import KafkaSettings
from tests.messages import saying

KAFKA = KafkaSettings(("orders",), None, "g", {"bootstrap.servers": "b:9092", "default.api.timeout.ms": "2000"})


class Admin:
    """A client that gets no answer."""

    def poll(self, timeout: float) -> None:
        """Nothing was logged."""


class Refused(ClientLog):
    """A broker answers, and lets nobody in."""

    def cause(self) -> Cause:
        return Cause("the login is wrong", "Check it", lasting=True)

    cause_of_silence = cause


def test_a_client_outlives_its_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the garbage collector finds of it meanwhile is kept: librdkafka aborts if its own thread destroys it."""
    for name in ("HEAR_S", "LATE_S", "GRACE_S"):
        monkeypatch.setattr(requests, name, 0.0)
    asking = AdminRequests(KAFKA, Refused("g"), build=lambda *given: Admin())
    client = weakref.ref(asking._admin)
    began, pending = time.monotonic(), Future[None]()
    with pytest.raises(KafkaRefused, match=saying("not let us in", "the login is wrong", "Check it")):
        asking._answer(pending)
    del asking
    while client() is not None:
        time.sleep(0.01)
        gc.collect()
    assert time.monotonic() - began >= 2


def test_quick_ends_without_a_client_are_not_known() -> None:
    """Where no token is to be had for a client of their own, other requests, whose client has one, tell the ends."""

    def build(make: type, *given: object) -> Admin:
        if make is Consumer:
            raise KafkaFailed("The Kafka client cannot sign in: no token.")
        return Admin()

    assert KafkaCluster(KAFKA, build=build).quick_ends([("orders", 0)]) == {}


def test_a_client_is_given_up_with_a_request_that_timed_out() -> None:
    """Nothing is asked by it any more, and it goes: librdkafka aborts when such a request finds its coordinator."""
    asking = AdminRequests(KAFKA, build=lambda *given: Admin())
    client, late = weakref.ref(asking._admin), Future[None]()
    late.set_exception(KafkaException(requests.SILENT))
    with pytest.raises(KafkaException):
        asking._answer(late)
    assert asking._admin is not client()
    del late
    while client() is not None:
        time.sleep(0.01)
        gc.collect()
