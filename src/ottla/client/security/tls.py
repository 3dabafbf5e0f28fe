"""TLS: whom a client trusts, how it proves who it is, and what a failed handshake means.

Kafka's stores come in three formats, told apart by their first bytes: PEM, PKCS12 (which needs the package
`cryptography`) and JKS, which only Java reads. PEM may also be given inline, in one line if need be, as in a
`.properties` file.
"""

import contextlib
import re
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ottla.client.config_security import SecurityConfig
from ottla.client.errors import AuthenticationFailed, BrokerUnavailable, ConfigError, OttlaError
from ottla.client.security.pkcs12 import pem_of_pkcs12

_PEM_BEGIN = b"-----BEGIN"
_JKS_MAGIC = b"\xfe\xed\xfe\xed"
_PKCS12_MAGIC = b"\x30"
_PEM_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_PEM_LINE = 64
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def tls_context(config: SecurityConfig) -> ssl.SSLContext:
    """What the `ssl.` settings ask for, or ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _set_versions(context, config)
    if config.ssl_cipher_suites:
        try:
            context.set_ciphers(":".join(config.ssl_cipher_suites))
        except ssl.SSLError as error:
            raise ConfigError(
                f"ssl.cipher.suites has none that OpenSSL knows ({error}): use its names, such as "
                "ECDHE-RSA-AES128-GCM-SHA256"
            ) from error
    context.check_hostname = config.ssl_endpoint_identification_algorithm == "https"
    context.verify_mode = ssl.CERT_REQUIRED
    _trust(context, config)
    _identify(context, config)
    return context


def _set_versions(context: ssl.SSLContext, config: SecurityConfig) -> None:
    enabled = [_VERSIONS[name] for name in config.ssl_enabled_protocols if name in _VERSIONS]
    if not enabled:
        raise ConfigError("ssl.enabled.protocols has none of TLSv1.2 and TLSv1.3, the versions that can be spoken")
    context.minimum_version = min(enabled)
    context.maximum_version = min(max(enabled), _VERSIONS.get(config.ssl_protocol, ssl.TLSVersion.TLSv1_3))
    if context.maximum_version < context.minimum_version:
        raise ConfigError("ssl.protocol is older than all of ssl.enabled.protocols: they must have one in common")


# Whom to trust


def web_context(config: SecurityConfig) -> ssl.SSLContext:
    """For HTTPS, where tokens come from: the authorities of the `ssl.` settings beside those that the system trusts."""
    context = ssl.create_default_context()
    if config.ssl_truststore_certificates or config.ssl_truststore_location or config.ssl_ca_location:
        _trust(context, config)
    return context


def _trust(context: ssl.SSLContext, config: SecurityConfig) -> None:
    if config.ssl_truststore_certificates is not None:
        _load_authorities(context, _unfolded(config.ssl_truststore_certificates), "ssl.truststore.certificates")
    elif config.ssl_truststore_location is not None:
        name = "ssl.truststore.location"
        pem = _pem_of(config.ssl_truststore_location, config.ssl_truststore_password, name, wants_key=False)
        _load_authorities(context, pem, name)
    elif config.ssl_ca_location is not None:
        path = Path(config.ssl_ca_location)
        try:
            context.load_verify_locations(**{"capath" if path.is_dir() else "cafile": str(path)})
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"ssl.ca.location={path} cannot be used: {error.strerror or error}") from error
    else:
        context.load_default_certs()


def _load_authorities(context: ssl.SSLContext, pem: str, name: str) -> None:
    try:
        context.load_verify_locations(cadata=pem)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"{name} has no certificates in PEM: {error}") from error


# How to prove who one is


def _identify(context: ssl.SSLContext, config: SecurityConfig) -> None:
    password = config.ssl_key_password
    if config.ssl_keystore_key is not None or config.ssl_keystore_certificate_chain is not None:
        if config.ssl_keystore_key is None or config.ssl_keystore_certificate_chain is None:
            raise ConfigError("ssl.keystore.key and ssl.keystore.certificate.chain go together: set both")
        pem = f"{_unfolded(config.ssl_keystore_key)}\n{_unfolded(config.ssl_keystore_certificate_chain)}"
        _load_identity(context, pem, password, "ssl.keystore.key")
    elif config.ssl_keystore_location is not None:
        name = "ssl.keystore.location"
        pem = _pem_of(config.ssl_keystore_location, config.ssl_keystore_password, name, wants_key=True)
        _load_identity(context, pem, password, name)
    elif config.ssl_certificate_location is not None:
        name = "ssl.certificate.location"
        pem = _read(config.ssl_certificate_location, name).decode(errors="replace")
        if config.ssl_key_location is not None:
            pem += "\n" + _read(config.ssl_key_location, "ssl.key.location").decode(errors="replace")
        _load_identity(context, pem, password, name)
    elif config.ssl_key_location is not None:
        raise ConfigError("ssl.key.location needs ssl.certificate.location: a key alone proves nothing")


def _load_identity(context: ssl.SSLContext, pem: str, password: str | None, name: str) -> None:
    def tell() -> str:
        # OpenSSL would ask at the terminal where no password is given.
        return password or ""

    with _in_file(pem) as path:
        try:
            context.load_cert_chain(path, password=tell)
        except (OSError, ValueError) as error:
            raise ConfigError(f"{name} cannot be used: {_why_no_identity(pem, password, error)}") from error


def _why_no_identity(pem: str, password: str | None, error: OSError | ValueError) -> str:
    if "PRIVATE KEY" not in pem:
        return "there is no private key in it"
    if "CERTIFICATE" not in pem:
        return "there is no certificate in it"
    if "ENCRYPTED" in pem:
        return "the private key is encrypted: set ssl.key.password" if not password else "ssl.key.password is not right"
    return str(error)


@contextlib.contextmanager
def _in_file(pem: str) -> Iterator[Path]:
    """OpenSSL reads keys from files alone: one that only this user can read, and only now."""
    with tempfile.TemporaryDirectory(prefix="ottla-tls-") as directory:
        path = Path(directory) / "identity.pem"
        path.touch(mode=0o600)
        path.write_text(pem)
        yield path


# Stores


def _pem_of(location: str, password: str | None, name: str, *, wants_key: bool) -> str:
    content = _read(location, name)
    if _PEM_BEGIN in content:
        return _unfolded(content.decode(errors="replace"))
    if content.startswith(_JKS_MAGIC):
        raise ConfigError(
            f"{name}={location} is a Java key store, which only Java reads: convert it with `keytool -importkeystore "
            f"-srckeystore {location} -destkeystore store.p12 -deststoretype PKCS12`, then `openssl pkcs12 -in "
            f"store.p12 -out store.pem -nodes`, and use store.pem"
        )
    if content.startswith(_PKCS12_MAGIC):
        return pem_of_pkcs12(content, password, name, wants_key=wants_key)
    raise ConfigError(f"{name}={location} is neither PEM nor PKCS12: use a PEM file")


def _read(location: str, name: str) -> bytes:
    try:
        return Path(location).read_bytes()
    except OSError as error:
        raise ConfigError(f"{name}={location} cannot be read: {error.strerror}") from error


def _unfolded(pem: str) -> str:
    """PEM with the line breaks that OpenSSL wants; Kafka takes it in one line too."""

    def block(match: re.Match[str]) -> str:
        label, content = match.group(1), match.group(2)
        if ":" in content:
            return match.group()
        text = "".join(content.split())
        lines = [text[start : start + _PEM_LINE] for start in range(0, len(text), _PEM_LINE)]
        return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----"])

    return "\n".join(block(match) for match in _PEM_BLOCK.finditer(pem)) + "\n"


# What went wrong

_HOST_NAME_MISMATCH = (62, 64)
_EXPIRED = 10
_NOT_YET_VALID = 9
_UNKNOWN_AUTHORITY = (2, 18, 19, 20, 21, 27)
_CERTIFICATE_ALERTS = ("CERTIFICATE", "UNKNOWN_CA", "HANDSHAKE_FAILURE", "ACCESS_DENIED", "DECRYPT_ERROR")
_NOT_TLS = (
    "WRONG_VERSION_NUMBER",
    "UNKNOWN_PROTOCOL",
    "HTTP_REQUEST",
    "PACKET_LENGTH_TOO_LONG",
    "RECORD_LAYER_FAILURE",
)
_NO_COMMON_VERSION = ("UNSUPPORTED_PROTOCOL", "PROTOCOL_VERSION", "NO_PROTOCOLS_AVAILABLE", "NO_CIPHERS_AVAILABLE")


def tls_failure(error: ssl.SSLError, name: str) -> OttlaError:
    """What a failed handshake, or a refusal that came after it, means for the user."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return AuthenticationFailed(f"the certificate of {name} was refused: {_why_refused(error, name)}")
    reason = error.reason or str(error)
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError) or "UNEXPECTED_EOF" in reason:
        return BrokerUnavailable(
            f"{name} closed the connection during TLS: is that port one with TLS, and does it want a client "
            "certificate (ssl.keystore.location)?"
        )
    if any(word in reason for word in _NOT_TLS):
        return AuthenticationFailed(
            f"{name} does not speak TLS on that port ({reason}): use another port, or security.protocol without SSL"
        )
    if any(word in reason for word in _NO_COMMON_VERSION):
        return AuthenticationFailed(f"{name} speaks no version of TLS that ssl.enabled.protocols allows ({reason})")
    if any(word in reason for word in _CERTIFICATE_ALERTS):
        return AuthenticationFailed(
            f"{name} refused the client's certificate, or there is none ({reason}): set ssl.keystore.location, or "
            "ssl.certificate.location and ssl.key.location, to one that the broker trusts"
        )
    return AuthenticationFailed(f"TLS with {name} failed: {reason}")


def _why_refused(error: ssl.SSLCertVerificationError, name: str) -> str:
    code = error.verify_code
    if code in _HOST_NAME_MISMATCH:
        return (
            f"it is not for {name.rpartition(':')[0]}. Connect by a name that is in it, or turn the check off with "
            'ssl.endpoint.identification.algorithm=""'
        )
    if code == _EXPIRED:
        return "it has expired, or one it depends on. Renew it"
    if code == _NOT_YET_VALID:
        return "it is not valid yet. Look at the clocks of both sides"
    if code in _UNKNOWN_AUTHORITY:
        return (
            f"nobody who signed it is trusted ({error.verify_message}). Set ssl.truststore.location or ssl.ca.location "
            "to the certificate of the authority"
        )
    return error.verify_message
