"""The harness that attacks byteweld: files, costs, special tokens, kills, file systems, load.

Each module here is a program, `python -m tests.harness.NAME --seconds N --seed S`, with a target of
the same name in the Makefile. A short slice of each is part of `make test-all`;
docs/design/trust.md lists what was run. The same seed draws the same cases.
"""
