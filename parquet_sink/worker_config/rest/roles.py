"""Roles of those who use the REST API: what a user, or a client's certificate, may do. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from parquet_sink.config.report import quoted


class Role(StrEnum):
    """Each may do what those before it may.

    VIEWER: look. OPERATOR: also pause, resume, stop, restart and flush, and look at offsets and set-aside records.
    ADMIN: everything.
    """

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def includes(self, other: "Role") -> bool:
        """Whether it may do what the other one may."""
        return _ORDER.index(self) >= _ORDER.index(other)


_ORDER: Final = (Role.VIEWER, Role.OPERATOR, Role.ADMIN)
_NAMES: Final = ", ".join(_ORDER)
_ATTRIBUTES: Final[Mapping[str, str]] = {
    "CN": "commonName",
    "O": "organizationName",
    "OU": "organizationalUnitName",
}
Subject = Sequence[tuple[str, str]]
"""Attributes of a certificate's subject, by OpenSSL's long names."""


def role_named(text: str) -> Role | None:
    """In any case, with or without blanks around it."""
    return next((one for one in _ORDER if one == text.strip().lower()), None)


def password_and_role(text: str) -> tuple[str, Role | None, bool]:
    """What a line of the users' file has behind the name, `password` or `password,role`; None: it names no role.

    The last says whether what stands behind the last comma looks like a role misspelt: it belongs to the password.
    """
    password, comma, word = text.rpartition(",")
    role = role_named(word) if comma else None
    if role is not None:
        return password, role, False
    return text, None, bool(comma) and bool(re.fullmatch(r"\s*[A-Za-z]{4,9}\s*", word))


@dataclass(frozen=True)
class CertificateRole:
    """The role of clients whose certificate's subject has this. attribute: OpenSSL's long name; empty for all."""

    attribute: str
    value: str
    role: Role

    def fits(self, subject: Subject) -> bool:
        """Whether it is for who shows a certificate with this subject, or none."""
        return not self.attribute or (self.attribute, self.value) in subject


def parse_certificate_role(text: str) -> CertificateRole:
    """One rule, `OU=platform:operator` or `*:viewer`. Raises ValueError with a reason and a cure."""
    who, colon, word = text.rpartition(":")
    role, who = role_named(word), who.strip()
    if not colon or role is None:
        raise ValueError(f"{quoted(text)} ends with no role; write one of {_NAMES} behind a colon.")
    if who == "*":
        return CertificateRole("", "", role)
    name, sign, value = who.partition("=")
    attribute = _ATTRIBUTES.get(name.strip().upper())
    if not sign or attribute is None or not value.strip():
        raise ValueError(f"{quoted(text)} names no part of a subject; write CN=, O= or OU= with its value, or *.")
    return CertificateRole(attribute, value.strip(), role)


def role_of(rules: Sequence[CertificateRole], subject: Subject) -> Role | None:
    """Of the first rule that fits; None where none does."""
    return next((one.role for one in rules if one.fits(subject)), None)
