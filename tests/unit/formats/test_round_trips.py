"""Whatever a format of merges can hold loads equal, and saves to the same bytes."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byteweld import formats, patterns
from byteweld.vocab import ASCII_BYTES, Vocabulary
from tests.helpers.strategies import examples

ALL_BYTES = bytes(range(256))


@st.composite
def vocabularies(draw: st.DrawFn, format: str) -> Vocabulary:
    """Draw merges after the bytes, and the special tokens where the format has them."""
    alphabet, first, roles, reserved = ALL_BYTES, 0, {}, []
    if format == "ck":
        alphabet = draw(st.sampled_from([ALL_BYTES, ASCII_BYTES]))
        roles = {"unk": 0, "bos": 1, "eos": 2, "pad": 3}
        letters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
        names = st.text(letters, min_size=1).filter(lambda text: not text.startswith("<|"))
        reserved = draw(st.lists(names, max_size=3, unique=True))
        first = len(roles) + len(reserved)
    elif format == "bpe1":
        order = draw(st.permutations(range(4)))
        roles = {role: 256 + n for role, n in zip(("bos", "eos", "pad", "unk"), order, strict=True)}
    specials = {f"<|{role}|>": token_id for role, token_id in roles.items()}
    specials |= {text: 4 + number for number, text in enumerate(reserved)}
    tokens = {first + number: bytes([byte]) for number, byte in enumerate(alphabet)}
    merges = []
    for _ in range(draw(st.integers(0, 12))):
        left, right = (draw(st.sampled_from(sorted(tokens))) for _ in range(2))
        if tokens[left] + tokens[right] not in tokens.values():
            new = len(tokens) + len(specials)
            tokens[new] = tokens[left] + tokens[right]
            merges.append((left, right, new))
    if format == "bpe1":
        merges = draw(st.permutations(merges))  # a merge list need not be in order of id
        merges = merges[draw(st.integers(0, len(merges))) :]  # nor make every token
    elif format == "bpetite":
        specials = {"<|endoftext|>": len(tokens)}
    pattern = {"bpetite": patterns.GPT2, "ck": patterns.CK_RUNTIME}.get(format)
    if format == "bpe1":
        pattern = draw(st.sampled_from([None, patterns.GPT2]))  # versions 1 and 2
    is_ascii = alphabet == ASCII_BYTES
    return Vocabulary(
        tokens | {token_id: text.encode() for text, token_id in specials.items()},
        merges,
        special_tokens=specials,
        roles=roles,
        pattern=None if is_ascii else pattern,
        alphabet="ascii" if is_ascii else "bytes",
    )


@pytest.mark.parametrize("format", ["bpe1", "ck", "bpetite", "gpt2"])
@examples(60)
@given(st.data())
def test_a_saved_vocabulary_loads_equal_and_saves_to_the_same_bytes(
    format: str, data: st.DataObject
) -> None:
    vocab = data.draw(vocabularies(format))
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder, "1"), Path(folder, "2")
        formats.save(vocab, first, format=format)
        loaded = formats.load(first, format=format)
        formats.save(loaded, second, format=format)
        assert loaded == vocab
        for file in formats.files(vocab, first, format):
            again = second / file.name if first.is_dir() else second
            assert file.read_bytes() == again.read_bytes()
