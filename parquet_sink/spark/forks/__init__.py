"""Spark's Python processes, forked from one that has imported everything, instead of started one by one.

Spark starts five to eight Python processes for a connector, and each would import for itself what all of them need: 0.5
to 0.9 s of CPU time and 40 to 60 MB each. The fork server (`server`) imports once, while Java starts; a process forked
from it is there in milliseconds and shares its memory. Where Spark would start Python it starts the script `python`
beside this module, which asks the server for a fork (`client`); whatever is in the way, it starts Python as ever.
"""
