"""Releases what Spark leaves in Java at each start of a query: descriptors and threads would run out after months.

The source of each query gets a Python process of its own from a `PythonWorkerFactory` that is used once (Spark 4.3:
`PythonStreamingSourceRunner.init`, `PythonWorkerFactory.createSimpleWorker`). As long as Java lives there stay

- three descriptors: the socket that the process connects to is registered with a selector that is never closed, and
  Java frees a socket only when its selector lets go of it. So do the selector's own two, epoll and eventfd.
- the thread `Idle Worker Monitor`, which sleeps for ever over workers that this factory does not have.

No object of Java refers to that selector any more. So the descriptors are found as Linux shows them, by the port that
the process connected to, and closed by their numbers. Spark forgets that port when the process ends, which may be
before anyone looked; so each process also notes where it was told to connect to (`forks.client.note_port`).
"""

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]

log = logging.getLogger(__name__)

MONITOR: Final = "Idle Worker Monitor for "
"""How the names of these threads begin."""
_OUTER: Final = "org$apache$spark$api$python$PythonWorkerFactory$MonitorThread$$$outer"
_WORKERS: Final = "simpleWorkers"
LATE_S: Final = 60.0
"""A process that has not connected by then never will: Spark gives it 10 s."""
PROC: Final = Path("/proc")
LISTENS: Final = "0A"
"""The state of a listening socket in /proc/net/tcp."""


class NotedPorts:
    """Ports that processes were told to connect to, until no process will connect to them any more."""

    def __init__(self) -> None:
        self._since_s: dict[int, float] = {}

    @property
    def left(self) -> bool:
        """Whether there are some."""
        return bool(self._since_s)

    def over(self, ports: set[int], *, waits: bool, now_s: float) -> set[int]:
        """Those that are over, each once. ports: noted since the last call.

        waits: a factory waits for its process, at a port that it does not tell.
        """
        since_s = dict.fromkeys(ports, now_s) | self._since_s
        found = {port for port, noted_s in since_s.items() if not waits or now_s - noted_s >= LATE_S}
        self._since_s = {port: noted_s for port, noted_s in since_s.items() if port not in found}
        return found


