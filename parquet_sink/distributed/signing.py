"""Signs the requests that workers send each other, so that none can be made up, changed, or sent twice (HMAC).

A signature is of the worker that the request is for, method, path with query, the body's SHA-256, time and a nonce, by
the cluster's session key, which the leader writes into the config topic and renews. One header carries it:
`ALGORITHM TIME_MS NONCE BASE64`. The worker is named by its member id, which is another after each start: so nothing
is gained by sending a request to another worker, or to one that forgot the nonces it had seen.
"""

import base64
import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Final

from parquet_sink.distributed.records import SessionKey
from parquet_sink.worker.rest.peers import ROLE_HEADER, SIGNATURE, Forwarded
from parquet_sink.worker_config.distributed import HMACS, DistributedSettings

HEADER: Final = SIGNATURE
WINDOW_MS: Final = 60_000
"""How far a request's time may be from the clock of who gets it, and how long a key is believed that was renewed."""
_DIGESTS: Final = {"HmacSHA256": hashlib.sha256, "HmacSHA384": hashlib.sha384, "HmacSHA512": hashlib.sha512}
_NONCE_BYTES: Final = 16
_LONGEST: Final = 512


def _now_ms() -> int:
    return int(time.time() * 1000)


class NotBelieved(Exception):
    """A request is not another worker's of this cluster; the words say why, and hold nothing of the signature."""


def new_key(
    settings: DistributedSettings, now_ms: int, random: Callable[[int], bytes] = secrets.token_bytes
) -> SessionKey:
    """A session key for the leader to write."""
    bits = settings.key_bits or HMACS[settings.key_algorithm]
    return SessionKey(random(bits // 8), settings.key_algorithm, now_ms)


def is_due(key: SessionKey | None, settings: DistributedSettings, now_ms: int) -> bool:
    """Whether the leader has to write a new one: there is none, it is too old, or was made for another algorithm."""
    if key is None or key.algorithm != settings.key_algorithm:
        return True
    return not 0 <= now_ms - key.created_ms < settings.key_ttl_ms


def sign(to: str, request: Forwarded, key: SessionKey, algorithm: str, *, now_ms: int, nonce: str | None = None) -> str:
    """The text of HEADER. to: member id of who gets it. nonce: never the same; None for a random one."""
    nonce = secrets.token_urlsafe(_NONCE_BYTES) if nonce is None else nonce
    signature = _signature(to, request, key, algorithm, str(now_ms), nonce)
    return f"{algorithm} {now_ms} {nonce} {signature.decode()}"


def headers(to: str, request: Forwarded, key: SessionKey, algorithm: str) -> Mapping[str, str]:
    """By which the worker that a request is for believes it to be of its group. Of an admin no role is signed."""
    signature = {HEADER: sign(to, request, key, algorithm, now_ms=_now_ms())}
    return {**signature, ROLE_HEADER: request.role} if request.role else signature


def _signature(to: str, request: Forwarded, key: SessionKey, algorithm: str, time_ms: str, nonce: str) -> bytes:
    body, role = hashlib.sha256(request.body).hexdigest(), [request.role] if request.role else []
    parts = [algorithm, time_ms, nonce, to, request.method.upper(), request.target, body, *role]
    return base64.b64encode(hmac.new(key.key, "\n".join(parts).encode(), _DIGESTS[algorithm]).digest())


class Verifier:
    """Believes each signed request once. May be asked by several threads.

    algorithms: those that are believed. clock_ms: epoch milliseconds, as those who sign have them.
    """

    def __init__(self, algorithms: Collection[str], clock_ms: Callable[[], int] = _now_ms) -> None:
        self._algorithms, self._clock_ms = frozenset(algorithms), clock_ms
        self._lock = threading.Lock()
        self._current: SessionKey | None = None
        self._former: SessionKey | None = None
        self._renewed_ms = 0
        self._seen: dict[str, int] = {}

    def renew(self, key: SessionKey | None) -> None:
        """The config topic's key as it is now. The one before is believed for WINDOW_MS: not all have read it yet."""
        with self._lock:
            if key != self._current:
                self._former, self._current, self._renewed_ms = self._current, key, self._clock_ms()

    def verify(self, to: str, request: Forwarded) -> None:
        """Raises NotBelieved: unsigned, by an unknown key, changed, too old, of the future, or sent before.

        to: the member id of this worker.
        """
        header = request.headers.get(HEADER.lower())
        if not header:
            raise NotBelieved(f"The request has no {HEADER}, which workers of this cluster send each other.")
        parts = header[:_LONGEST].split(" ")
        if len(parts) != 4 or not (parts[1].isascii() and parts[1].isdecimal()):
            raise NotBelieved(f"{HEADER} is none that this version makes; update all workers.")
        algorithm, time_ms, nonce, signature = parts
        if algorithm not in self._algorithms or algorithm not in _DIGESTS:
            raise NotBelieved(
                f"{HEADER} is by an algorithm that is not in [inter.worker.verification.algorithms] of this worker."
            )
        now_ms = self._clock_ms()
        with self._lock:
            former = self._former if now_ms - self._renewed_ms < WINDOW_MS else None
            keys = [one for one in (self._current, former) if one is not None]
        expected = (_signature(to, request, one, algorithm, time_ms, nonce) for one in keys)
        if not any(hmac.compare_digest(one, signature.encode()) for one in expected):
            raise NotBelieved(
                "The signature is by another key than that of the config topic, or for another worker or for this one "
                "before it joined again, or the request was changed on its way."
            )
        if abs(now_ms - int(time_ms)) > WINDOW_MS:
            raise NotBelieved(
                f"The request is from {(now_ms - int(time_ms)) / 1000:+.0f} s ago by this worker's clock, and "
                f"{WINDOW_MS // 1000} s are believed; set the clocks of all workers (NTP)."
            )
        self._remember(nonce, int(time_ms), now_ms)

    def _remember(self, nonce: str, time_ms: int, now_ms: int) -> None:
        """Only of those that are signed, so nobody else fills it. Raises NotBelieved the second time."""
        with self._lock:
            while self._seen and (first := next(iter(self._seen.items())))[1] < now_ms:
                del self._seen[first[0]]
            if nonce in self._seen:
                raise NotBelieved("The request was sent before; sign each one again.")
            self._seen[nonce] = time_ms + WINDOW_MS
