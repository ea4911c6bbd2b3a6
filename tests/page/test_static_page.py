"""The static page in a real browser, from its file and offline: its ids are byteweld's.

Needs playwright, a Chromium, and a Rust compiler for WebAssembly (scripts/make_page.py).
"""

from __future__ import annotations

import gzip
import json
import os
import random
import re
from pathlib import Path
from typing import Any

import pytest

import byteweld
from byteweld import ByteweldError, formats
from byteweld._text import utf8
from byteweld.formats._hf_pipeline import _BEHAVIOR_NAMES, _FORM_NAMES
from byteweld.studio.request import Request
from byteweld.studio.session import Session
from byteweld.studio.views import vocabulary
from byteweld.vocab import AddedToken
from tests.helpers.browser import (
    HOSTILE,
    check_accessibility,
    check_paper,
    check_width,
    drop,
    expect,
    type_long,
)
from tests.helpers.vocabularies import BYTES, GOLDEN_FILES, golden, snippets

pytestmark = pytest.mark.browser

SPECIAL = "<|endoftext|>"
HARD = f"{HOSTILE} {SPECIAL} naïve 小船 🙂 ' 's 'LL 1234567 \r\n\t  \u00a0\u2028 e\u0301"

# Rank files that are recognized; with a sidecar; tokenizer.json files.
KNOWN = ["r50k_base", "p50k_base", "cl100k_base", "o200k_base", "llama3", "qwen", "qwen3_6"]
WITH_SIDECAR = ["p50k_edit", "o200k_harmony", "llama4", "kimi_k2"]
REFUSED = {
    "hf/clip_base.tokenizer.json.gz": "end_of_word_suffix",
    "hf/v_split_behaviors.tokenizer.json.gz": "which this page does not know",
    "tiktoken/whisper_multilingual.tiktoken.gz": "a token is empty",
    "tekken/tekken_240718.json.gz": "expected a tokenizer.json",
}


def choose(page: Any, *files: Path) -> None:
    """Choose files, in the welcome or in the dialog."""
    if page.locator("#tokenizer").count():
        page.click("#tokenizer")
    page.set_input_files("#vocabulary-file", list(files))


def opened(page: Any, *files: Path) -> None:
    """Choose files that can be opened."""
    choose(page, *files)
    expect(page.locator("#tokenizer")).to_contain_text(files[0].name)


def refusal(page: Any, *files: Path) -> str:
    """Choose files that cannot be opened, and return the message."""
    choose(page, *files)
    message = page.locator("#error, #choose-error:not([hidden])")
    expect(message).to_contain_text(files[0].name)
    text = message.inner_text()
    if page.locator("#choose[open]").count():
        page.keyboard.press("Escape")
    return text


def encode_all(page: Any, texts: list[str], *, special: bool) -> list[list[int]]:
    found: list[str] = page.evaluate(
        """async ([texts, special]) => {
          const found = []; // as strings: playwright is slow with many numbers
          for (const text of texts) {
            const special_text = special ? "special" : "text";
            found.push((await byteweld.encode(text, { special_text })).ids.join(" "));
          }
          return found;
        }""",
        [texts, special],
    )
    return [[int(number) for number in ids.split()] for ids in found]


# ---------------------------------------------------------------------------- golden ids


@pytest.fixture(scope="module")
def texts(shared):
    return snippets(shared)


def unpacked(shared: Path, name: str, folder: Path) -> Path:
    path = folder / name.removesuffix(".gz").rpartition("/")[2]
    path.write_bytes(gzip.decompress((shared / "vocabs" / name).read_bytes()))
    return path


def check_golden(page: Any, texts: dict[str, str], answers: dict[str, Any], kind: str) -> None:
    # tiktoken's `ids` are without special tokens, Hugging Face's with them.
    plain, special = ("ids", "ids_special") if kind == "tiktoken" else ("ids_plain", "ids")
    for key, is_special in ((plain, False), (special, True)):
        found = encode_all(page, list(texts.values()), special=is_special)
        expected = [answers[name].get(key, answers[name]["ids"]) for name in texts]
        wrong = [n for n, a, b in zip(texts, found, expected, strict=True) if a != b]
        assert wrong == []


@pytest.mark.parametrize("name", KNOWN)
def test_known_rank_files_give_the_golden_ids(open_page, shared, texts, name: str):
    page = open_page()
    opened(page, shared / "vocabs" / "tiktoken" / f"{name}.tiktoken.gz")
    check_golden(page, texts, golden(shared, name), "tiktoken")


