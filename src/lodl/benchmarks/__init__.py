"""Benchmarks: a runner of experiments, handcrafted surrogates, and the paper's tables and figures.

- `runner` trains methods on domains and keeps a row for each; needs torch.
- `surrogates` has the handcrafted relaxations of decision-focused learning; needs torch.
- `experiments` has what is run for the paper: its domains' settings, plans, measurements.
- `rounds`, `learner` and `peers` compare methods by what they decide and how often they ask.
- `paper` has what the paper shows: its numbers, tables, figures and page, from plain data.
"""
