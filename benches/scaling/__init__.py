"""What counting, training and tokenizing take at scale: measured, extrapolated, simulated.

`scale.py` is the command; README.md explains the method, docs/guides/scale.md has the results.
"""
