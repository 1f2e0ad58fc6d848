"""Playing a policy many times: distributions, and what several workers cost and save."""

from .play import simulate as simulate
from .result import Simulation as Simulation
