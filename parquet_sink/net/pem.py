"""Why a file of certificates or keys in PEM form cannot be used, in words for the operator."""

import os
import ssl


def describe(error: Exception, holds: str, *, locked: bool = False) -> str:
    """Why a file could not be used. holds: what it should hold. locked: whether a password may be the reason."""
    if isinstance(error, ssl.SSLError):
        if error.reason == "KEY_VALUES_MISMATCH":
            return "its key belongs to another certificate"
        return f"it does not hold {holds} in PEM form{', or its password is wrong' if locked else ''}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower() if error.strerror[1:2].islower() else error.strerror
    return f"it does not hold {holds} in PEM form"


def authorities_problem(place: str) -> str | None:
    """Why a file, or a folder of hashed certificates, names no authorities; None when it does."""
    if os.path.isdir(place):
        return None if os.access(place, os.R_OK | os.X_OK) else "the folder may not be read"
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(place)
    except (OSError, ValueError) as error:
        return describe(error, "certificates")
    return None


def readable_problem(place: str) -> str | None:
    """Why a file cannot be read; None when it can."""
    try:
        with open(place, "rb") as file:
            file.read(1)
    except OSError as error:
        return describe(error, "anything")
    return None
