"""The harness for special tokens runs clean, and finds holes that are put into `encode_spans`."""

from __future__ import annotations

import pytest

from byteweld import Tokenizer
from tests.harness import specials

encode_spans = Tokenizer.encode_spans


def joined(spans):
    return b"".join(specials._raw(text) for text, _ in spans)


def trusts_everything(tok, spans):
    return tok.encode(joined(spans), allowed_special="all")


def keeps_shared_ids(tok, spans):
    """What `encode_spans` did before it knew of shared ids."""
    if any(trusted for _, trusted in spans):
        return encode_spans(tok, spans)
    return tok.encode(joined(spans), disallowed_special=())


def joins_spans(tok, spans):
    return encode_spans(tok, [(joined(spans), any(trusted for _, trusted in spans))])


def drops_a_token(tok, spans):
    return encode_spans(tok, spans)[:-1]


def test_no_hole_is_found(capsys, tmp_path):
    assert specials.main(["--turns", "2", "--seed", "3", "--data", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "trained huggingface, shared ids" in out and " 0 findings" in out


@pytest.mark.parametrize("hole", [trusts_everything, keeps_shared_ids, joins_spans, drops_a_token])
def test_each_hole_is_found(hole, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(Tokenizer, "encode_spans", hole)
    assert specials.main(["--turns", "2", "--seed", "3", "--data", str(tmp_path)]) == 1
    assert "FINDING" in capsys.readouterr().out
