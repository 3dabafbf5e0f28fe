"""What is written is there after a power cut, too: first the bytes of a file, then the folders that lead to it."""

import os
import uuid
from collections.abc import Iterable
from pathlib import Path


def sync(path: Path) -> None:
    """Have a file's bytes, or a folder's names, on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def sync_below(root: Path, names: Iterable[str]) -> None:
    """Files by their paths under `root`, and then every folder from theirs up to it, each once."""
    files = [Path(name) for name in names]
    for file in files:
        sync(root / file)
    for folder in sorted({folder for file in files for folder in file.parents}, reverse=True):
        sync(root / folder)


def create_whole(path: Path, text: str) -> bool:
    """The whole file under its name, on the disk, or False where somebody was faster."""
    draft = path.with_name(f".{uuid.uuid4().hex}.draft")
    with draft.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    sync(path.parent)
    return True
