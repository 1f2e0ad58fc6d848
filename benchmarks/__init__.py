"""How fast the package is, measured against what else could do the same work.

``python benchmarks/run.py --write`` runs all cases and writes ``RESULTS.md``.
"""
