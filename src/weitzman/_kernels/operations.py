"""The table of operations that a forest is laid out as: its columns, and what they may hold."""

from __future__ import annotations

BOX, JOIN, GIVEN = 0, 1, 2
# columns of the integer table of operations
KIND, LEFT, RIGHT, LAW, REWARD, COST, STATES, USER = range(8)
COLUMNS = 8
MIXED_USERS, OUTSIDE_USER = -1, -2  # in USER, besides the row of rewards of the only user
