"""PipeDream's own profile of a model, graph.txt: one line per layer, and one indented line per edge.

    node1 -- Input0 -- forward_compute_time=0, backward_compute_time=0, activation_size=0, parameter_size=0
    node2 -- Linear(8, 2) -- forward_compute_time=1.5, backward_compute_time=3, activation_size=8, parameter_size=72
        node1 -- node2

Times are in milliseconds and sizes in bytes, for one mini-batch. The order of the lines does not matter: the edges
define the order of the layers. An activation that consists of several tensors has a list of sizes, [64.0; 64.0].
Inputs do not count as layers and are left out, as in the authors' program.
"""

from collections.abc import Iterable, Sequence

FIELDS = "forward_compute_time", "backward_compute_time", "activation_size", "parameter_size"
UNITS = 1e-3, 1e-3, 1.0, 1.0  # s, s, bytes, bytes


def is_graph(lines: Sequence[str]) -> bool:
    """True if the first non-empty line looks like a node or an edge."""
    return " -- " in next((line for line in lines if line.strip()), "")


def columns(lines: Iterable[str]) -> tuple[tuple, ...]:
    """Return five columns, with a value for each layer in order: forward and backward times (s), sizes of activations
    and of weights (bytes), and names.

    Raise ValueError if a line cannot be read or the graph is not a chain.
    """
    names: dict[str, str] = {}
    costs: dict[str, list[float]] = {}
    edges: list[tuple[str, str]] = []
    for line in filter(str.strip, lines):
        words = line.strip().split(" -- ")
        if line[0].isspace() and len(words) == 2:
            edges.append((words[0], words[1]))
        elif len(words) >= 3:
            names[words[0]], costs[words[0]] = words[1], _costs(words[0], words[2])
        else:
            raise ValueError(f"{line.strip()[:60]!r} is neither a node nor an edge of PipeDream's graph.txt.")
    chain = _chain(names, edges)
    return *zip(*(costs[node] for node in chain), strict=True), tuple(names[node] for node in chain)


def _costs(node: str, text: str) -> list[float]:
    given = dict(word.split("=", 1) for word in text.split(", ") if "=" in word)
    if missing := [name for name in FIELDS if name not in given]:
        raise ValueError(f"{node} has no {missing[0]}; a node needs {', '.join(FIELDS)}.")
    costs = []
    for name, unit in zip(FIELDS, UNITS, strict=True):
        try:
            costs.append(unit * sum(map(float, given[name].strip().strip("[]").split(";"))))
        except ValueError:
            raise ValueError(f"{name} of {node} is not a number: {given[name][:40]!r}.") from None
    return costs


def _chain(names: dict[str, str], edges: Sequence[tuple[str, str]]) -> list[str]:
    """Return the nodes in the order of the edges, without inputs.

    Raise ValueError, which names a node, if the graph is not a chain.
    """
    if unknown := [node for edge in edges for node in edge if node not in names]:
        raise ValueError(f"an edge starts or ends at {unknown[0][:40]}, which no line describes; add a line for it.")
    ends = {end for _, end in edges}
    inputs = {node for node in names if node not in ends and names[node].startswith("Input")}
    layers = [node for node in names if node not in inputs]
    after: dict[str, list[str]] = {node: [] for node in layers}
    before: dict[str, list[str]] = {node: [] for node in layers}
    for start, end in edges:
        if start not in inputs:
            after[start].append(end)
            before[end].append(start)
    for way, verb in ((after, "leads to"), (before, "follows")):
        for node, others in way.items():
            if len(others) > 1:
                several = " and ".join(others[:2])
                raise ValueError(f"{node} ({names[node][:40]}) {verb} {several}; only a chain of layers can be cut.")
    if not layers:
        raise ValueError("the graph has no layers, only inputs; give it a line for each layer.")
    starts = [node for node in layers if not before[node]]
    if len(starts) != 1:
        what = f"both {starts[0]} and {starts[1]} begin it" if starts else "it is a cycle"
        raise ValueError(f"the graph is not a chain of layers: {what}; connect its layers in one chain.")
    chain = starts
    while after[chain[-1]]:
        chain += after[chain[-1]]
    if len(chain) < len(layers):  # there is a cycle next to the chain
        left = next(node for node in layers if node not in chain)
        raise ValueError(f"{left} ({names[left][:40]}) is not connected to {chain[0]}; only a chain can be cut.")
    return chain
