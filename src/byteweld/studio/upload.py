"""A tokenizer's file that was given to the page: its bytes, in a folder that does not stay."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import byteweld
from byteweld.studio.request import Refused
from byteweld.studio.session import Session

MAX_FILE_BYTES = 64 << 20
_MAX_NAME = 80


def open_file(session: Session, content: bytes, given_name: str) -> dict[str, Any]:
    """Open a tokenizer from its file's content. The name is for people only: no path is made of
    it, but for its ending, which some formats are known by."""
    name = unquote(given_name)[:_MAX_NAME].strip() or "tokenizer"
    ending = ".tiktoken" if name.endswith(".tiktoken") else ".json"
    with tempfile.TemporaryDirectory(prefix="byteweld-studio-") as folder:
        path = Path(folder) / f"tokenizer{ending}"
        path.write_bytes(content)
        try:
            tok = byteweld.load(path)
        except (ValueError, TypeError, OSError) as error:
            message = str(error).replace(str(path), name).replace(folder, "")
            raise Refused(400, message) from None
    place = session.add(tok, name.removesuffix(".json"))
    return {"place": place, "tokenizers": [opened.summary() for opened in session.opened]}