@pytest.mark.parametrize("name", WITH_SIDECAR)
def test_rank_files_with_a_sidecar_give_the_golden_ids(
    open_page, shared, texts, name: str, tmp_path: Path
):
    index = json.loads((shared / "vocabs" / "index.json").read_bytes())
    [entry] = [e for e in index["vocabs"] if (e["kind"], e["name"]) == ("tiktoken", name)]
    ranks = unpacked(shared, entry["file"], tmp_path)
    vocab = formats.load(ranks, pattern=entry["pat_str"], special_tokens=entry["special_tokens"])
    formats.save(vocab, tmp_path / "saved.tiktoken")
    page = open_page()
    opened(page, tmp_path / "saved.tiktoken", tmp_path / "saved.tiktoken.byteweld.json")
    check_golden(page, texts, golden(shared, name), "tiktoken")


@pytest.mark.parametrize("name", GOLDEN_FILES)
def test_tokenizer_json_files_give_the_golden_ids(open_page, shared, texts, name: str):
    page = open_page()
    opened(page, shared / "vocabs" / "hf" / f"{name}.tokenizer.json.gz")
    check_golden(page, texts, golden(shared, f"hf_{name}"), "hf")


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_page_cannot_encode_exactly_is_refused(open_page, shared, name: str):
    assert REFUSED[name] in refusal(open_page(), shared / "vocabs" / name)


# ---------------------------------------------------------------------------- a small vocabulary


def test_ids_and_lengths_are_those_of_byteweld(page, trained, nasty_texts):
    texts = [HARD, "", *(text for text in nasty_texts if len(utf8(text)) <= 1 << 20)]
    for special in (True, False):
        options: dict[str, Any] = {"allowed_special": "all"} if special else {}
        expected = [trained.encode(t, disallowed_special=(), **options) for t in texts]
        assert encode_all(page, texts, special=special) == expected
    found = page.evaluate("async (text) => (await byteweld.encode(text)).lengths", HARD)
    _, offsets = trained.encode_with_offsets(HARD.encode(), allowed_special="all")
    assert found == [end - start for start, end in offsets]


@pytest.mark.parametrize("suffix", [".json", ".tiktoken"])
def test_the_details_of_every_token_are_those_of_the_studio(
    open_page, trained, tmp_path: Path, suffix: str
):
    path = tmp_path / f"vocabulary{suffix}"
    trained.save(path)
    page = open_page()
    sidecar = [path.with_name(path.name + ".byteweld.json")] if suffix == ".tiktoken" else []
    opened(page, path, *sidecar)
    # Without its training report: the page does not have the counts of merges.
    session = Session([("small", byteweld.Tokenizer(formats.load(path)))])
    ids = list(trained.vocab.tokens)
    found = page.evaluate("async (ids) => Promise.all(ids.map(byteweld.token))", ids)
    for token_id, details in zip(ids, found, strict=True):
        expected = vocabulary.token_page(session, Request({"tokenizer": 0, "id": token_id}))
        assert details == json.loads(json.dumps(expected)), token_id


def test_the_details_of_tokens_that_are_ranked_by_id(open_page, tmp_path: Path):
    tokens = BYTES | {256: b"ab", 257: b"abc", 258: b"bc", 259: b"bcd", 260: b"xyz"}
    vocab = byteweld.Vocabulary(tokens, ranking="ranks")
    formats.save(vocab, tmp_path / "odd.tiktoken")
    page = open_page()
    opened(page, tmp_path / "odd.tiktoken", tmp_path / "odd.tiktoken.byteweld.json")
    session = Session([("odd", byteweld.Tokenizer(vocab))])
    for token_id in (97, *range(256, 261)):
        expected = vocabulary.token_page(session, Request({"tokenizer": 0, "id": token_id}))
        found = page.evaluate("(id) => byteweld.token(id)", token_id)
        assert found == json.loads(json.dumps(expected)), token_id
    tok = byteweld.Tokenizer(vocab)
    texts = ["abcd xyz", "bcabcd", "xyxyz"]
    assert encode_all(page, texts, special=True) == [tok.encode(text) for text in texts]


