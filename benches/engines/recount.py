"""The recounting trainer (recount/): counts and rewrites the whole corpus for every merge.

Trainers without a pattern are usually written this way. It is compiled, threaded, and runs in a
separate process, whose start is timed and takes a millisecond.
"""

VERSION = "1.0.0"
NEEDS = "cargo"

_FIRST_BYTE = 4
_FIRST_MERGE = 260


def prepare(cache):
    """Build it, before anything is measured."""
    import subprocess
    from pathlib import Path

    manifest = Path(__file__).parents[1] / "recount" / "Cargo.toml"
    paths = ["--manifest-path", str(manifest), "--target-dir", str(Path(cache) / "recount")]
    subprocess.run(["cargo", "build", "--release", "--quiet", "--locked", *paths], check=True)


def train(job):
    import subprocess
    from pathlib import Path

    program = Path(job.cache) / "recount" / "release" / "recount"
    merges = job.vocab_size - _FIRST_MERGE
    command = [str(program), job.corpus, job.separator, str(merges), str(job.threads)]

    def call():
        return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout

    def answer(lines):
        tokens = [b""] * _FIRST_BYTE + [bytes([byte]) for byte in range(256)]
        for line in lines.splitlines():
            left, right = map(int, line.split())
            tokens.append(tokens[left] + tokens[right])
        return tokens[_FIRST_MERGE:]

    return call, answer
