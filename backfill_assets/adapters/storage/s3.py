"""One declaration of an S3 store, as delta-rs takes it and as Spark takes it. This module asks no store.

What is declared (endpoint, region, keys, path style) goes to both. Keys that are not declared are looked up by each side's
own provider chain: environment variables, web identity, the machine's role.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from backfill_assets.adapters.storage.loopback import is_loopback
from backfill_assets.declare.stores import unusable

__all__ = ["ENDPOINTS", "Keys", "S3Access", "bucket_settings", "delta_options", "s3_access", "spark_settings"]

DEFAULT_REGION = "us-east-1"
"""What a store at an endpoint of its own is signed for, if no region is declared."""

ENDPOINTS = ("endpoint", "aws_endpoint_url_s3")
"""The options of delta-rs and of obstore for an endpoint: without the second one, a variable of that name would count more
than the first."""

_SAME = {
    "endpoint_url": "endpoint",
    "endpoint_url_s3": "endpoint",
    "default_region": "region",
    "session_token": "token",
}
_PUBLIC = ("endpoint", "region", "allow_http", "virtual_hosted_style_request")
"""What is read from the environment for both sides; keys there are left to the provider chains."""
_PINNED = {"skip_signature": "false", "conditional_put": "etag"}
"""What no variable of the environment may change."""
_UNSAFE = ("allow_unsafe_rename", "copy_if_not_exists", "conditional_put", "skip_signature")
_TOKEN = "AWS_SESSION_TOKEN"
_PREFIX = "fs.s3a."
_BY_CONNECTOR = {"fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"}
_PROVIDER = "org.apache.hadoop.fs.s3a.{}AWSCredentialsProvider"
_DEFAULTS: Mapping[str, str] = {
    "endpoint": "s3.amazonaws.com",
    "endpoint.region": "",
    "path.style.access": "false",
    "connection.ssl.enabled": "true",
    # Hadoop's own chain without the providers that read keys from settings.
    "aws.credentials.provider": "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider,"
    "org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider",
}
"""What the connector does without a setting."""


@dataclass(frozen=True, kw_only=True)
class Keys:
    """Declared keys of a store, which nothing shows."""

    id: str = field(repr=False)
    secret: str = field(repr=False)
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class S3Access:
    """How an S3 store is reached; what is None is left to each side's own defaults."""

    endpoint: str | None = None
    region: str | None = None
    path_style: bool = False
    allow_http: bool = False
    keys: Keys | None = None


def s3_access(options: Mapping[str, str], environment: Mapping[str, str]) -> S3Access:
    """How a store is reached, from declared options and `AWS_*` variables.

    Errors: `DeclarationError` for what cannot work, or would risk what is stored or sent.
    """
    declared = _named(options)
    _check_safe(declared)
    _check_environment(environment, declared)
    public = {name: value for name, value in _named(_aws(environment)).items() if name in _PUBLIC}
    found = {**public, **declared}
    endpoint = (found.get("endpoint") or "").rstrip("/") or None
    _check_endpoint(endpoint)
    _check_strangers(environment, endpoint)
    return S3Access(
        endpoint=endpoint,
        region=found.get("region") or (DEFAULT_REGION if endpoint else None),
        path_style=endpoint is not None and not _is_true(found.get("virtual_hosted_style_request")),
        allow_http=_http_allowed(endpoint, asked=_is_true(found.get("allow_http"))),
        keys=_keys(declared),
    )


def delta_options(options: Mapping[str, str], access: S3Access) -> dict[str, str]:
    """The options of delta-rs: those that are declared, and what the environment adds to them."""
    made = {
        **_PINNED,
        **dict.fromkeys(ENDPOINTS, access.endpoint),
        "region": access.region,
        "allow_http": "true" if access.allow_http else None,
        "virtual_hosted_style_request": str(not access.path_style).lower() if access.endpoint else None,
    }
    return {**_named(options), **{name: value for name, value in made.items() if value is not None}}


def spark_settings(access: S3Access) -> dict[str, str]:
    """The settings of a Spark session that reaches the store in the same way. Those that Spark has for one bucket stay."""
    return {**_BY_CONNECTOR, **{f"{_PREFIX}{name}": value for name, value in _told(access).items()}}


def bucket_settings(access: S3Access, bucket: str, general: Mapping[str, str]) -> dict[str, str]:
    """The settings of a Spark session that reaches one bucket in this way, and all others as `general` says.

    What `general` sets and this store does not has Spark's default for the bucket. So keys are never used for a store that
    they were not declared for.
    """
    told = _told(access)
    others = {name.removeprefix(_PREFIX) for name in general}
    if "endpoint" not in told and "endpoint.region" not in told and others & {"endpoint", "endpoint.region"}:
        others |= {"endpoint", "endpoint.region"}  # the region is found at the central endpoint, and without it nowhere
    settings = {**{name: value for name, value in _DEFAULTS.items() if name in others}, **told}
    return {**_BY_CONNECTOR, **{f"{_PREFIX}bucket.{bucket}.{name}": value for name, value in settings.items()}}


