"""Wrong use of any verb is one line on stderr and exit code 2, before anything is written."""

from __future__ import annotations

import shlex

import pytest

from tests.helpers.byte_datasets import BYTES, make_dataset, with_eot

COMPARE = "compare tokenizer.json tokenizer.json"
TWO_SIDES = [COMPARE, "prove tokenizer.json"]

# What is said, with VERB for the name of the verb, and the lines that it answers.
MISUSES: dict[str, list[str]] = {
    # Sources
    "'': no such file; the name is empty": ["encode ''", "encode --lines ''", "decode ''"],
    "VERB takes SOURCE or --text, not both": [
        f"{verb} a.txt --text b" for verb in ("encode", "tokens", "explain")
    ],
    "nowhere: no such file or folder": [
        *("tokens texts nowhere", "inspect --bytes nowhere", f"{COMPARE} nowhere --no-fail"),
        *(f"{verb} nowhere" for verb in TWO_SIDES),
        *("extend tokenizer.json --out new.json nowhere --add 3", "studio --corpus nowhere"),
    ],
    "zzz: no such file; pass either files or text": ["explain --train texts zzz"],
    "the corpus contains no documents, so nothing was compared": [
        f"{verb} empty.txt --lines" for verb in TWO_SIDES
    ],
    "VERB: missing argument SOURCE...; see `byteweld VERB --help`": ["train", *TWO_SIDES],
    "--json-lines and --lines cannot be combined: each line is a record, and a document; leave one "
    "out": ["count a.txt --json-lines --lines"],
    "--json-lines and --separator cannot be combined: each line is a record, and a document; leave "
    "one out": ["count a.txt --json-lines --separator x"],
    "--checkpoint cannot be used with standard input (-), which cannot be read again; pass "
    "the name of a file": ["train - --vocab-size 257 --checkpoint point --out new.json"],
    # A tokenizer
    "a.txt: the format of this file is unknown; expected one of bpe1, bpetite, ck, gpt2, "
    "huggingface, tekken, tiktoken": ["encode -t a.txt --text low"],
    "tokenizer.json is in format 'huggingface', which has its own pattern and special tokens; "
    "leave --pattern out": ["encode --text low --pattern gpt2"],
    "both files have their own pattern and special tokens; leave --pattern, --special and "
    "--no-special out": [f"{COMPARE} texts --pattern gpt2"],
    "the vocabulary has no eos token, so --add-eos cannot add it": ["encode --text low --add-eos"],
    "r.tiktoken: a rank file holds no pattern and no special tokens, and there is no "
    "r.tiktoken.byteweld.json beside it; pass --pattern (a name such as 'cl100k', an expression) "
    "or --pattern none and --special text=id or --no-special": ["encode -t r.tiktoken --text low"],
    "--special is 'x'; expected TEXT=ID, such as '<|endoftext|>=50256'": [
        "encode -t r.tiktoken --text low --special x"
    ],
    "--special and --no-special cannot be combined; pass one of them": [
        "encode -t r.tiktoken --text low --special x=1 --no-special"
    ],
    "unknown pattern 'o200'; expected one of gpt2, cl100k, o200k, llama3, qwen2, qwen3_5, tekken, "
    "nanochat, ck, ck-runtime; did you mean 'o200k'?": [
        "encode -t r.tiktoken --text low --no-special --pattern o200"
    ],
    "cannot drop 'patern'; expected one of added-token-flags, empty-token, ignore-merges, "
    "normalizer, pattern, prefix-space, roles, shared-ids, special-tokens, steps, template, "
    "twin-tokens; did you mean 'pattern'?": ["convert tokenizer.json new.tiktoken --drop patern"],
    "cannot drop 'template', which this vocabulary does not have; it has pattern, special-tokens": [
        "convert tokenizer.json new.tiktoken --drop template"
    ],
    # What is shown
    "encode takes --show or --json, not both": ["encode --text low --show --json"],
    "inspect takes one of --merges, --tree, --bytes and --corpus": [
        "inspect tokenizer.json --merges --tree low"
    ],
    "--merges is 'x'; expected a whole number, or no value for all merges": [
        "inspect tokenizer.json --merges=x"
    ],
    "'xyz' is neither a token nor an id of this tokenizer; it encodes to 120 121 122": [
        "inspect tokenizer.json --tree xyz"
    ],
    "--special-text and --threads need --corpus": [
        f"inspect tokenizer.json {flag}" for flag in ("--special-text text", "--threads 1")
    ],
    "the reading options need --corpus or --bytes": [
        f"inspect tokenizer.json {flag}" for flag in ("--lines", "--ext .txt")
    ],
    "inspect --bytes takes no TOKENIZER, and no options of one": [
        f"inspect {given} --bytes a.txt" for given in ("none.json", "--format ck", "--pattern gpt2")
    ],
    "inspect takes no --merges, --tree or --corpus for a dataset": ["inspect set --merges"],
    "--tokenizer needs a dataset, to decode its documents; to inspect a tokenizer, pass it as "
    "TOKENIZER": ["inspect bytes.json -t bytes.json"],
    "explain takes one SOURCE; put text that contains spaces in quotes": ["explain a b"],
    "--recipe and --vocab-size need --train": ["explain a --recipe plain"],
    "--threads, --memory and the reading options need --train": ["explain low --threads 2"],
    "the reading options are for files; the SOURCE is text": ["explain --train 'low low' --lines"],
    **{
        f"explain takes --train or {flag}, not both": [f"explain a --train {flag} {value}"]
        for flag, value in [
            *(("--tokenizer", "tokenizer.json"), ("--format", "huggingface"), ("--no-special", "")),
            *(("--special-text", "text"), ("--max-pretoken-bytes", "1024")),
        ]
    },
    # Files to write
    "VERB: missing option --out DIR; see `byteweld VERB --help`": ["tokenize a.txt"],
    "VERB: missing option --out PATH; see `byteweld VERB --help`": [
        "extend tokenizer.json --word a"
    ],
    "--force needs --html, whose file it overwrites": [f"{COMPARE} texts --force"],
    "--force needs --out or --html, whose files it overwrites": [
        "prove tokenizer.json texts --force"
    ],
    "--html is empty; name a file, such as report.html": [f"{COMPARE} texts --html ''"],
    "texts is a folder; expected the name of a file": [f"{COMPARE} texts --html texts"],
    **{
        f"{flag} is empty; name a file to write the report to": [
            f"prove tokenizer.json texts {flag} ''"
        ]
        for flag in ("--out", "--html")
    },
    "s3://bucket/out is a URL, but the result is a local folder; choose one": [
        f"count texts --out s3://bucket/out {flags}" for flags in ("", "--rank 0 --world-size 1")
    ],
    # Values
    **{
        f"--sample is {shown}; expected a whole number, or all": [f"verify set --sample {given}"]
        for given, shown in [("-1", "-1"), ("some", "'some'"), ("1.5", "'1.5'"), ("''", "''")]
    },
    "--vocab-size is 100; it must be at least 256: 256 bytes": [
        "explain a --train --vocab-size 100"
    ],
    "--vocab-size is 256; it must be at least 257: 256 bytes and 1 special tokens": [
        "quickstart --vocab-size 256"
    ],
    "--recipe is 'plian'; it must be one of modern, from-scratch, ck, ck-ascii, bpetite, plain, "
    "bpe1, huggingface, rustbpe; did you mean 'plain'?": ["explain a --train --recipe plian"],
    "--peer is 'sentencepiece'; it must be one of tiktoken, tokenizers": [
        "prove tokenizer.json texts --peer sentencepiece"
    ],
    "--threads is 0; it must be at least 1": ["prove tokenizer.json texts --threads 0"],
    "--timeout is 0; it must be at least 1": ["fetch gpt2 --timeout 0"],
    "SHELL is 'bsh'; it must be one of bash, zsh, fish; did you mean 'bash'?": ["completion bsh"],
    # Words to add
    **{
        said: [f"extend tokenizer.json --out new.json {rest}"]
        for rest, said in [
            ("", "extend needs a SOURCE with --add N, or --word or --words"),
            ("a.txt", "extend needs the number of tokens to add; pass --add N"),
            ("a.txt --add 0", "--add is 0; it must be at least 1"),
            ("a.txt --add x", "--add is 'x'; expected a whole number, or one with k for 1024"),
            ("a.txt --add 3 --word a", "extend takes SOURCE or words (--word, --words), not both"),
            ("--word a --lines", "the reading options are for a SOURCE; leave them out"),
            ("--word ' '", "--word is empty; expected a word"),
            ("--words empty.txt", "empty.txt has no words; expected one per line"),
            ("--words nowhere.txt", "nowhere.txt: no such file or directory"),
            ("--words bad.txt", "bad.txt: byte 3: expected UTF-8 (invalid start byte)"),
        ]
    },
    # A dataset
    "--ext needs --source, whose folders it applies to": ["verify set --ext .xyz"],
    "the options of a tokenizer need --tokenizer": ["verify set --no-special"],
    "nothing: no such file, and no encoding of that name; `byteweld list` shows the names that can "
    "be loaded": ["verify set -t nothing"],
    "nowhere: not a dataset: there is no folder; expected a folder made by `byteweld tokenize`": [
        "verify nowhere"
    ],
    # The studio
    "none.json: no such file or directory": ["studio none.json"],
    "--port is 70000; it must be at most 65535": ["studio --port 70000"],
    "--port is -1; it must be at least 0": ["studio --port -1"],
    "the studio opens at most 16 tokenizers at once": ["studio" + 17 * " x.json"],
    "--corpus of the studio is read again for each recipe; pass a file": ["studio --corpus -"],
    "the reading options need --corpus": ["studio --lines"],
    # Tasks and ranks
    "--threads has no effect with --runner ray; use --cpus-per-task": [
        f"{verb} texts --runner ray --threads 2" for verb in TWO_SIDES
    ],
    "--address has no effect without --runner ray": [f"{COMPARE} texts --address auto"],
    "--slice has no effect without --runner ray": ["prove tokenizer.json texts --slice 1MB"],
    "standard input (-) cannot be divided among tasks; pass the name of a file, or leave --runner "
    "ray out": [
        *(f"{verb} - --runner ray" for verb in TWO_SIDES),
        *(f"{verb} - --out new --runner ray" for verb in ("count", "tokenize")),
        "train - --out new.json --runner ray --vocab-size 300",
    ],
    "standard input (-) cannot be divided among tasks; pass the name of a file, or leave --work "
    "out": ["prove tokenizer.json - --work scratch"],
    "standard input (-) cannot be divided among ranks; pass the name of a file": [
        f"{verb} - --out new --rank 0 --world-size 2" for verb in ("count", "tokenize")
    ],
    "--rank needs --out, next to which the ranks put their counts": [
        "count texts --rank 0 --world-size 2"
    ],
}


@pytest.mark.parametrize(
    ("line", "said"), [(line, said) for said, lines in MISUSES.items() for line in lines]
)
def test_wrong_use_is_one_line_and_writes_nothing(run, saved, tiny, tmp_path, line, said):
    (tmp_path / "texts").mkdir()
    files = {
        "texts/a.txt": b"low lower\n",
        "a.txt": b"hello",
        "empty.txt": b"",
        "bad.txt": b"ab\n\xff\n",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    BYTES.save("bytes.json")
    make_dataset(tmp_path / "set", [with_eot("ab c", "d")], [with_eot("val")])
    tiny.save("r.tiktoken")
    (tmp_path / "r.tiktoken.byteweld.json").unlink()
    before = sorted(tmp_path.rglob("*"))
    message = said.replace("VERB", line.partition(" ")[0])
    assert run(*shlex.split(line), stdin=b"low") == (2, b"", f"byteweld: {message}\n")
    assert sorted(tmp_path.rglob("*")) == before
