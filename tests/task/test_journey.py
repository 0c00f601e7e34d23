"""A record's journey through one Spark task, step by step: what docs/how-to/task-without-spark.md shows."""

from tests.messages import assert_says
from tests.spark_task import SparkTask


def test_a_record_becomes_a_row(spark_task: SparkTask) -> None:
    """It is read, converted, written into a file, uploaded, and accepted; the next task goes on behind it."""
    spark_task.configure(connect__ems__data__primary__key="order_id", connect__ems__commit__records="100")
    spark_task.produce(b'{"order_id": 1, "customer": {"name": "Ada"}}', b'{"order_id": 2}')

    outcome = spark_task.flush()["orders", 0]  # put a breakpoint here, and step in

    assert (outcome.accepted_until, outcome.failure) == (2, None)
    assert [(row["order_id"], row["customer_name"]) for row in spark_task.rows()] == [(1, "Ada"), (2, None)]
    assert spark_task.accepted == {("orders", 0): 2}

    spark_task.produce(b"not JSON")
    failure = spark_task.flush()["orders", 0].failure
    assert failure is not None
    assert_says(failure.message, "topic orders, topic-partition 0, offset 2:", "not JSON")
