"""Save as page: one HTML file with the page's modules, its style sheet and the answers it needs.

Modules become data: URLs in an import map, and answers become JSON. The file's content security
policy forbids loading anything else.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Mapping
from typing import Any

from byteweld.studio.assets import ASSETS, index_html

_IMPORT = re.compile(r'(from|import) "\./([a-z_]+\.js)"')


def page(state: str, answers: Mapping[str, Any], title: str = "byteweld studio") -> str:
    """Return the file. `state` is the page's state as JSON; `answers` are keyed by request."""
    nonce = secrets.token_urlsafe(16)
    modules = {
        f"studio/{name}": _data_url(asset.content.decode())
        for name, asset in ASSETS.items()
        if name.endswith(".js")
    }
    policy = (
        f"default-src 'none'; script-src 'nonce-{nonce}' data:; style-src 'nonce-{nonce}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<style nonce="{nonce}">\n{ASSETS["style.css"].content.decode()}</style>\n'
        f'<script type="importmap" nonce="{nonce}">{_json({"imports": modules})}</script>\n'
        f'<script type="application/json" id="saved">'
        f"{_json({'state': state, 'answers': dict(answers)})}</script>\n"
        f'<script type="module" nonce="{nonce}">import "studio/app.js";</script>\n'
    )
    return index_html(head, title)


def _data_url(module: str) -> str:
    """Return a module as a data: URL; its imports go through the import map."""
    source = _IMPORT.sub(r'\1 "studio/\2"', module)
    return "data:text/javascript;base64," + base64.b64encode(source.encode()).decode()


def _json(value: object) -> str:
    """Return JSON that cannot end a script element or start a comment."""
    return json.dumps(value, ensure_ascii=True).replace("<", "\\u003c").replace(">", "\\u003e")
