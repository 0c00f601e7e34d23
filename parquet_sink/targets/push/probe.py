"""What the answer to a form without a file says about a push target."""

from typing import Final

from parquet_sink.targets.outcome import Health, Outcome, ProbeResult, Verdict

NO_FILE: Final = frozenset({400, 411, 415, 422})
"""What a push target answers to a form without a file."""
REFUSED_HERE: Final = frozenset({401, 403, 404, 405, 407, 410, 501, 505})
"""Answers that a file would have, too."""


def judge(outcome: Outcome, signed_with: str = "key") -> ProbeResult:
    """OK for an answer that shows name, TLS, path and key to be right; FAILED when a file would be refused as well."""
    text = f"{outcome.cause}. {outcome.cure}." if outcome.cure else f"{outcome.cause}."
    if outcome.status in NO_FILE:
        return ProbeResult(
            Health.OK, f"takes the {signed_with}, and refuses a form without a file as it should ({outcome.cause})"
        )
    if outcome.verdict is Verdict.ACCEPTED:
        return ProbeResult(
            Health.WARNING,
            f"{outcome.cause} a form without a file, which a push target refuses. Check the address.",
        )
    redirected = outcome.status is not None and 300 <= outcome.status < 400
    if outcome.status is None or outcome.status < 300 or redirected or outcome.status in REFUSED_HERE:
        return ProbeResult(Health.FAILED, text)
    return ProbeResult(Health.WARNING, text)
