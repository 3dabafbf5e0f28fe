"""PKCS12 stores, turned into PEM by the package `cryptography`, where that is installed."""

from ottla.client.errors import ConfigError


def pem_of_pkcs12(content: bytes, password: str | None, name: str, *, wants_key: bool) -> str:
    """The certificates of a store, and its private key where that is wanted, unencrypted; or ConfigError."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError:
        raise ConfigError(
            f"{name} is PKCS12, which needs the package `cryptography`: install ottla[pkcs12], or convert the store "
            "with `openssl pkcs12 -in store.p12 -out store.pem -nodes`"
        ) from None
    try:
        store = load_pkcs12(content, None if password is None else password.encode())
    except ValueError as error:
        raise ConfigError(f"{name} cannot be opened: its password is not the one that was given ({error})") from error
    pieces: list[bytes] = []
    if wants_key:
        if store.key is None:
            raise ConfigError(f"{name} has no private key")
        pieces.append(
            store.key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
    certificates = [one.certificate for one in (store.cert, *store.additional_certs) if one]
    pieces += [certificate.public_bytes(serialization.Encoding.PEM) for certificate in certificates]
    return b"".join(pieces).decode()
