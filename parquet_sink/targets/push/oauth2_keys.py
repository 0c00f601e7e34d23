"""Keys of access tokens for the push API (OAuth 2.0, client credentials)."""

from typing import Final

from parquet_sink.config.key import Key, Origin, Type, ems
from parquet_sink.targets.push.keys import TARGET
from parquet_sink.targets.push.value_checks import CLIENT_ID, SCOPE, TOKEN_URL

CLIENT_ID_KEY: Final = ems("oauth2.client.id")
SECRET_KEY: Final = ems("oauth2.client.secret")
TOKEN_URL_KEY: Final = ems("oauth2.token.url")
SCOPE_KEY: Final = ems("oauth2.scope")
AUTHENTICATION_KEY: Final = ems("oauth2.client.authentication")

OAUTH2_KEYS: Final = (
    Key(
        CLIENT_ID_KEY,
        TARGET,
        Type.STRING,
        "In place of `connect.ems.authorization.key`: the OAuth 2.0 client (grant `client_credentials`) that access "
        "tokens are asked for; they are renewed before they end. See [upload.md](upload.md#access-tokens).",
        check=CLIENT_ID,
        origin=Origin.OWN,
    ),
    Key(
        SECRET_KEY,
        TARGET,
        Type.PASSWORD,
        "Secret of that client; both are needed. Never printed; best given by a config provider, see Secrets.",
        origin=Origin.OWN,
    ),
    Key(
        TOKEN_URL_KEY,
        TARGET,
        Type.STRING,
        "Where access tokens are asked for. It is reached as the target is: through the same proxy, with the same "
        "authorities.",
        default_text="`/oauth2/token` at the host of `connect.ems.endpoint`",
        check=TOKEN_URL,
        needs=CLIENT_ID_KEY,
        origin=Origin.OWN,
    ),
    Key(
        SCOPE_KEY,
        TARGET,
        Type.STRING,
        "Scopes to ask for, separated by blanks, such as `integration.data-pools:data_push`.",
        default_text="none is named",
        check=SCOPE,
        needs=CLIENT_ID_KEY,
        origin=Origin.OWN,
    ),
    Key(
        AUTHENTICATION_KEY,
        TARGET,
        Type.STRING,
        "How the client proves who it is: `basic` (id and secret in a header), or `post` (in the form); as the client "
        "was registered (`client_secret_basic`, `client_secret_post`).",
        default="basic",
        choices=("basic", "post"),
        needs=CLIENT_ID_KEY,
        origin=Origin.OWN,
    ),
)
