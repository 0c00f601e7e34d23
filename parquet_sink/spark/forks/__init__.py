"""Spark's Python processes, forked from one that has imported everything, instead of started one by one.

Spark starts five to eight Python processes for a connector, and each would import for itself what all of them need: 0.5
to 0.9 s of CPU time and 40 to 60 MB each: a start took 31 s of CPU, 20 of them in 17 such processes. With forks it
takes 13, and a further idle connector 32 MB in place of 69. The fork server (`server`) imports once, while Java starts;
a process forked from it is there in milliseconds and shares its memory. Where Spark would start Python it starts the
script `python` beside this module, which asks the server for a fork (`client`); whatever is in the way, it starts
Python as ever.
"""
