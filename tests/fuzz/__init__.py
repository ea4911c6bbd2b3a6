"""Differential fuzzing of encoding: `make fuzz-encode`. A short run is part of the tests.

`texts` draws strings that patterns and tables find hard; `subjects` are vocabularies, and `oracles`
know their ids; `paths` are all the ways to encode; `rounds` compares them and shrinks a difference.
"""
