"""`make fuzz-files`: load mutated files of every format, and use what loads.

`bases` are valid files; `mutate` changes bytes, lines and JSON values; `vocabs` and `others` know
the fields, checksums and readers of each `kind`, and `kinds` lists them; `use` is what is done with
a vocabulary that loads, and which errors are allowed. A case is a dict of file name to content,
drawn from seed, kind and number.
"""