def pipelines() -> dict[str, dict[str, Any]]:
    """Parts of a tokenizer.json, each of which the page reads."""
    split = {"type": "Split", "pattern": {"String": "o.k"}, "behavior": "Isolated", "invert": False}
    level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}

    def steps(*parts: object) -> dict[str, Any]:
        return {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [*parts, level]}}

    found = {name: {"normalizer": {"type": name}} for name in _FORM_NAMES.values()}
    found |= {
        f"{name} {invert}": steps(split | {"behavior": name, "invert": invert})
        for name in _BEHAVIOR_NAMES.values()
        for invert in (False, True)
    }
    replace = {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": "_"}
    return found | {
        "replace": {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, replace]}},
        "prefix space": {"pre_tokenizer": level | {"add_prefix_space": True}},
        "whole": {"pre_tokenizer": level},
        "digits": steps({"type": "Digits", "individual_digits": True}),
        "digits together": steps({"type": "Digits", "individual_digits": False}),
        "punctuation": steps({"type": "Punctuation", "behavior": "Contiguous"}),
        "isolated punctuation": steps({"type": "Punctuation"}),
        "after letters": {"pre_tokenizer": steps(level)["pre_tokenizer"] | {"pretokenizers": [
            level, split
        ]}},
        # With ignore_merges, both refuse single_word.
        "ignore_merges": {"model": {"ignore_merges": True}},
        "normalized": {},
        "lowercase, normalized": {"normalizer": {"type": "Lowercase"}},
    }  # fmt: skip


