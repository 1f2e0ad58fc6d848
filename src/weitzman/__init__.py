from .evaluate import evaluate as evaluate
from .model import Forest as Forest
from .policy import Policy as Policy
from .sensitivity import break_even as break_even
from .sensitivity import sensitivity as sensitivity
from .solution import Solution as Solution
from .solution import Status as Status
from .solve import solve as solve
