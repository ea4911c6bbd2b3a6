"""A long differential fuzz of encoding: `make fuzz-encode`, by hand; a short run of it is a test.

`texts` draws what patterns and tables find hard, `subjects` are vocabularies with those who know
their ids, `paths` all ways to encode, `rounds` holds them equal and makes a difference small.
"""
