"""`/connectors/{name}/tasks`: what a connector's tasks are and do, and one of them restarted."""

from parquet_sink.worker.herder.protocol import Herder
from parquet_sink.worker.rest import renderings
from parquet_sink.worker.rest.call import Call, Reply, RestError
from parquet_sink.worker.rest.failures import NOT_FOUND, UNKNOWN_TO_RESTART, told


class Tasks:
    """The endpoints, each a method that may be called from any thread."""

    def __init__(self, herder: Herder) -> None:
        self._herder = herder

    def all(self, call: Call) -> Reply:
        with told():
            return Reply(renderings.tasks(self._herder.info(call.connector)))

    def configs(self, call: Call) -> Reply:
        """Configurations by task, as older clients ask for it; none is as good as no connector, as in Kafka Connect."""
        with told():
            found = renderings.tasks_config(self._herder.info(call.connector))
        if not found:
            raise RestError(404, NOT_FOUND.format(call.connector))
        return Reply(found)

    def status(self, call: Call) -> Reply:
        name, number = call.connector, _task_number(call)
        missing = f"No status found for task {name}-{number}"
        with told(missing.replace("{", "{{").replace("}", "}}")):
            found = next((one for one in self._herder.status(name).tasks if one.id == number), None)
        if found is None:
            raise RestError(404, missing)
        return Reply(renderings.task(found))

    def restart(self, call: Call) -> Reply:
        with told(UNKNOWN_TO_RESTART):
            self._herder.restart_task(call.connector, _task_number(call))
        return Reply(status=204)


def _task_number(call: Call) -> int:
    text = call.path["task"]
    if not (text.isascii() and text.removeprefix("-").isdigit() and len(text) <= 11):
        raise RestError(404, "HTTP 404 Not Found")
    return int(text)
