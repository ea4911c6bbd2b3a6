"""Opening tokenizers from the page: by content, never by path; the companion; saved pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import byteweld
from byteweld.studio.opening import companion, open_file
from byteweld.studio.request import Refused, Request
from byteweld.studio.session import MAX_OPEN, Session


@pytest.fixture
def content(trained: byteweld.Tokenizer, tmp_path: Path) -> bytes:
    """The small tokenizer's file."""
    trained.save(tmp_path / "tokenizer.json")
    return (tmp_path / "tokenizer.json").read_bytes()


def test_a_file_is_opened_by_its_content(post, content: bytes, trained):
    response = post(
        "/api/upload", content, Content_Type="application/octet-stream", X_Name="mine.json"
    )
    assert response.status == 200
    opened = response.json["tokenizers"][response.json["index"]]
    assert opened["fingerprint"] == trained.vocab.fingerprint


def test_a_name_is_never_a_path(content: bytes, without_pattern, tmp_path: Path):
    session = Session([("ck", without_pattern)])
    before = set(tmp_path.rglob("*"))
    answer = open_file(session, content, "..%2F..%2Fetc%2Fpasswd")
    assert answer["tokenizers"][1]["name"] == "../../etc/passwd"  # only displayed
    assert set(tmp_path.rglob("*")) == before


def test_a_file_that_is_not_a_tokenizer_is_refused_without_naming_our_folder(post):
    response = post("/api/upload", b"<svg>", Content_Type="application/octet-stream", X_Name="x")
    assert response.status == 400
    assert "byteweld-studio-" not in response.json["error"]
    truncated = post("/api/upload", b'{"model": ', Content_Type="application/octet-stream")
    assert truncated.status == 400


def test_a_public_encoding_that_is_not_here_is_refused_with_the_command(ask, post, monkeypatch):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    monkeypatch.setattr("byteweld.encodings._loaded", {})  # by other tests
    started = ask("start")
    assert started["names"] == []
    assert {"name": "cl100k_base", "command": "byteweld fetch cl100k_base"} in started["missing"]
    for name in ("cl100k_base", "qwen3"):
        response = post("/api/open", {"name": name})
        assert response.status == 404
        assert f"run `byteweld fetch {name}`" in response.json["error"]
    assert post("/api/open", {"name": "/etc/passwd"}).status == 400


def test_the_number_of_open_tokenizers_is_limited(trained):
    session = Session([("small", trained)] * MAX_OPEN)
    other = byteweld.Tokenizer(byteweld.Vocabulary({b: bytes([b]) for b in range(256)}))
    with pytest.raises(Refused, match="16 tokenizers are open"):
        session.add(other, "bytes")
    assert session.add(trained, "again") == 0


def test_the_companion_of_a_training_is_the_training_cut_smaller(trained):
    session = Session([("small", trained)])
    second = companion(session, Request({}))["tokenizers"][1]
    size = second["tokens"]
    assert second["name"] == f"small at {size}"
    assert 257 < size < len(trained)
    assert second["fingerprint"] == trained.cut(size).vocab.fingerprint
    assert len(companion(session, Request({}))["tokenizers"]) == 2  # not a third


def test_without_a_training_the_companion_is_the_bytes_alone(content: bytes, tmp_path: Path):
    (tmp_path / "alone.json").write_bytes(content)
    session = Session([("alone", byteweld.load(tmp_path / "alone.json"))])
    second = companion(session, Request({}))["tokenizers"][1]
    assert (second["name"], second["tokens"]) == ("bytes", 256)


def test_a_saved_page_embeds_its_answers_safely(post):
    evil = "</script><script>alert(1)</script><!--"
    body = {"state": json.dumps({"text": evil}), "title": evil, "answers": {"q": {"text": evil}}}
    page = post("/api/page", body).body.decode()
    assert "alert(1)</script>" not in page
    assert page.count("<script") == 3  # the import map, the answers, the entry module
    assert "<title>&lt;/script&gt;" in page
    start = page.index('id="saved">') + len('id="saved">')
    held = json.loads(page[start : page.index("</script>", start)])
    assert held["answers"] == {"q": {"text": evil}}
    assert json.loads(held["state"]) == {"text": evil}
    assert "default-src 'none'" in page
    assert "connect-src" not in page
    assert "/page/" not in page


def test_a_page_with_a_megabyte_of_text_is_saved(post):
    state = json.dumps({"text": "\n" * (1 << 20)})
    response = post("/api/page", {"state": state, "answers": {}})
    assert response.status == 200
    assert len(response.body) > 2 << 20
