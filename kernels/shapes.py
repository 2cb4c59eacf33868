"""Shapes: the shapes that a kernel's arrays must have, declared once for its CPU and its GPU side.

    check = shapes("y (n, o), x (n, i), w (i, o), b (o)")        check(y, x, w, b) raises ValueError unless they match

The first occurrence of a letter defines its size, and all others must agree. A size may also be computed from letters
and from arguments after the arrays that are not arrays: "y (n // window), x (n)" is check(y, x, window). With >= an
axis may be longer. The first array is the result. It may hold whole numbers only if it is a code, or if all numbers
that it is computed from are whole; codes and positions are not counted among these. Compiled code does no bounds
checks: without this, a kernel would read and write beyond the end of a shorter array.
"""

import re

from kernels.compiled import WHOLE, is_whole
from kernels.compiler import register_jitable

CODES = ("codes", "packed", "words", "exponents")  # names of arrays of whole numbers that encode others
POSITIONS = ("index",)  # names of arrays of places in another array
ARRAY = re.compile(r"(\w+) \(((?:[^()]|\([^()]*\))*)\)")


def shapes(declared: str, *scalars: str):
    """Return a function that checks these shapes, callable from Python and from compiled functions."""
    arrays = {name: [place.strip() for place in places.split(",")] for name, places in ARRAY.findall(declared)}
    error = f"raise ValueError({f'the arrays of this call must have the shapes {declared}.'!r})"
    lines, letters = [f"def check({', '.join((*arrays, *scalars))}):"], set(scalars)
    for name, places in arrays.items():
        lines += [f"    if len({name}.shape) != {len(places)}:", f"        {error}"]
    first, *others = arrays
    numbers = [name for name in others if name not in (*CODES, *POSITIONS)]
    if first not in CODES:
        whole = " and ".join(f"is_whole({name})" for name in numbers) or "False"
        lines += [f"    if is_whole({first}) and not ({whole}):", f"        raise ValueError({WHOLE!r})"]
    for name, places in arrays.items():
        for axis, place in enumerate(places):
            if place.isidentifier() and place not in letters:
                letters.add(place)
                lines.append(f"    {place}_ = {name}.shape[{axis}]")
    for name, places in arrays.items():
        for axis, place in enumerate(places):
            wanted = re.sub(r"[a-z]\w*", lambda word: word[0] if word[0] in scalars else f"{word[0]}_", place)
            wrong = f"< {wanted.removeprefix('>=')}" if place.startswith(">=") else f"!= {wanted}"
            lines += [f"    if {name}.shape[{axis}] {wrong}:", f"        {error}"]
    names: dict = {"__name__": __name__, "is_whole": is_whole}
    exec("\n".join(lines), names)
    return register_jitable(names["check"])
