"""The methods of ``weitzman replay`` on public learning curves."""
