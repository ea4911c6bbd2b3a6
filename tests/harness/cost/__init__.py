"""`make fuzz-cost`: hostile input of sizes n, 2n and 4n; time or memory that grows faster fails.

`texts` are families of strings by size; `subjects` are vocabularies, fixed or by size; `cases`
combines them with every operation; `measure` finds how a case grows.
"""
