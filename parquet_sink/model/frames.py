"""Where rows of a DataFrame come from, which have no offsets: a query's micro-batch, or one save."""

from dataclasses import dataclass


@dataclass(frozen=True)
class FrameSlice:
    """The rows that one Spark task writes; the same for each attempt at them.

    run: 32 hexadecimal digits, of the query (Spark keeps its id in the checkpoint) or of the save. batch: the query's
    micro-batch, which has the same number when it is repeated; None for a save. partition: Spark's, from 0.
    """

    run: str
    batch: int | None
    partition: int

    @property
    def label(self) -> str:
        """What stands for a topic: in local paths and receipts."""
        return f"{'query' if self.batch is not None else 'save'}-{self.run}"

    @property
    def described(self) -> str:
        """For messages."""
        if self.batch is None:
            return f"Save {self.run}, Spark partition {self.partition}"
        return f"Query {self.run}, batch {self.batch}, Spark partition {self.partition}"

    @property
    def repeated(self) -> str:
        """What becomes of rows that could not be delivered, for messages."""
        if self.batch is None:
            return "The save has failed; what it sent may be there. Save again."
        return "The batch is not done; it comes again, under the same names, when the query is started again."
