"""`byteweld megatron`: `tokenize` with the options of Megatron-LM's tools/preprocess_data.py."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import NamedTuple

import byteweld
from byteweld._files import read_regular
from byteweld.cli import _corpus, _errors, _output, tokenize
from byteweld.cli import _options as options
from byteweld.corpus import OnError, ReadingOptions
from byteweld.dataset.options import Options
from byteweld.errors import UnsupportedError

EXAMPLES = """
byteweld megatron --input a.jsonl --output-prefix data/a --append-eod --tokenizer-model Qwen3/
byteweld megatron --input a.jsonl --output-prefix a --vocab-file v.json --merge-file m.txt
byteweld megatron --input a.jsonl --output-prefix a --json-keys text title --tokenizer-model gpt2
"""

_TYPES = ("HuggingFaceTokenizer", "GPT2BPETokenizer")
_EOT = "<|endoftext|>"
_MAX_VOCAB_BYTES = 1 << 30
# Options that take several values, as argparse's nargs="+" does.
_SEVERAL = (
    "--json-keys",
    "--workers-to-check",
    "--tiktoken-special-tokens",
    "--tokenizer-special-tokens",
    "--special-tokens",
)


def prepare(arguments: list[str]) -> list[str]:
    """Repeat the name of an option before each of its values: `--json-keys a b`."""
    prepared: list[str] = []
    several = ""
    values = 0
    for argument in arguments:
        if argument.startswith("-") or not several:
            several = argument if argument in _SEVERAL else ""
            values = 0
        else:
            if values:
                prepared.append(several)
            values += 1
        prepared.append(argument)
    return prepared


class TokenizerFlags(NamedTuple):
    """Megatron-LM's options for tokenizers that have a meaning here.

    Options:
        tokenizer_type (TYPE): HuggingFaceTokenizer, with --tokenizer-model, or GPT2BPETokenizer,
            with --vocab-file and --merge-file. Default: by these options.
        tokenizer_model (PATH): A tokenizer in any format: a file, a folder, or the name of a
            vocabulary (see `byteweld list`).
        vocab_file (FILE): GPT-2's vocab.json.
        merge_file (FILE): GPT-2's merges.txt.
        eot_token: The token that --append-eod appends. Default: the tokenizer's eos, else
            <|endoftext|>.
        tokenizer_hf_include_special_tokens: Start each document with the tokenizer's bos, if its
            template does.
        tokenizer_hf_no_include_special_tokens: Add nothing that the tokenizer's template adds (the
            default).
    """

    tokenizer_type: str | None = None
    tokenizer_model: str | None = None
    vocab_file: str | None = None
    merge_file: str | None = None
    eot_token: str | None = None
    tokenizer_hf_include_special_tokens: bool = False
    tokenizer_hf_no_include_special_tokens: bool = False


class Others(NamedTuple):
    """Options that change nothing here, or that are refused.

    Accepted without effect:
        partitions: The order of documents is kept, and one run uses all threads.
        keep_sequential_samples: The order of documents is always kept.
        log_interval (N): Progress is shown all the time.

    Hidden:
        special_tokens (--tokenizer-special-tokens --tiktoken-special-tokens --special-tokens): no
    """

    partitions: options.Positive | None = None
    keep_sequential_samples: bool = False
    log_interval: str | None = None
    lang: str | None = None
    keep_newlines: bool = False
    workers_to_check: list[str] | None = None
    max_documents: str | None = None
    performance_dir: str | None = None
    vocab_size: str | None = None
    vocab_extra_ids: str | None = None
    make_vocab_size_divisible_by: str | None = None
    tokenizer_metadata: str | None = None
    legacy_tokenizer: bool = False
    trust_remote_code: bool = False
    tokenizer_hf_use_fast: bool = False
    tokenizer_hf_no_use_fast: bool = False
    split_sentences: bool = False
    find_optimal_num_workers: bool = False
    tiktoken_pattern: str | None = None
    tiktoken_num_special_tokens: str | None = None
    special_tokens: list[str] | None = None

    def check(self) -> list[str]:
        """Return the options that were given; raise if one is refused."""
        given = [name for name, value in self._asdict().items() if value not in (None, False)]
        for name in given:
            if name in _REFUSED:
                raise UnsupportedError(_REFUSED[name])
        return [f"--{name.replace('_', '-')}" for name in given]


_OF_FILES = (
    "the pattern and the special tokens are those of the tokenizer's files; leave "
    "--tiktoken-pattern, --tiktoken-num-special-tokens and --tokenizer-special-tokens out, or save "
    "a tokenizer that has them"
)
# Options that would change the result, or ask for something else.
_REFUSED = {
    "split_sentences": (
        "--split-sentences is for BERT: each sentence is a sequence; here each document is one. "
        "Leave it out, or split the input"
    ),
    "find_optimal_num_workers": (
        "--find-optimal-num-workers tries out numbers of processes; here there is one, with a "
        "thread per CPU. Leave it out, or set --workers"
    ),
    "tiktoken_pattern": _OF_FILES,
    "tiktoken_num_special_tokens": _OF_FILES,
    "special_tokens": _OF_FILES,
}


def run(
    *,
    input: str,
    output_prefix: str,
    json_keys: list[str] | None = None,
    append_eod: bool = False,
    tokenizer: TokenizerFlags,
    workers: options.Positive | None = None,
    special_text: options.SpecialText = "text",
    on_error: OnError = "fail",
    force: bool = False,
    others: Others,
) -> None:
    """Encode JSON lines for Megatron-LM, with the options of its tools/preprocess_data.py.

    The same as `byteweld tokenize --format megatron`, for existing scripts. Each key makes a
    dataset in its own folder, PREFIX_text_document, with a manifest. If it is interrupted, the same
    command continues where it left off; `byteweld verify` checks the result. The files that
    training reads are hard links to those in the folder.

    Args:
        input (PATH): JSON lines or tables: a file, a folder or a glob.
        output_prefix (PREFIX): Where the files go: PREFIX_text_document.bin and .idx, for each
            key.
        json_keys (KEY...): The fields that have text. Default: text.
        append_eod: Append the end-of-text token to documents that have text.
        workers: Number of threads. Default: one per CPU.
        force: Start over if DIR holds a dataset.
    """
    if input == "-":
        raise _errors.UsageError(
            "--input is standard input, which cannot be read once per key; it must be a file, "
            "folder or glob"
        )
    prefix = Path(output_prefix)
    if output_prefix.endswith("/") or prefix.name in ("", "."):
        raise _errors.UsageError(
            f"--output-prefix is {output_prefix!r}; it must end with the start of a file name"
        )
    without_effect = others.check()
    tok = _load(tokenizer)
    bos = _starts_with_bos(tok, tokenizer)
    if without_effect:
        _output.say(f"without effect here: {', '.join(without_effect)}")
    for key in dict.fromkeys(json_keys or ["text"]):
        if not key or "/" in key or "\0" in key:
            raise _errors.UsageError(
                f"--json-keys has {key!r}, which cannot be part of a file name"
            )
        folder = prefix.with_name(f"{prefix.name}_{key}_document")
        plan = Options(
            format="megatron",
            eot="append" if append_eod else "none",
            eot_token=tokenizer.eot_token if append_eod else None,
            bos=bos,
            special_text=special_text,
            prefix=folder.name,
        ).complete(tok)
        if not force:
            _check_links(folder)
        reading = ReadingOptions(field=key, json_lines=True, on_error=on_error)
        sources = _corpus.open_all([input], None, reading, without=str(folder))
        result, seconds = tokenize.make(
            sources, tok, str(folder), plan, threads=workers, force=force
        )
        _make_links(folder)
        tokenize.show(result, str(folder), seconds)


# ---------------------------------------------------------------------------- tokenizer


def _load(given: TokenizerFlags) -> byteweld.Tokenizer:
    is_gpt2 = given.vocab_file is not None or given.merge_file is not None
    kind = given.tokenizer_type or _TYPES[is_gpt2]
    if kind not in _TYPES:
        raise UnsupportedError(
            f"--tokenizer-type is {kind!r}; byteweld has byte-level BPE: {' or '.join(_TYPES)}, "
            "and `byteweld convert` for other files of such tokenizers"
        )
    if kind == "GPT2BPETokenizer":
        if given.vocab_file is None or given.merge_file is None:
            raise _errors.UsageError(f"{kind} needs --vocab-file and --merge-file")
        return _load_gpt2(Path(given.vocab_file), Path(given.merge_file))
    if given.tokenizer_model is None:
        raise _errors.UsageError(f"{kind} needs --tokenizer-model")
    return options.load_tokenizer(given.tokenizer_model)


def _load_gpt2(vocab_file: Path, merge_file: Path) -> byteweld.Tokenizer:
    """Load the two files of GPT-2, which may have any names, with GPT-2's pattern."""
    try:
        vocab = json.loads(read_regular(vocab_file, _MAX_VOCAB_BYTES))
        eot = vocab.get(_EOT)
    except (ValueError, AttributeError, RecursionError):
        raise byteweld.FormatError("expected a JSON object of tokens", path=vocab_file) from None
    with tempfile.TemporaryDirectory() as folder:
        names = {"vocab.json": vocab_file, "merges.txt": merge_file}
        for name, file in names.items():
            (Path(folder) / name).symlink_to(file.resolve(strict=True))
        try:
            return byteweld.load(
                folder, pattern="gpt2", special_tokens={} if eot is None else {_EOT: eot}
            )
        except byteweld.FormatError as error:
            # Line numbers are part of the path.
            found = error.path or ""
            for name, file in names.items():
                found = found.replace(str(Path(folder) / name), str(file))
            raise byteweld.FormatError(error.message, path=found, offset=error.offset) from None


