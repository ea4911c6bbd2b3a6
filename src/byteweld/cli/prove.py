"""`byteweld prove`: checks that byteweld gives the same ids as the real tiktoken or tokenizers."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from json import dumps
from pathlib import Path
from typing import Annotated, Any

import byteweld
from byteweld import peers, proof
from byteweld._files import COMPRESSED_SUFFIXES, check_file
from byteweld._saves import write_atomic
from byteweld.cli import DONE, FAILED, NO, _errors, _output, _proof
from byteweld.cli import _options as options
from byteweld.cli._documents import CorpusDocuments, say_resumed
from byteweld.cli._runner import RunnerOptions
from byteweld.jobs.proving import WorkerPeer, prove_corpus
from byteweld.markup import document

EXAMPLES = """
byteweld prove tokenizer.json books/
byteweld prove tokenizer.json chats.jsonl.zst --field content --special-text text
byteweld prove cl100k_base big.txt.gz --separator '<|endoftext|>'
byteweld prove tokenizer.json books/ --out proof.json --html proof.html
byteweld prove cl100k_base crawl/ --work scratch
byteweld prove r50k.tiktoken books/ --pattern gpt2 --no-special --peer tokenizers --threads 1
byteweld prove cl100k_base s3://crawl/ --runner ray --address auto --work s3://scratch/
"""

WORDS = {"peers": " or ".join(peers.PEERS)}


def run(
    tokenizer: str,
    source: list[str],
    *,
    peer: Annotated[str, peers.PEERS] | None = None,
    special_text: options.SpecialText = "special",
    threads: options.Positive | None = None,
    json: bool = False,
    out: str | None = None,
    html: str | None = None,
    force: bool = False,
    loading: options.Loading,
    reading: options.Reading,
    runner: RunnerOptions,
) -> int:
    """Encode a corpus with byteweld and with the real tiktoken or tokenizers, and compare the ids.

    Every document is encoded by both. If any ids differ, the first difference is shown and the exit
    code is 1. A document that is not UTF-8, or on which the other library fails, stops the run with
    exit code 2; --on-error can skip or repair such documents.

    Documents are encoded on several threads; the result is the same for any number of them. With
    --runner ray, slices of the corpus are compared in tasks, again with the same result. Every node
    needs the other library, in the same version. With --work, what was compared is kept in that
    folder until the end: if the proof is interrupted, the same command resumes it.

    Args:
        tokenizer: A file, a folder, or the name of a vocabulary (see `byteweld list`).
        peer: The library to compare with: {peers}. Default: the one that reads the file's format,
            or tiktoken for the name of an encoding. A library that cannot read the file gets a copy
            in its own format, if that format can represent the tokenizer.
        out (FILE): Also write a report to keep to FILE, as JSON: the result, the versions, and the
            size and SHA-256 of every file of the corpus, which is read once more for that.
        html (FILE): Also write that report as an HTML page.
    """
    runner.check(source, threads)
    for flag, file in (("--out", out), ("--html", html)):
        if file == "":
            raise _errors.UsageError(f"{flag} is empty; name a file to write the report to")
        if file is not None:
            check_file(file, overwrite=force)
    if force and out is None and html is None:
        raise _errors.UsageError("--force needs --out or --html, whose files it overwrites")
    tok = options.load_tokenizer(tokenizer, **loading)
    arguments = options.special_arguments(special_text)
    by_name = options.is_name(tokenizer)
    file = options.file_of(tokenizer)
    path = None if by_name or Path(file).suffix in COMPRESSED_SUFFIXES else file
    format = None if by_name else loading.get("format") or byteweld.recognize(file)
    given_pattern = loading.get("pattern")
    pattern = None if given_pattern in (*byteweld.PATTERNS, "none") else given_pattern
    opened = peers.open_peer(
        path,
        format,
        tok.vocab,
        library=peer or ("tiktoken" if by_name else None),  # type: ignore[arg-type]  # checked
        pattern=pattern,
        specials=arguments["allowed_special"] == "all",
        num_threads=threads,
    )
    ours = _proof.Ours(tok, arguments)
    files = CorpusDocuments(source, reading)
    digests = None if out is None and html is None else _proof.Digests(files.paths)
    num_threads = threads or os.cpu_count() or 1
    with runner.open(threads, keeps=True) as tasks:
        started = time.perf_counter()
        with files.progress("proving", is_stored=tasks is not None) as advance:
            how: Any = {"skip_failures": reading.get("on_error") == "skip", "progress": advance}
            if tasks is None:
                documents = _documents(files, digests)
                found = proof.prove(ours, opened, documents, num_threads=num_threads, **how)
                end = found.end
                num_files = files.files if end is None else end.file
                skipped = files.skipped if end is None else end.skipped
            else:
                num_threads = tasks.threads_per_task or num_threads
                theirs = WorkerPeer(
                    opened, path, format, tok.vocab, pattern=pattern, num_threads=num_threads
                )
                facts = {
                    "fingerprint": tok.vocab.fingerprint,
                    "copied": opened.copied,
                    "pattern": given_pattern,
                    "special_text": special_text,
                }
                found, num_files, skipped = prove_corpus(
                    tasks, files.corpus, ours, theirs, facts=facts, resumed=say_resumed, **how
                )
        seconds = time.perf_counter() - started
        result = _proof.Result(
            path=tokenizer,
            ours=ours,
            peer=opened,
            proof=found,
            files=num_files,
            skipped=skipped,
            threads=num_threads,
            seconds=seconds,
            runner=runner.runner,
        )
        for failure in found.skipped:
            _output.say(f"skipped {_proof.failure_words(failure)}")
        files.say_skipped(skipped)
        code = _show(result, json)
        if digests is not None:
            _keep(result.to_keep(digests.files(tasks)), [(out, False), (html, True)], force=force)
    return code


def _documents(files: CorpusDocuments, digests: _proof.Digests | None) -> Iterator[proof.Document]:
    for name, documents in files:
        for number, content in enumerate(documents, 1):
            read = proof.Document(name, number, content, files.files, files.skipped)
            if digests is not None:
                digests.read(read)
            yield read


def _show(result: _proof.Result, json: bool) -> int:
    found = result.proof
    with _output.until_closed():
        if json:
            _output.report(result.to_dict())
        elif found.failure is None and (found.documents or found.difference):
            _output.lines(result.lines(color=_output.has_color()))
    if found.failure is not None:
        _output.say(
            f"byteweld: {_proof.failure_words(found.failure)}; "
            "--on-error skip skips such documents, --on-error replace repairs invalid UTF-8"
        )
        return FAILED
    if found.difference is None and found.documents == 0:
        _output.say("byteweld: the corpus contains no documents, so nothing was compared")
        return FAILED
    return DONE if found.difference is None else NO


def _keep(result: _proof.Result, files: list[tuple[str | None, bool]], *, force: bool) -> None:
    """Write the report to files, as JSON or as a page."""
    for file, is_page in files:
        if file is not None:
            page = document(f"Proof of {result.path}", result.to_html()) if is_page else ""
            content = (page or dumps(result.kept, indent=2) + "\n").encode()
            write_atomic(file, content, overwrite=force)
            _output.say(f"wrote {file}: {_output.size(len(content))}")