@pytest.fixture(scope="module")
def written(trained, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A tokenizer.json with an added token that has flags."""
    vocab = trained.vocab
    traits = vocab.traits()
    text, new = "o.k.", max(vocab.tokens) + 1
    traits["added_tokens"] += (AddedToken(text, new, special=False, lstrip=True, single_word=True),)
    path = tmp_path_factory.mktemp("written") / "tokenizer.json"
    formats.save(
        byteweld.Vocabulary(vocab.tokens | {new: text.encode()}, vocab.merge_ids, **traits), path
    )
    return json.loads(path.read_bytes())


def test_every_part_of_a_pipeline_gives_the_ids_of_byteweld(open_page, written, tmp_path: Path):
    page = open_page()
    texts = [
        HARD,
        "o.k o.ko.k  O.K x o.k. y\u0301 ﬁ Ⅷ 12.34",
        " the lowest  ",
        "ＡＢＣ ok O.K. x",
        "",
    ]
    for number, (name, parts) in enumerate(pipelines().items()):
        path = tmp_path / f"{number}.json"
        model = written["model"] | parts.get("model", {})
        added = written["added_tokens"]
        for token in added:
            token["single_word"] = not (model["ignore_merges"] or token["special"])
            token["normalized"] = "normalized" in name
        path.write_text(json.dumps(written | parts | {"model": model, "added_tokens": added}))
        tok = byteweld.load(path)
        opened(page, path)
        for special in (True, False):
            options: dict[str, Any] = {"allowed_special": "all"} if special else {}
            expected = [tok.encode(t, disallowed_special=(), **options) for t in texts]
            assert encode_all(page, texts, special=special) == expected, name


# ---------------------------------------------------------------------------- using the page


def test_text_is_shown_as_tokens_with_ids_and_counts(page, trained):
    text = HARD.replace("\r", "")  # an editor has no \r
    ids = trained.encode(text, allowed_special="all")
    page.fill("#text", text)
    expect(page.locator("#count")).to_have_text(str(len(ids)))
    assert page.evaluate("() => window.hit") is None
    assert page.locator("main script, main img").count() == 0
    shown = page.locator("#tokens").inner_text()
    assert "<script>" in shown and "\u202e" not in shown and "\x00" not in shown
    expect(page.locator("#tokens .special")).to_have_text(SPECIAL)
    page.click("text=With ids")
    for index in (0, len(ids) - 1):
        expect(page.locator(f"#t{index} small")).to_have_text(str(ids[index]))


def test_a_rank_file_that_is_not_known_asks_for_its_pattern(open_page, trained, tmp_path: Path):
    path = tmp_path / "own.tiktoken"
    trained.save(path)
    page = open_page()
    choose(page, path)
    page.select_option("#pattern", "o200k")
    page.click("#use-pattern")
    expect(page.locator("#tokenizer")).to_contain_text("pattern o200k")
    assert encode_all(page, [HARD], special=True) == [trained.encode_ordinary(HARD)]
    choose(page, path)
    page.fill("#regex", "(")
    page.click("#use-pattern")
    expect(page.locator("#choose-error")).to_contain_text("own.tiktoken")
    page.fill("#regex", r"[a-z]+|[^a-z]")
    page.click("#use-pattern")
    expect(page.locator("#tokenizer")).to_contain_text("pattern [a-z]+|[^a-z]")
    known = formats.load(path, pattern=r"[a-z]+|[^a-z]", special_tokens={})
    expected = byteweld.Tokenizer(known).encode(HARD)
    assert encode_all(page, [HARD], special=True) == [expected]
    page.reload()
    choose(page, tmp_path / "own.tiktoken.byteweld.json")
    expect(page.locator("#error")).to_contain_text("is not a vocabulary")


def test_vocabularies_and_text_are_dropped_anywhere(open_page, trained, tmp_path: Path):
    trained.save(tmp_path / "a.json")
    trained.cut(300).save(tmp_path / "b.json")
    page = open_page()
    drop(page, "<img src=x onerror=window.hit=1>.json", (tmp_path / "a.json").read_bytes())
    expect(page.locator("#tokenizer")).to_contain_text("<img src=x onerror=window.hit=1>.json")
    drop(page, "notes.txt", "the newest é".encode())
    expect(page.locator("#text")).to_have_value("the newest é")
    expect(page.locator("#count")).to_have_text(str(trained.count("the newest é")))
    drop(page, "b.json", (tmp_path / "b.json").read_bytes())
    expect(page.locator("#tokenizer")).to_contain_text("300 tokens")
    expect(page.locator("#text")).to_have_value("the newest é")
    drop(page, "a.bin", b"\xff\xfe\x00")
    expect(page.locator("#error")).to_contain_text("a.bin: is neither a vocabulary nor UTF-8 text")
    assert page.evaluate("() => window.hit") is None


def test_a_megabyte_is_encoded_and_more_is_refused(page, trained):
    text = ("the lowest tokenizer in the town 1234\n" * 40_000)[: 1 << 20]
    type_long(page, text)
    expect(page.locator("#count")).to_have_text(f"{trained.count(text):,}")
    assert 0 < page.locator("#tokens .t").count() < 10_000
    for longer in ("x" * (1 + (1 << 20)), "é" * (1 + (1 << 19))):
        type_long(page, longer)
        expect(page.locator("#error")).to_contain_text("use a part of it")
    page.fill("#text", "low")
    expect(page.locator("#error")).to_have_count(0)


# ---------------------------------------------------------------------------- hostile files


def test_hostile_files_show_a_message_and_the_page_goes_on(page, trained, tmp_path: Path):
    whole = json.loads((tmp_path / "small.json").read_bytes())
    ranks = "".join(f"{line}\n" for line in ("IQ== 0", "Ig== 1", "Iw== 4294967294"))
    deep = '{"normalizer": ' + '{"type": "Sequence", "normalizers": [' * 100_000
    bomb = gzip.compress(b"{" + b" " * (65 << 20))
    vocab = whole["model"]["vocab"]
    models = {
        "far": whole["model"] | {"vocab": vocab | {"far": 4294967294}},
        "twice": whole["model"] | {"vocab": vocab | {"again": 0}},
        "merges": whole["model"] | {"merges": [["a", "b"]] * 100_000},
    }
    files = {
        "empty": b"",
        "zeros": bytes(1 << 20),
        "binary": random.Random(1).randbytes(1 << 20),
        "ranks": ranks.encode(),
        "deep": deep.encode(),
        "brackets": b'{"model": ' + b"[" * (8 << 20),
        "bomb.gz": bomb,
        "cut.gz": gzip.compress(json.dumps(whole).encode())[:-20],
        "large": b"x" * ((64 << 20) + 1),
        "markup": b"<script>window.hit=1</script>",
    } | {name: json.dumps(whole | {"model": m}).encode() for name, m in models.items()}
    expected = trained.encode(HARD, allowed_special="all")
    for name, content in files.items():
        path = tmp_path / name
        path.write_bytes(content)
        message = refusal(page, path)
        assert re.search(rf"^{re.escape(name)}: \w", message), name
        assert ("more than 64 MB" in message) == (name in ("bomb.gz", "large"))
        assert encode_all(page, [HARD], special=True) == [expected], name
    assert page.evaluate("() => window.hit") is None


@pytest.mark.parametrize("suffix", ["json", "tiktoken"])
def test_damaged_files_are_refused_or_give_the_ids_of_byteweld(
    page, trained, tmp_path: Path, suffix: str
):
    path = tmp_path / f"good.{suffix}"
    trained.save(path)
    content = path.read_bytes()
    draw = random.Random(7)
    damaged = [content[: draw.randrange(len(content))] for _ in range(15)]
    for _ in range(45):
        changed = bytearray(content)
        for _ in range(draw.randrange(1, 4)):
            changed[draw.randrange(len(changed))] = draw.choice(b'0129aZ{}[]",:= \n\\\xff')
        damaged.append(bytes(changed))
    opened_files = 0
    for number, data in enumerate(damaged):
        bad = tmp_path / f"damaged{number}.{suffix}"
        bad.write_bytes(data)
        choose(page, bad)
        page.wait_for_selector(
            f"#tokenizer:has-text('{bad.name}'), #choose-error:has-text('{bad.name}'), #use-pattern"
        )
        if page.locator("#use-pattern").count():
            page.select_option("#pattern", "gpt2")
            page.click("#use-pattern")
            page.wait_for_selector(
                f"#tokenizer:has-text('{bad.name}'), #choose-error:has-text('{bad.name}')"
            )
        if page.locator("#choose[open]").count():
            page.keyboard.press("Escape")
            continue
        opened_files += 1
        options = {"pattern": "gpt2", "special_tokens": {}} if suffix == "tiktoken" else {}
        try:
            tok = byteweld.Tokenizer(formats.load(bad, **options))
        except ByteweldError:
            continue  # the page does not read templates and decoders
        expected = tok.encode(HARD, allowed_special="all")
        assert encode_all(page, [HARD], special=True) == [expected], bad.name
    assert opened_files > 0
    opened(page, path.with_name("small.json"))


def test_a_worker_that_fails_is_replaced(page, trained):
    expected = [trained.encode(HARD, allowed_special="all")]
    assert encode_all(page, [HARD], special=True) == expected
    [worker] = page.workers
    worker.evaluate("() => { engine.memory.grow = 0; engine = null; }")
    page.fill("#text", "low")
    expect(page.locator("#error")).to_contain_text("the engine failed")
    assert encode_all(page, [HARD], special=True) == expected
    assert page.workers != [worker]


def test_work_without_end_is_stopped(open_page, trained, tmp_path: Path):
    trained.save(tmp_path / "small.json")
    page = open_page()
    page.clock.install()
    page.reload()
    opened(page, tmp_path / "small.json")
    page.clock.run_for(1000)
    [worker] = page.workers
    worker.evaluate("() => { engine = { input() { for (;;); } }; }")
    page.fill("#text", "low")
    page.clock.run_for(1000)
    page.clock.fast_forward(61_000)
    expect(page.locator("#error")).to_contain_text("stopped after 60 seconds")
    page.fill("#text", "lower")
    page.clock.run_for(1000)
    expect(page.locator("#count")).to_have_text(str(trained.count("lower")))


# ---------------------------------------------------------------------------- the page itself


def test_the_policy_forbids_connections(open_page):
    page = open_page(watched=False)  # the browser logs what a policy refuses
    refused = page.evaluate(
        """async () => {
          const refused = [];
          addEventListener("securitypolicyviolation",
            (event) => refused.push(event.violatedDirective));
          await fetch("https://example.com/").catch(() => {});
          const image = new Image();
          image.src = "https://example.com/a.png";
          const script = document.createElement("script");
          script.textContent = "window.hit = 1";
          document.body.append(script);
          await new Promise((done) => setTimeout(done, 200));
          return refused;
        }"""
    )
    assert sorted(refused) == ["connect-src", "img-src", "script-src-elem"]
    assert page.evaluate("() => window.hit") is None


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_the_page_fits_its_screen(open_page, trained, scheme: str, width: int, tmp_path: Path):
    folder = Path(os.environ.get("BYTEWELD_SCREENSHOTS") or tmp_path)  # to look at
    trained.save(tmp_path / "a vocabulary with quite a long name.json")
    page = open_page(
        viewport={"width": width, "height": 844 if width < 500 else 900},
        color_scheme=scheme,
        reduced_motion="reduce",
    )

    def check(name: str) -> None:
        check_width(page, width, name)
        check_paper(page, scheme)
        page.screenshot(path=folder / f"page-{name}-{scheme}-{width}.png")

    check("welcome")
    opened(page, tmp_path / "a vocabulary with quite a long name.json")
    page.wait_for_selector("#tokens .t")
    check("tokens")
    page.click("#t3")
    page.wait_for_selector("#panel .tree-box svg, #panel .byte-row")
    check("details")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_accessibility_checker_finds_nothing(open_page, trained, theme: str, tmp_path: Path):
    page = open_page(color_scheme=theme, reduced_motion="reduce")

    check_accessibility(page)
    trained.save(tmp_path / "small.tiktoken")
    choose(page, tmp_path / "small.tiktoken")
    page.wait_for_selector("#use-pattern")
    check_accessibility(page)
    page.click("#use-pattern")
    page.wait_for_selector("#tokens .t")
    page.click("#t2")
    page.wait_for_selector("#panel h2")
    check_accessibility(page)