def _starts_with_bos(tok: byteweld.Tokenizer, given: TokenizerFlags) -> bool:
    """Whether documents start with the bos token, as the tokenizer's template says."""
    before, after = tok.vocab.template
    if not (before or after):
        return False
    if not given.tokenizer_hf_include_special_tokens:
        if not given.tokenizer_hf_no_include_special_tokens:
            _output.say(
                "the tokenizer's template is not applied; if Megatron-LM applied it, pass "
                "--tokenizer-hf-include-special-tokens"
            )
        return False
    if before != (tok.vocab.roles.get("bos"),) or after:
        raise UnsupportedError(
            f"the tokenizer's template adds ids {list(before)} before a document and "
            f"{list(after)} after it; only a template that adds bos before it can be applied. "
            "Leave --tokenizer-hf-include-special-tokens out"
        )
    return True


# ---------------------------------------------------------------------------- files


def _pairs(folder: Path) -> list[tuple[Path, Path]]:
    """Return the files of a dataset, and next to its folder, the links that training reads."""
    names = [f"{folder.name}{suffix}" for suffix in (".bin", ".idx")]
    return [(folder / name, folder.with_name(name)) for name in names]


def _check_links(folder: Path) -> None:
    for file, link in _pairs(folder):
        if os.path.lexists(link) and not _is_same(file, link):
            raise FileExistsError(
                f"{link} exists and is not of the dataset {folder}; pass --force to replace it"
            )


def _make_links(folder: Path) -> None:
    """Make hard links, or symbolic ones where the file system has none."""
    for file, link in _pairs(folder):
        if _is_same(file, link):
            continue
        temporary = link.with_name(f".{link.name}.{os.getpid()}")
        temporary.unlink(missing_ok=True)
        try:
            os.link(file, temporary)
        except OSError:
            temporary.symlink_to(Path(file.parent.name) / file.name)
        temporary.replace(link)


def _is_same(file: Path, link: Path) -> bool:
    try:
        return file.samefile(link)
    except FileNotFoundError:
        return False
