"""Pictures and pages: plots, reports, the explorer, and what both pages share.

May import every room but ``cli``.
"""
