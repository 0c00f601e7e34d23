"""One worker with connectors in every state, shared by what only looks."""

from collections.abc import Iterator

import pytest

from tests.addons.page import scene
from tests.worker.rest.serving import Client


@pytest.fixture(scope="session")
def herder(tmp_path_factory: pytest.TempPathFactory) -> scene.SceneHerder:
    """Of the shared worker."""
    return scene.every_state(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def page(herder: scene.SceneHerder) -> Iterator[Client]:
    """Asks the shared worker."""
    with scene.showing(herder) as client:
        yield client
