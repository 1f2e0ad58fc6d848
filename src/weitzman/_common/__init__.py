"""What every room may use: type aliases, optional packages, text for terminals, safe writing.

Imports nothing else of the package.
"""
