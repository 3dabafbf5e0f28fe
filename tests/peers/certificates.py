"""An authority and certificates for tests, made by `openssl` in a few milliseconds each."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.peers.paths import PeerMissing


@dataclass(frozen=True)
class Identity:
    """A private key (PKCS#8) and a certificate, each in a PEM file, and both in one."""

    key: Path
    certificate: Path
    both: Path


class Authority:
    """Signs certificates. `certificate` is what the others have to trust."""

    def __init__(self, directory: Path, name: str = "Ottla's tests") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._key = directory / "authority.key"
        self.certificate = directory / "authority.pem"
        self._made = 0
        _make_key(self._key)
        _openssl(
            *("req", "-x509", "-new", "-key", str(self._key), "-out", str(self.certificate), "-days", "30"),
            *("-subj", f"/CN={name}", "-addext", "keyUsage=critical,keyCertSign,cRLSign"),
        )

    def issue(
        self,
        name: str,
        alternatives: str = "DNS:localhost,IP:127.0.0.1",
        *,
        days: int = 30,
        password: str | None = None,
    ) -> Identity:
        """A certificate for `name`, good for those alternative names; with negative days it has expired."""
        self._made += 1
        base = self._directory / f"{self._made}-{name}"
        key, request, certificate = base.with_suffix(".key"), base.with_suffix(".csr"), base.with_suffix(".pem")
        extensions = base.with_suffix(".ext")
        _make_key(key)
        _openssl("req", "-new", "-key", str(key), "-out", str(request), "-subj", f"/CN={name}")
        extensions.write_text(f"subjectAltName={alternatives}\nextendedKeyUsage=serverAuth,clientAuth\n")
        _openssl(
            *("x509", "-req", "-in", str(request), "-CA", str(self.certificate), "-CAkey", str(self._key)),
            *("-CAcreateserial", "-out", str(certificate), "-days", str(days), "-extfile", str(extensions)),
        )
        if password is not None:
            _openssl(
                *("pkcs8", "-topk8", "-v2", "aes-256-cbc", "-in", str(key), "-out", f"{key}.encrypted"),
                *("-passout", f"pass:{password}"),
            )
            key = Path(f"{key}.encrypted")
        both = base.with_suffix(".both.pem")
        both.write_text(key.read_text() + certificate.read_text())
        return Identity(key, certificate, both)


def in_pkcs12(identity: Identity, password: str) -> Path:
    """Key and certificate in one store, as Java programs like to have them."""
    store = identity.certificate.with_suffix(".p12")
    _openssl(
        *("pkcs12", "-export", "-in", str(identity.certificate), "-inkey", str(identity.key), "-out", str(store)),
        *("-passout", f"pass:{password}"),
    )
    return store


def _make_key(path: Path) -> None:
    _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", str(path))


def _openssl(*arguments: str) -> None:
    tool = shutil.which("openssl")
    if tool is None:
        raise PeerMissing("`openssl` is not on the PATH: install it (Debian: openssl)")
    done = subprocess.run([tool, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"`openssl {' '.join(arguments)}` failed: {done.stderr}")
