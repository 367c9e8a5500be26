"""The experiments behind `lodl`: the paper's tables and figures, and other comparisons.

- `runner` trains methods on domains and keeps a row for each.
- `convex_directed_quadratic` has an example of a custom family.
- `surrogates` has the handcrafted relaxations of decision-focused learning.
- `experiments` has what is run for the paper: its domains' settings, plans, measurements.
- `rounds`, `learner` and `peers` compare decisions, and how many solver calls they take.
- `cli` adds commands to `lodl`.
- `paper` has what the paper shows: its numbers, tables, figures and page, from plain data.
"""
