"""Token datasets: a corpus is encoded into the files that training frameworks read.

`tokenize` writes them, `verify` checks them, `open_dataset` reads them.
"""
