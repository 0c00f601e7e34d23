"""A config provider of one's own: values of HashiCorp Vault's key-value store, version 2."""

import json
from collections.abc import Collection
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import quote, urlsplit

from parquet_sink.api import Key, ProviderError, Type, Values, WrongSettings

SECTION = "Vault"


class VaultConfigProvider:
    """`${vault:secret/data/sink:ems-key}`: a field of a secret in Vault."""

    keys = (
        Key("address", SECTION, Type.STRING, "Where Vault is.", required=True, missing="give https://HOST:8200."),
        Key(
            "token", SECTION, Type.PASSWORD, "Token of the program.", required=True, missing="give ${env:VAULT_TOKEN}."
        ),
        Key("timeout.ms", SECTION, Type.INT, "How long Vault may take.", default=5_000, minimum=1, maximum=20_000),
    )

    def __init__(self, values: Values) -> None:
        self._address = urlsplit(values.text("address") or "")
        self._token = values.secret("token")
        self._seconds = (values.number("timeout.ms") or 0) / 1000
        if self._address.scheme != "https" and self._address.hostname != "127.0.0.1":
            raise WrongSettings({"address": f"{values.quoted('address')} is no https address; give https://HOST:8200."})

    def get(self, path: str, keys: Collection[str]) -> dict[str, str]:
        """The fields of one secret."""
        assert self._token is not None
        kind = HTTPSConnection if self._address.scheme == "https" else HTTPConnection
        try:
            with closing(kind(self._address.netloc, timeout=self._seconds)) as vault:
                vault.request("GET", f"/v1/{quote(path)}", headers={"X-Vault-Token": self._token.reveal()})
                answer = vault.getresponse()  # redirects are not followed: the token goes to this address only
                body = answer.read(1_000_000)
        except (OSError, HTTPException) as error:
            raise ProviderError(f"Vault cannot be reached ({type(error).__name__}); see whether it runs.") from None
        if answer.status != 200:
            raise ProviderError(f"Vault answers {answer.status} to {path}; see whether it is there for us.")
        fields = json.loads(body)["data"]["data"]
        return {key: fields[key] for key in keys if key in fields}