def _told(access: S3Access) -> dict[str, str]:
    """What the connector is told, under its names without their prefix."""
    made = {
        "endpoint": access.endpoint,
        "endpoint.region": access.region,
        "path.style.access": str(access.path_style).lower() if access.endpoint else None,
        "connection.ssl.enabled": "false" if access.allow_http and _is_http(access.endpoint) else None,
        # Folders are not objects: to look for them, or to leave markers in their place, costs requests and helps nobody.
        "performance.flags": "mkdir,delete",
        **_key_settings(access.keys),
    }
    return {name: value for name, value in made.items() if value is not None}


def _key_settings(keys: Keys | None) -> dict[str, str | None]:
    if keys is None:
        return {}
    return {
        "aws.credentials.provider": _PROVIDER.format("Temporary" if keys.token else "Simple"),
        "access.key": keys.id,
        "secret.key": keys.secret,
        "session.token": keys.token,
    }


def _named(options: Mapping[str, str]) -> dict[str, str]:
    """Options under the one name of each; an empty one is not set. Of several names, the last one counts, such as
    `endpoint_url_s3`, as it does for delta-rs."""
    return {_name_of(name): value for name, value in sorted(options.items()) if value}


def _name_of(name: str) -> str:
    """The one name of an option, or of a variable that delta-rs takes for it: in any case, and without AWS_ before it."""
    plain = name.lower().removeprefix("aws_")
    return _SAME.get(plain, plain)


def _aws(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith("AWS_")}


def _check_environment(environment: Mapping[str, str], declared: Mapping[str, str]) -> None:
    """Refuse variables that delta-rs would take though they do not belong to what is declared, or stop it."""
    empty = sorted(name for name, value in environment.items() if name.startswith("AWS_ENDPOINT") and not value)
    if empty and "endpoint" not in declared:
        raise unusable(f"the variable {empty[0]} is set, but empty", f"unset {empty[0]}")
    has_keys = "access_key_id" in declared
    tokens = {name for name in environment if _name_of(name) == "token"} - ({_TOKEN} if not has_keys else set())
    if tokens and "token" not in declared and (has_keys or "AWS_ACCESS_KEY_ID" in environment):
        name = min(tokens)
        raise unusable(
            f"its keys are {'declared' if has_keys else 'in the environment'} without a token, and the environment has "
            f"{name}, which delta-rs would send with them",
            f"unset {name}, or declare it with its keys (token: env:{name}), or declare no keys, so that all come from the "
            f"environment, with {_TOKEN}",
        )


def _check_strangers(environment: Mapping[str, str], endpoint: str | None) -> None:
    """Refuse a variable that delta-rs takes for an endpoint, and nobody else does."""
    found = sorted(name for name in environment if _name_of(name) == "endpoint" and not name.startswith("AWS_"))
    if endpoint is None and found:
        raise unusable(
            f"the environment has {found[0]}, which delta-rs alone takes for the endpoint of the store",
            f"unset {found[0]}, or declare the endpoint",
        )


def _check_safe(declared: Mapping[str, str]) -> None:
    unsafe = next((name for name in _UNSAFE if declared.get(name, "false").lower() not in {"false", "etag"}), None)
    if unsafe is not None:
        raise unusable(
            f"it sets {unsafe}, which every commit being written only if no other has its place does not go with",
            "leave it out: stores that can write an object only if it is absent need no option, and others lose commits",
        )


def _check_endpoint(endpoint: str | None) -> None:
    """Refuse an endpoint with a secret in it, which clients show in their errors."""
    if endpoint is not None and "@" in endpoint:
        raise unusable(
            f"its endpoint {_shown(endpoint)} is written with a user name or a password",
            "declare keys as keys, and the endpoint without them",
        )


def _http_allowed(endpoint: str | None, *, asked: bool) -> bool:
    """Whether the store may be spoken to without TLS. Errors: `DeclarationError` if it would be without being asked for."""
    if endpoint is None or not _is_http(endpoint):
        if endpoint is not None and urlsplit(endpoint).scheme != "https":
            raise unusable(f"its endpoint is {_shown(endpoint)}: expected https://host[:port]", "write it as a URL")
        return asked
    if asked or is_loopback(endpoint):
        return True
    raise unusable(
        f"its endpoint {_shown(endpoint)} is on another machine and has no TLS, so that rows would be readable on their way",
        "use https://, or set allow_http to true if the network between is yours alone",
    )


def _keys(declared: Mapping[str, str]) -> Keys | None:
    key, secret, token = (declared.get(name) for name in ("access_key_id", "secret_access_key", "token"))
    if key and secret:
        return Keys(id=key, secret=secret, token=token or None)
    if not (key or secret or token):
        return None
    missing = "secret_access_key" if key else "access_key_id"
    raise unusable(
        f"it names {'access_key_id' if key else 'secret_access_key' if secret else 'token'} without {missing}",
        "give both, or neither, so that environment or machine tell who asks",
    )


def _is_http(endpoint: str | None) -> bool:
    return endpoint is not None and endpoint.startswith("http://")


def _is_true(value: str | None) -> bool:
    return (value or "").lower() in {"true", "1", "yes"}


def _shown(endpoint: str) -> str:
    """An endpoint without what may be a secret in it."""
    before, _, place = endpoint.rpartition("@")
    scheme, separator, _ = before.partition("://")
    return f"{scheme}{separator}{place}" if separator else place
