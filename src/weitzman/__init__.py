from .model import Forest as Forest
from .solve import solve as solve
