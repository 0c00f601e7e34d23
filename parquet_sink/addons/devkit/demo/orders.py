"""A stream of orders: created, paid, shipped, delivered, many at once, each change a whole new value.

The same seed gives the same keys and values. Some fields are null, some absent, some appear only in later states. Some
orders are cancelled before they are shipped: the order's key comes once more, without a value (a tombstone).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

import orjson

FIRST_ORDER: Final = 100_001
OPEN_AT_MOST: Final = 2_000
"""Orders on their way at once; beyond, one of them moves on."""
CANCELLED: Final = 0.05
"""Share of changes of open orders that cancel one which is not shipped."""
_BEGIN: Final = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
_STEP: Final = timedelta(milliseconds=180)

_PEOPLE: Final = (
    ("Zoë Müller", "Gärtnerstraße 12", "München", "80331", "DE"),
    ("James O'Connor", '4 "The Mews"', "Dublin", "D02 X285", "IE"),
    ("Sofía Álvarez", "Calle Mayor 7", "Madrid", "28013", "ES"),
    ("Amélie Dupont", "3 rue de l'Église", "Lyon", "69002", "FR"),
    ("Łukasz Nowak", "ul. Długa 5", "Kraków", "31-146", "PL"),
    ("陳怡君", "中山路 88 號", "臺北", "100", "TW"),
    ("Olivia Smith", "22 Baker Street", "London", "NW1 6XE", "GB"),
    ("Mateus Silva", "Avenida São João 100", "São Paulo", "01036-000", "BR"),
)
_GOODS: Final = (
    ("MUG-01", "Mug, blue", 9.9),
    ("TEA-14", "Darjeeling 250 g", 14.25),
    ("LMP-77", "Desk lamp", 49.0),
    ("BKS-30", "Notebook A5", 3.49),
    ("CHR-02", "Office chair", 189.95),
    ("CBL-19", 'Cable 19" rack', 27.8),
)
_CARRIERS: Final = ("DHL", "UPS", "GLS")
_METHODS: Final = ("card", "invoice", "wallet")


@dataclass(frozen=True)
class Change:
    """One record: the order's number, and its new value as JSON; None is a tombstone."""

    order_id: int
    value: bytes | None

    @property
    def key(self) -> bytes:
        """The record's key: the order's number as text."""
        return str(self.order_id).encode()


def changes(seed: int, records: int) -> Iterator[Change]:
    """Exactly `records` changes of as many orders as it takes."""
    chance = Random(seed)  # noqa: S311 - a made-up stream, the same for the same seed
    going: list[dict[str, Any]] = []
    next_id, now = FIRST_ORDER, _BEGIN
    for _ in range(records):
        now += _STEP
        if not going or (len(going) < OPEN_AT_MOST and chance.random() < 0.3):
            order = _created(chance, next_id, now)
            going.append(order)
            next_id += 1
        else:
            place = chance.randrange(len(going))
            order = going[place]
            if chance.random() < CANCELLED and order["status"] in ("created", "paid"):
                _close(going, place)
                yield Change(order["order_id"], None)
                continue
            _move_on(chance, order, now)
            if order["status"] == "delivered":
                _close(going, place)
        yield Change(order["order_id"], orjson.dumps(order))


def _created(chance: Random, order_id: int, now: datetime) -> dict[str, Any]:
    name, street, city, code, country = chance.choice(_PEOPLE)
    items = [_item(chance) for _ in range(chance.choice((1, 1, 1, 2, 3)))]
    order: dict[str, Any] = {
        "order_id": order_id,
        "status": "created",
        "created_at": _text(now),
        "updated_at": _text(now),
        "customer": {
            "id": 5_000 + chance.randrange(900),
            "name": name,
            "phone": None if chance.random() < 0.3 else f"+49 89 {chance.randrange(10**6):06}",
            "address": {"street": street, "city": city, "postal_code": code, "country": country},
        },
        "items": items,
        "total": round(sum(item["quantity"] * item["price"] for item in items), 2),
        "express": chance.random() < 0.2,
    }
    if chance.random() < 0.15:
        order["coupon"] = chance.choice(("SPRING-10", "WELCOME", None))
    return order


def _item(chance: Random) -> dict[str, Any]:
    sku, title, price = chance.choice(_GOODS)
    return {"sku": sku, "title": title, "quantity": chance.randint(1, 4), "price": price}


def _move_on(chance: Random, order: dict[str, Any], now: datetime) -> None:
    """To its next state."""
    order["updated_at"] = _text(now)
    if order["status"] == "created":
        order |= {"status": "paid", "payment": {"method": chance.choice(_METHODS), "amount": order["total"]}}
        order.pop("coupon", None)  # spent: the field is absent from now on
    elif order["status"] == "paid":
        tracking = f"{chance.randrange(10**10):010}"
        order |= {"status": "shipped", "shipment": {"carrier": chance.choice(_CARRIERS), "tracking": tracking}}
    else:
        order |= {"status": "delivered", "rating": chance.choice((None, 3, 4, 5))}


def _close(going: list[dict[str, Any]], place: int) -> None:
    """It is open no longer."""
    going[place] = going[-1]
    going.pop()


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")
