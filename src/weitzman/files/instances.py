"""The registry of file formats, ``load`` and ``save``; and forests in pandas and NetworkX.

Reading never runs code from a file and never takes much more memory than its size implies; writing
replaces a file in one step or leaves it as it was.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import IO, TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

import numpy as np

from .._common.disk import check_regular, replacing
from .._common.numbers import such
from .._common.optional import need
from ..errors import InvalidFile, InvalidForest
from ..forest.columns import Pool, short
from ..forest.model import BY_BOX, SETTINGS, Forest
from . import binary, json_format
from .documents import Path, explained, parse, unpacked
from .json_format import schema as schema
from .ranges import Range, Ranges
from .sheets import READ_ONLY, SUFFIXES, WORKBOOK, is_table
from .table_rows import forest_of_rows
from .tables import AS_WRITTEN, TableOptions, TableReading, table_reading
from .written_tables import write_forest, written_columns

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd


def load(path: Path, options: TableOptions = AS_WRITTEN) -> Forest:
    """Read a forest from a ``.json``, ``.json.gz`` or ``.wz`` file, or from a table.

    Parameters
    ----------
    path : str or path
        A table (``.csv``, ``.tsv``, packed or not, ``.xlsx``, ``.xlsm``, ``.ods``) has the columns
        of :func:`~weitzman.files.from_pandas`, and perhaps settings in the rows above them.
    options : TableOptions
        What a table does not say itself.

    Raises
    ------
    InvalidFile
        The file cannot be read, is damaged, or is not an instance file. The cause is the `OSError`
        if there was one.
    InvalidForest
        The file is readable but its boxes break a rule.
    """
    name = os.fspath(path)
    if is_table(name):  # which explains its errors itself
        return table_reading(name, options).forest
    with explained(name, "read"):
        one = format_of(name)
        check_regular(os.stat(name))
        return one.read(name)


def read_table(path: Path, options: TableOptions = AS_WRITTEN) -> TableReading:
    """Read a table with all that it says besides the problem; see :class:`TableReading`.

    A ``.json`` file may have ranges. Any other file has the problem alone.
    """
    name = os.fspath(path)
    if is_table(name):
        return table_reading(name, options)
    if not name.lower().endswith((".json", ".json.gz")):
        return TableReading(load(name))
    with explained(name, "read"):
        check_regular(os.stat(name))
        document = parse(unpacked(name))
        forest = json_format.forest(document)
        return TableReading(forest, json_format.ranges(document, forest))


def read_ranges(path: Path, options: TableOptions = AS_WRITTEN) -> Ranges:
    """The uncertain numbers of a table or a ``.json`` file; none for other files."""
    return read_table(path, options).ranges


def save(forest: Forest, path: Path, ranges: Sequence[Range] = ()) -> None:
    """Write a forest to a ``.json``, ``.json.gz`` or ``.wz`` file, or as a table.

    The file appears complete or not at all: if writing fails, what was there stays.

    Parameters
    ----------
    forest : Forest
    path : str or path
    ranges : Ranges, optional
        Numbers that are not known for sure, as :func:`read_ranges` finds them; not for ``.wz``.

    Raises
    ------
    InvalidFile
        The file cannot be written. The cause is the `OSError`.

    Examples
    --------
    >>> import tempfile, weitzman
    >>> forest = weitzman.Forest.from_arrays(
    ...     parent=[-1], cost=[1], rewards=[0, 4], law=[[0.5, 0.5]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(forest, f"{folder}/boxes.json")
    ...     load(f"{folder}/boxes.json")
    Forest(1 described box, 1 with copies, 1 root, 1 law, outside 0)
    """
    name = os.fspath(path)
    with explained(name, "written"):
        one = format_of(name)
        if one.write is None:
            raise InvalidFile("tables of this kind are only read. Write .xlsx or .csv.")
        if ranges and one.magic == binary.MAGIC:
            raise InvalidFile("files of this kind have no ranges. Write .json, .csv or .xlsx.")
        with replacing(name) as file:
            one.write(forest, ranges, file)


class Format(NamedTuple):
    """A file format of problems."""

    suffix: str
    magic: bytes  # with which files begin; none for plain text
    read: Callable[[str], Forest]
    write: Callable[[Forest, Sequence[Range], BinaryIO], None] | None  # None: only read


def format_of(path: Path) -> Format:
    """The format that the name of a file says."""
    name = os.fspath(path)
    if "\0" in name:
        raise InvalidFile("the name of a file must not have a null character in it.")
    found = next((one for one in FORMATS if name.lower().endswith(one.suffix)), None)
    if found is None:
        raise InvalidFile(
            "the name of an instance file must end in .json, .json.gz or .wz, or be that of a "
            "table: .csv, .tsv or .xlsx. Save a spreadsheet of another kind as .xlsx."
        )
    return found


def suffix_of(data: bytes) -> str:
    """The ending of a file with these contents: by its first bytes, else JSON or a table."""
    found = (one.suffix for one in FORMATS if one.magic and data.startswith(one.magic))
    text = data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    return next(found, ".json" if text in (b"{", b"[", b"") else ".csv")


def _read_binary(name: str) -> Forest:
    with open(name, "rb") as file:
        return binary.read(file)


def _read_json(name: str) -> Forest:
    return json_format.forest(parse(unpacked(name)))


def _write_binary(forest: Forest, _: Sequence[Range], file: BinaryIO) -> None:
    binary.write(forest, file)


def _write_json(forest: Forest, ranges: Sequence[Range], file: IO[bytes]) -> None:
    for piece in json_format.pieces(forest, ranges):
        file.write(piece.encode())


def _write_gzip(forest: Forest, ranges: Sequence[Range], file: BinaryIO) -> None:
    # no name and no date: equal forests give equal files
    with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
        _write_json(forest, ranges, cast(IO[bytes], packed))


def _table(suffix: str) -> Format:
    write = None if suffix in READ_ONLY else partial(write_forest, suffix=suffix)
    magic = b"PK\x03\x04" if suffix == WORKBOOK else b""
    return Format(suffix, magic, lambda name: table_reading(name).forest, write)


FORMATS = (
    Format(".json", b"", _read_json, _write_json),
    Format(".json.gz", b"\x1f\x8b", _read_json, _write_gzip),
    Format(".wz", binary.MAGIC, _read_binary, _write_binary),
    *map(_table, SUFFIXES),
)
"""All file formats of problems; of those that begin alike, the first is meant."""


# -- other libraries ---------------------------------------------------------------------------


def from_pandas(
    table: pd.DataFrame, *, outside: float | None = None, minimize: bool | None = None
) -> Forest:
    """A forest from a long table: a row for each box, state of its parent, and own state.

    Parameters
    ----------
    table : pandas.DataFrame
        The columns are

        * ``box``: name or number of the box; numbers 0 to n - 1 are kept as they are;
        * ``parent``, ``parent_state``: missing for a root;
        * ``state``: own state; its order of appearance is kept;
        * ``reward``: of the own state, missing where it has none;
        * ``probability``: rows of probability 0 may be left out;
        * ``cost``: may differ between the rows of a box;
        * ``count``, ``endless``, ``group`` and all other fields of a box, as in
          :meth:`Forest.from_arrays`; may be left out.
    outside, minimize : optional
        By default taken from ``table.attrs``, as all other settings.

    Examples
    --------
    >>> import pandas as pd
    >>> import weitzman
    >>> table = pd.DataFrame({
    ...     "box": ["A", "A"], "parent": [None, None], "parent_state": [None, None],
    ...     "state": [0, 10], "reward": [0, 10], "probability": [0.5, 0.5], "cost": [1, 1]})
    >>> weitzman.solve(weitzman.files.from_pandas(table)).index("A")
    8.0
    """
    need("pandas", "table")
    terms = _settings(table.attrs, outside=outside, minimize=minimize)
    columns = {}
    for name in table.columns:
        cells = zip(table[name].tolist(), table[name].isna().to_numpy(), strict=True)
        columns[str(name)] = [None if missing else x for x, missing in cells]
    return forest_of_rows(columns, lambda i: f"row {i} of the table", **terms)[0]


def to_pandas(forest: Forest) -> pd.DataFrame:
    """The forest as a table that :func:`from_pandas` reads.

    The settings (outside option, direction and so on) are in ``attrs``, which files do not keep.

    Examples
    --------
    >>> import weitzman
    >>> forest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
    >>> weitzman.files.to_pandas(forest)["probability"].tolist()
    [0.5, 0.5]
    """
    pandas = need("pandas", "table")
    columns: dict[str, Any] = written_columns(forest)
    for name in ("box", "parent", "parent_state", "state"):
        if all(x is None or isinstance(x, int) for x in columns[name]):
            columns[name] = pandas.array(columns[name], dtype="Int64")
    table: pd.DataFrame = pandas.DataFrame(columns)
    table.attrs.update(_said(forest))
    return table


def _said(forest: Forest) -> dict[str, Any]:
    """The settings of a forest beyond the defaults, by name, as Python holds them."""
    said = [(one, x) for one in SETTINGS if (x := one.given(forest)) is not None]
    return {one.name: dict(x) if one.type is dict else x for one, x in said}


def _settings(given: Mapping[str, Any], **new: float | None) -> dict[str, Any]:
    """The settings among some attributes, with what is given beside them."""
    found = {one.name: given[one.name] for one in SETTINGS if one.name in given}
    return found | {name: x for name, x in new.items() if x is not None}


def from_networkx(
    graph: nx.DiGraph[Any], *, outside: float | None = None, minimize: bool | None = None
) -> Forest:
    """A forest from a directed graph with an edge from each parent to its child.

    Parameters
    ----------
    graph : networkx.DiGraph
        Nodes have the attributes ``cost``, ``rewards`` and ``law``, and perhaps those of other
        arguments of :meth:`Forest.from_arrays` with an entry for each box. Nodes 0 to n - 1 keep
        their numbers; otherwise nodes come in the order of the graph and their labels become names.
    outside, minimize : optional
        By default attributes of the graph, as all other settings.

    Examples
    --------
    >>> import networkx as nx
    >>> import weitzman
    >>> graph = nx.DiGraph([("A", "B")])
    >>> graph.add_node("A", cost=1, rewards=[0, 10], law=[0.5, 0.5])
    >>> graph.add_node("B", cost=1, rewards=[0, 20], law=[[0.9, 0.1], [0.5, 0.5]])
    >>> weitzman.solve(weitzman.files.from_networkx(graph)).index("B", 1)
    18.0
    """
    nodes, parent = _check_graph(need("networkx", "graph"), graph)
    settings = _settings(graph.graph, outside=outside, minimize=minimize)
    data = [graph.nodes[v] for v in nodes]
    columns: dict[str, Any] = {}
    for one in BY_BOX:
        if one.form in ("names", "parent"):
            continue
        bare = [v for v, d in zip(nodes, data, strict=True) if one.name not in d]
        if one.needed and bare:
            raise InvalidForest(
                f"every node must have the attributes cost, rewards and law, but node "
                f"{bare[0]!r} has no {one.name!r} ({such(len(bare), 'node')}). Set "
                f"graph.nodes[{bare[0]!r}][{one.name!r}]."
            )
        if len(bare) < len(nodes):
            columns[one.name] = [d.get(one.name, one.default) for d in data]
    names = None if nodes == list(range(len(nodes))) else nodes
    return Forest.from_arrays(parent=parent, names=names, **columns, **settings)


def to_networkx(forest: Forest) -> nx.DiGraph[Any]:
    """The forest as a directed graph that :func:`from_networkx` reads.

    Nodes are the names of the boxes, or their numbers where they have no names. The arrays are
    read-only views; boxes of one kind share them.

    Examples
    --------
    >>> import weitzman
    >>> forest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, names=["A"])
    >>> weitzman.files.to_networkx(forest).nodes["A"]["rewards"].tolist()
    [0.0, 10.0]
    """
    networkx = need("networkx", "graph")
    nodes: list[Any] = list(range(len(forest)) if forest.names is None else forest.names)
    root = (forest.parent < 0).tolist()
    graph: nx.DiGraph[Any] = networkx.DiGraph(**_said(forest))
    graph.add_nodes_from(nodes)
    for one in BY_BOX:
        x = one.given(forest)
        if x is None or one.form in ("names", "parent"):
            continue
        at = getattr(forest, one.pointer).tolist() if one.pointer else range(len(forest))
        # each matrix whole and by rows, so that equal boxes get the same objects
        views = [(x[i], list(x[i])) for i in range(len(x))] if isinstance(x, Pool) else x
        for v, node in enumerate(nodes):
            value = views[at[v]]
            if isinstance(x, Pool):
                value = _shortest(value, root[v], one.form)
            elif value is None or (one.form == "entry" and value == one.default):
                continue
            graph.nodes[node][one.name] = value if one.form != "entry" else one.type(value)
    below = np.flatnonzero(forest.parent >= 0)
    graph.add_edges_from((nodes[forest.parent[v]], nodes[v]) for v in below)
    return graph


def _shortest(view: tuple[Any, list[Any]], root: bool, form: str) -> Any:
    """A matrix as :meth:`Forest.from_arrays` takes it, in the shortest form."""
    matrix, rows = view
    if form == "opening" and matrix.size == 1:
        return float(matrix[0, 0])
    if root or form == "rewards":
        return rows[0]
    return matrix[:, 0] if form == "opening" and matrix.shape[1] == 1 else matrix


def _check_graph(networkx: Any, graph: Any) -> tuple[list[Any], list[int]]:
    """Nodes in the order of the boxes, and the number of the parent of each."""
    if not isinstance(graph, networkx.Graph) or not graph.is_directed() or graph.is_multigraph():
        raise InvalidForest(
            f"a forest must be a networkx.DiGraph, but this is a {type(graph).__name__}. Draw an "
            f"edge from each parent to its child."
        )
    if len(graph) == 0:
        raise InvalidForest("a forest needs at least one box, but the graph has no nodes.")
    several = [v for v, degree in graph.in_degree() if degree > 1]
    if several:
        above = list(graph.predecessors(several[0]))
        raise InvalidForest(
            f"a box has at most one parent, but node {several[0]!r} has {len(above)}: "
            f"{short(above)} ({such(len(several), 'node')}). Only forests can be solved."
        )
    nodes = list(graph)
    plain = all(isinstance(v, (int, np.integer)) and not isinstance(v, bool) for v in nodes)
    if plain and sorted(nodes) == list(range(len(nodes))):
        nodes = list(range(len(nodes)))
    number = {v: i for i, v in enumerate(nodes)}
    above_of = {v: number[u] for u, v in graph.edges}
    return nodes, [above_of.get(v, -1) for v in nodes]
