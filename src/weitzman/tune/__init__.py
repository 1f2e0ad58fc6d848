"""Train many runs and stop when nothing is worth its cost any more."""

from .race import Model as Model
from .race import Move as Move
from .race import Race as Race
from .race import Run as Run
