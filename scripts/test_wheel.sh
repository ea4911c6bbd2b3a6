#!/usr/bin/env bash
# Checks that the wheel installs and works in a clean environment, without Rust on the path.
set -euo pipefail
cd "$(dirname "$0")/.."
make wheel
work=$(mktemp -d)
trap '/bin/rm -rf "$work"' EXIT
"${PYTHON:-python3}" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check "$(ls -t dist/byteweld-*.whl | head -n 1)"
cd "$work" # away from the sources
export PATH="$work/venv/bin" # no Rust, no compiler
"$work/venv/bin/byteweld" quickstart --vocab-size 1024 > report.txt
"$work/venv/bin/byteweld" explain --train --recipe from-scratch --vocab-size 260 "low lower" > steps.txt
"$work/venv/bin/byteweld" inspect out/quickstart/tokenizer.json --corpus report.txt --html report.html
[[ $(< report.html) == *'</html>'* ]]
"$work/venv/bin/python" - <<'PY'
import byteweld
from byteweld.markup import palette
from byteweld.studio.assets import ASSETS, index_html

tok = byteweld.load("out/quickstart/tokenizer.json")
assert tok.n_vocab == 1024, tok
assert tok.decode(tok.encode("def main():\n    return 0\n")) == "def main():\n    return 0\n"
assert {"app.js", "style.css"} <= set(ASSETS), sorted(ASSETS)
assert "<main" in index_html("") and "--" in palette()
print("the wheel works")
PY
