"""What each view asks: a name, and the function that answers. All take a session and a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from byteweld.studio.request import Asked
from byteweld.studio.session import Session
from byteweld.studio.views import (
    byte_values,
    comparison,
    opening,
    tokens,
    training,
    vocabulary,
    why,
)

Answer = Callable[[Session, Asked], dict[str, Any]]

ANSWERS: Mapping[str, Answer] = MappingProxyType(
    {
        "start": opening.start,
        "open": opening.open_named,
        "companion": opening.companion,
        "tokens": tokens.answer,
        "why": why.answer,
        "token": vocabulary.token_page,
        "vocabulary": vocabulary.answer,
        "training": training.answer,
        "log": training.log,
        "compare": comparison.answer,
        "languages": comparison.languages,
        "bytes": byte_values.answer,
    }
)
