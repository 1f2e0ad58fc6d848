"""The methods of ``weitzman backtest`` on public learning curves."""
