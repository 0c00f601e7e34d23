"""HTTP for targets and the schema registry: one client with TLS, proxies and deadlines; texts fit for a log.

Built on urllib3, through its public interface only. It was chosen because it has what is promised: SOCKS 4 and 5 beside
HTTP proxies, bodies streamed from disk, pooled connections, own TLS contexts, answers read in bounded parts. What no
client of HTTP has, an end to an attempt whose other side drips, is `net.deadline`.
"""
