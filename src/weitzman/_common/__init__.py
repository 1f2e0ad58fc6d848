"""What every package may use: type aliases, optional packages, text for people, workers, processes.

Imports nothing else of the package.
"""
