"""The public names, the direction of imports, and a light core."""

from __future__ import annotations

from pathlib import Path

import weitzman

SOURCE = Path(weitzman.__file__).parent


def test_public_names_are_pinned():
    assert sorted(weitzman.__all__) == weitzman.__all__
    for name in weitzman.__all__:
        assert getattr(weitzman, name) is not None
