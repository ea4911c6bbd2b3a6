"""A long differential fuzz of encoding: `make fuzz-encode`, by hand; a short run of it is a test.

`texts` draws what patterns and tables find hard; `subjects` are vocabularies, and `judges` know
their ids; `paths` are all ways to encode; `rounds` holds them equal and shrinks a difference.
"""
