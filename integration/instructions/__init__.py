"""What a record costs at each stage in instructions of the processor: figures that do not depend on the machine."""
