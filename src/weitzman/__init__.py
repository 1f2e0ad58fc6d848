from .model import Forest as Forest
from .solution import Solution as Solution, Status as Status
from .solve import solve as solve
from .policy import Policy as Policy
from .evaluate import evaluate as evaluate
from .sensitivity import sensitivity as sensitivity, break_even as break_even
