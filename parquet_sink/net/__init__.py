"""HTTP for targets and the schema registry: one session with TLS, proxies and deadlines; texts fit for a log.

`net.session` is requests, which writes requests, streams bodies from disk and reads answers; `net.session` gives it
connections of urllib3 that know their deadline, through HTTP proxies or SOCKS. Both use public interfaces only. What no
client of HTTP has, an end to an attempt whose other side drips, is `net.deadline`.
"""
