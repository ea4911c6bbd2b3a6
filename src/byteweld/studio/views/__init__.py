"""The handlers of the page's requests; each takes the session and the fields of a request.

Each view is a module here and a module of the same name in `page/`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from byteweld.studio import opening
from byteweld.studio.request import Request
from byteweld.studio.session import Session
from byteweld.studio.views import bytes as bytes_view
from byteweld.studio.views import compare, how, tokens, training, vocabulary, why

Handler = Callable[[Session, Request], dict[str, Any]]

VIEWS = ("how", "tokens", "why", "training", "bytes", "vocabulary", "compare")

HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        "start": opening.start,
        "open": opening.open_named,
        "companion": opening.companion,
        "how": how.answer,
        "match": how.match,
        "tokens": tokens.answer,
        "pretokens": why.pretokens,
        "why": why.answer,
        "training": training.answer,
        "log": training.log,
        "bytes": bytes_view.answer,
        "vocabulary": vocabulary.answer,
        "token": vocabulary.token_page,
        "compare": compare.answer,
        "languages": compare.languages,
    }
)
