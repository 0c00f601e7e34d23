"""Values of labels: few, and fit to be shown."""

from typing import Final

OTHER: Final = "(other)"
"""In place of a topic beyond the bound; no topic can have this name."""
MOST_TOPICS: Final = 500


def label(text: str) -> str:
    """A name as the value of a label: what is no Unicode is written as an escape."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class TopicLabels:
    """Which topics have series of their own: the first `most` that something happens to, over all connectors."""

    def __init__(self, most: int = MOST_TOPICS) -> None:
        self._most = most
        self._known: set[tuple[str, str]] = set()

    def of(self, connector: str, topic: str) -> str:
        if (connector, topic) not in self._known:
            if len(self._known) >= self._most:
                return OTHER
            self._known.add((connector, topic))
        return label(topic)

    def forget(self, connector: str) -> None:
        """Makes room: this connector is gone."""
        self._known = {known for known in self._known if known[0] != connector}