class Leftovers:
    """Of one Java process. gateway: py4j's to it. Used by one thread at a time.

    take_ports: those that processes were told to connect to since it was asked last.
    """

    def __init__(
        self, gateway: Any, take_ports: Callable[[], set[int]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._gateway, self._java, self._clock = gateway, gateway.jvm.java, clock
        self._take_ports = take_ports
        self._noted = NotedPorts()
        self._works = True
        self._waits_since_s: dict[int, float] = {}

    def release(self) -> bool:
        """Releases what is left over now. Whether a factory waits for its process yet, so that more will be."""
        try:
            return self._works and self._release()
        except Py4JNetworkError:  # Java is gone
            self._works = False
        except Exception as error:  # another Spark or Java: what is left stays, and queries start all the same
            self._works = False
            log.debug("what Spark leaves at each start of a query cannot be released", exc_info=error)
        return False

    def _release(self) -> bool:
        taken = self._take_ports()  # first: each of these has its factory already
        ports = {monitor: self._port(factory) for monitor, factory in self._single_use()}
        now_s = self._clock()
        connected = {port for port in ports.values() if port is not None}
        if over := connected | self._noted.over(taken, waits=None in ports.values(), now_s=now_s):
            self._close(over)
        waiting = {int(monitor.getId()): monitor for monitor, port in ports.items() if port is None}
        self._waits_since_s = {number: self._waits_since_s.get(number, now_s) for number in waiting}
        late = [waiting[number] for number, since_s in self._waits_since_s.items() if now_s - since_s >= LATE_S]
        for monitor in [*late, *(monitor for monitor, port in ports.items() if port is not None)]:
            self._end(monitor)
        return len(late) < len(waiting) or self._noted.left

    def _single_use(self) -> Iterator[tuple[Any, Any]]:
        """Threads of factories that start one process, and the factories; others have workers, and outlive queries."""
        threads = self._java.lang.Thread.getAllStackTraces().keySet().toArray()
        told = str(self._java.util.Arrays.toString(threads)).split("Thread[")[1:]  # all in one call, not 200
        is_each = len(told) == len(threads)  # no name has these words, too
        for place in (one for one in range(len(threads)) if not is_each or MONITOR in told[one]):
            thread = threads[place]
            if thread.getName().startswith(MONITOR):
                factory = getattr(thread, _OUTER)()
                if not factory.useDaemonEnabled():
                    yield thread, factory

    def _port(self, factory: Any) -> int | None:
        """The port that its process connected to; None when it has not, or was forgotten since it ended.

        The factory notes the process right before it closes the socket that listens, which takes no time.
        """
        field = factory.getClass().getDeclaredField(_WORKERS)
        field.setAccessible(True)
        workers = field.get(factory).keysIterator()
        return int(workers.next().channel().socket().getLocalPort()) if workers.hasNext() else None

    def _end(self, thread: Any) -> None:
        """Its sleep is interrupted, which ends it; nobody is to print that."""
        java = self._java.lang
        parameters = self._array(java.Class, *map(java.Class.forName, ("java.lang.Thread", "java.lang.Throwable")))
        nothing = java.invoke.MethodHandles.empty(java.invoke.MethodType.methodType(java.Void.TYPE, parameters))
        handler = java.Class.forName("java.lang.Thread$UncaughtExceptionHandler")
        thread.setUncaughtExceptionHandler(java.invoke.MethodHandleProxies.asInterfaceInstance(handler, nothing))
        thread.interrupt()

    def _close(self, ports: set[int]) -> None:
        for descriptor in leaked(PROC / str(self._java.lang.ProcessHandle.current().pid()), ports):
            self._descriptor(descriptor).close()
            log.debug("closed descriptor %d of Java, which Spark left behind", descriptor)

    def _descriptor(self, number: int) -> Any:
        """A stream over a descriptor of Java's process, by which it can be closed."""
        java = self._java
        parameters = self._array(java.lang.Class, java.lang.Integer.TYPE)
        made = java.lang.Class.forName("java.io.FileDescriptor").getDeclaredConstructor(parameters)
        made.setAccessible(True)
        return java.io.FileOutputStream(made.newInstance(self._array(java.lang.Object, number)))

    def _array(self, of: Any, *values: Any) -> Any:
        array = self._gateway.new_array(of, len(values))
        for place, value in enumerate(values):
            array[place] = value
        return array


def leaked(process: Path, ports: set[int]) -> list[int]:
    """Descriptors of sockets that listen on these ports, and of selectors that have nothing else to look at.

    process: a folder of /proc. A selector is an epoll descriptor and an eventfd that it looks at to be woken. What
    differs from that in any way is left alone. Raises OSError when the process is gone.
    """
    links = dict(_links(process))
    inodes = {f"socket:[{inode}]" for inode in _listening(process, ports)}
    sockets = {number for number, link in links.items() if link in inodes}
    found: list[int] = []
    for number, link in links.items():
        if link != "anon_inode:[eventpoll]":
            continue
        watched = _watched(process, number)
        wakers = [one for one in watched - sockets if links.get(one) == "anon_inode:[eventfd]"]
        if len(watched) == 2 and len(watched & sockets) == 1 and len(wakers) == 1:
            found += [number, *sorted(watched)]
    return found


def _links(process: Path) -> Iterator[tuple[int, str]]:
    for name in os.listdir(process / "fd"):
        with suppress(OSError):  # closed meanwhile
            yield int(name), os.readlink(process / "fd" / name)


def _listening(process: Path, ports: set[int]) -> set[str]:
    """Inodes of the sockets that listen on these ports, of all processes."""
    lines = [
        line.split()
        for family in ("tcp", "tcp6")
        if (process / "net" / family).exists()
        for line in (process / "net" / family).read_text().splitlines()[1:]
    ]
    return {fields[9] for fields in lines if fields[3] == LISTENS and int(fields[1].rpartition(":")[2], 16) in ports}


def _watched(process: Path, epoll: int) -> set[int]:
    """The descriptors that an epoll descriptor looks at."""
    with suppress(OSError):
        lines = (process / "fdinfo" / str(epoll)).read_text().splitlines()
        return {int(line.split()[1]) for line in lines if line.startswith("tfd:")}
    return set()
