"""Makes the static page: the studio's Tokens view and the engine as WebAssembly, in one HTML file.

`python scripts/make_page.py` writes dist/byteweld.html. It needs a Rust compiler with the target
wasm32-unknown-unknown (`rustup target add wasm32-unknown-unknown`), or Debian's packages rustc-web,
cargo-web, rust-web-src and lld; without either, the exit code is 3.

The engine is crates/byteweld-wasm; the page is its page/ folder, with the studio's own modules and
style sheet. What the two need to know about patterns and public encodings comes from byteweld's own
tables, here, and is written nowhere else.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from byteweld import evaluation
from byteweld._saves import write_atomic
from byteweld.formats._hf_pipeline import DIGITS, PUNCTUATION
from byteweld.formats._oniguruma import find_dialect_problem, matches_everywhere
from byteweld.known_encodings import RANK_SETTINGS
from byteweld.patterns import _SPELLINGS, GPT2, PATTERNS, is_over_bytes, pattern_name
from byteweld.studio.assets import ASSETS, index_html
from byteweld.studio.examples import TEXTS
from byteweld.studio.opening import MAX_FILE_BYTES
from byteweld.studio.request import MAX_TEXT_BYTES
from byteweld.studio.views import vocabulary

ROOT = Path(__file__).resolve().parent.parent
CRATE = ROOT / "crates" / "byteweld-wasm"
PAGE = CRATE / "page"
OUT = ROOT / "dist" / "byteweld.html"
TARGET = "wasm32-unknown-unknown"
DEBIAN = Path("/usr/bin")  # where rustc-web and cargo-web are, whatever comes first on the PATH
NO_COMPILER = 3  # exit code

# Regular expressions of public tokenizer.json files that have no name in byteweld: those of
# DeepSeek V3, DeepSeek Coder and Falcon.
_MORE_REGEXES = (
    r"\p{N}{1,3}",
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
    "[\r\n]",
    r"\s?\p{L}+",
    r"\s?\p{P}+",
    "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+",
    "[0-9][0-9][0-9]",
    "[0-9]",
    r"\s+",
    " +",
)


# ---------------------------------------------------------------------- the engine


class Compiler(NamedTuple):
    """How to compile for WebAssembly here."""

    cargo: str
    arguments: list[str]
    environment: dict[str, str]


def find_compiler() -> Compiler | None:
    """Return a compiler that has the target, or the sources to build its standard library."""
    for folder in (None, DEBIAN):
        cargo, rustc = (_program(name, folder) for name in ("cargo", "rustc"))
        if cargo is None or rustc is None:
            continue
        found = subprocess.run([rustc, "--print", "sysroot"], capture_output=True, text=True)
        if found.returncode:
            continue
        libraries = Path(found.stdout.strip()) / "lib" / "rustlib"
        if (libraries / TARGET / "lib").is_dir():
            return Compiler(cargo, [], {"RUSTC": rustc} if folder else {})
        linker = shutil.which("wasm-ld")
        if folder and linker and (libraries / "src/rust/library/Cargo.lock").is_file():
            environment = {
                "RUSTC": rustc,
                "RUSTC_BOOTSTRAP": "1",  # -Z is not a stable option
                "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER": linker,
            }
            return Compiler(cargo, ["-Zbuild-std=std,panic_abort"], environment)
    return None


def _program(name: str, folder: Path | None) -> str | None:
    return shutil.which(name, path=None if folder is None else str(folder))


def build_engine(compiler: Compiler) -> bytes:
    """Return the module."""
    folder = ROOT / "target" / "wasm"
    command = [
        *(compiler.cargo, "build", "--quiet", "--release", "--locked"),
        *("--manifest-path", str(CRATE / "Cargo.toml"), "--target-dir", str(folder)),
        *("--target", TARGET, *compiler.arguments),
    ]
    subprocess.run(command, check=True, env=os.environ | compiler.environment)
    return (folder / TARGET / "release" / "byteweld_wasm.wasm").read_bytes()


# ---------------------------------------------------------------------- facts


def facts() -> dict[str, Any]:
    """Return what the engine (`Facts` in the crate) and the page need to know."""
    return {
        "engine": {
            "limits": {
                "file_bytes": MAX_FILE_BYTES,
                "text_bytes": MAX_TEXT_BYTES,
                "shown": vocabulary._MAX_SHOWN,
                "tree_bytes": vocabulary._MAX_TREE_BYTES,
                "token_bytes": vocabulary._MAX_TOKEN_BYTES,
            },
            "patterns": PATTERNS,
            "regexes": _regexes(),
            "byte_level": GPT2,
            "digits": DIGITS,
            "punctuation": PUNCTUATION,
            "rank_files": {
                digest: {"pattern": known.pattern, "special_tokens": dict(known.special_tokens)}
                for digest, known in RANK_SETTINGS.items()
            },
        },
        "examples": [example._asdict() for example in TEXTS],
        "kinds": _kinds(),
    }


def _regexes() -> dict[str, dict[str, Any]]:
    """Return the regular expressions that Oniguruma and the engine read in the same way."""
    found = {}
    for source in (*PATTERNS.values(), *_SPELLINGS, *_MORE_REGEXES):
        if is_over_bytes(source):
            continue
        if source not in PATTERNS.values() and find_dialect_problem(source) is not None:
            continue
        name = pattern_name(source)
        found[source] = {
            "same_as": source if name is None else PATTERNS[name],
            "matches_everywhere": matches_everywhere(source),
        }
    return found


def _kinds() -> dict[str, Any]:
    """Return the kind of every character, in runs: what `evaluation.script_of` looks at."""
    runs = [
        (kind, sum(1 for _ in codes))
        for kind, codes in groupby(range(sys.maxunicode + 1), lambda code: _kind(chr(code)))
    ]
    names = sorted({kind for kind, _ in runs})
    return {
        "names": names,
        "lengths": [length for _, length in runs],
        "which": [names.index(kind) for kind, _ in runs],
        # A token without letters has the first of these that one of its characters has.
        "weak": ["digits", "symbols", "controls", "space"],
    }


def _kind(character: str) -> str:
    return evaluation._kind.__wrapped__(character)


# ---------------------------------------------------------------------- the page

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([a-z]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async function|function|class|const) (\w+))", re.MULTILINE)


def bundle(entry: str) -> str:
    """Return a module and all that it imports as one script.

    The page's own modules take precedence over the studio's. The studio's sources keep imports and
    exports to one simple form, which a test checks; anything else is an error here.
    """
    parts: list[str] = []
    exports: dict[str, set[str]] = {}

    def add(name: str, importers: tuple[str, ...]) -> None:
        if name in exports:
            return
        if name in importers:
            raise ValueError(f"{name} imports itself, through {', '.join(importers)}")
        source = _source(name)
        for names, other in _IMPORT.findall(source):
            add(other, (*importers, name))
            missing = {item.split()[0] for item in names.split(",") if item.strip()}
            missing -= exports[other]
            if missing:
                raise ValueError(f"{name} imports {sorted(missing)} from {other}, which lacks it")
        exports[name] = set(_EXPORT.findall(source))
        body = _EXPORT.sub("", _IMPORT.sub(_destructured, source))
        if re.search(r"^(import|export)\b", body, re.MULTILINE):
            raise ValueError(f"{name} has an import or export of another form")
        result = f"return {{ {', '.join(sorted(exports[name]))} }};\n"
        parts.append(f'modules["{name}"] = (() => {{\n{body}{result}}})();\n')

    add(entry, ())
    return "const modules = {};\n" + "".join(parts)


def _source(name: str) -> str:
    own = PAGE / name
    return own.read_text("utf-8") if own.exists() else ASSETS[name].content.decode()


def _destructured(match: re.Match[str]) -> str:
    names = ", ".join(item.strip().replace(" as ", ": ") for item in match[1].split(",") if item)
    return f'const {{ {names} }} = modules["{match[2]}"];\n'


def page(engine: bytes) -> str:
    """Return the page. Its policy allows its own script and style, and no connection."""
    script = "\n" + bundle("app.js")
    style = "\n" + ASSETS["style.css"].content.decode() + _source("page.css")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}' 'wasm-unsafe-eval'; "
        f"style-src '{_hash(style)}'; worker-src blob:; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    packed = base64.b64encode(gzip.compress(engine, mtime=0)).decode()
    described = json.dumps(facts(), ensure_ascii=True, separators=(",", ":"))
    described = described.replace("<", "\\u003c")  # or it could end its element
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<style>{_plain(style, '</style')}</style>\n"
        f'<script type="application/json" id="facts">{described}</script>\n'
        f'<script type="text/plain" id="worker">{_plain(_source("worker.js"))}</script>\n'
        f'<script type="text/plain" id="wasm">{packed}</script>\n'
        f'<script type="module">{_plain(script)}</script>\n'
    )
    return index_html(head, "byteweld tokens")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _plain(text: str, end: str = "</script") -> str:
    """Return the content of an element, unless it would end it."""
    if end in text.lower() or "<!--" in text:
        raise ValueError(f"a module or the style sheet contains {end} or a comment of HTML")
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=OUT, help="the file to write (%(default)s)")
    out: Path = parser.parse_args().out
    compiler = find_compiler()
    if compiler is None:
        sys.stderr.write(
            "no Rust compiler for WebAssembly: `rustup target add wasm32-unknown-unknown`, or on "
            "Debian `apt-get install rustc-web cargo-web rust-web-src lld`\n"
        )
        return NO_COMPILER
    content = page(build_engine(compiler)).encode()
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(out, content, overwrite=True)
    sys.stdout.write(f"wrote {out}: {len(content):,} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
