r"""Convert plain-text formulas in docstrings to TeX: `w <- w - lr g / (sqrt(s) + eps)` gets a fraction and a root.

The notation is that of our docstrings: juxtaposition is a product, `a / b c` is (a / b) c, `x_i` and `x[i]` have an
index, `s(z)` is a function, `|v|` is a norm, `sum over i of` is a sum. A formula with other words cannot be typeset,
and stays plain text.
"""

import re

GREEK = {"mu": r"\mu", "lam": r"\lambda", "tau": r"\tau", "eps": r"\epsilon", "pi": r"\pi", "zeta": r"\zeta"}
FUNCTIONS = ("exp", "log", "tanh", "min", "max", "softmax", "onehot")
SIGNS = {"<-": r"\leftarrow", "=": "="}
BIG = {"sum": r"\sum", "max": r"\max", "mean": r"\operatorname*{mean}"}  # of what is indexed
NAMES = ("out", "gain", "bias", "dgain", "dbias", "scale", "stride", "look", "bm", "rms", "sgd", "most",
         "table", "places", "largest", "window", "rows")  # fmt: skip
"""Names of arrays and settings that have several letters, other than d and one more letter."""
TOKEN = re.compile(r"<-|\b[a-z]\(|\.\.\.|\d+\.?\d*(?:e-?\d+)?|[A-Za-z]+\d?'?(?:_\w)?|[-+*/^()\[\]|,.<=]|\S")
GAP, COMMA = re.compile(r" {6,}"), re.compile(r",  +")


def tex(text: str) -> tuple[list[str], list[str]]:
    """Return the statements of a formula in TeX, and the remarks after them. If any part cannot be converted, return
    ([], []).

    A remark on one of several lines is on that line alone, so such a formula is left as it is.
    """
    formulas, remarks = [], []
    lines = text.strip().splitlines()
    for line in lines:
        first, *others = GAP.split(line.strip())
        if others and not {"<-", "="} & {*others[-1].split()}:
            remarks.append(others.pop())
        done = [_Line(part).statement() for wide in (first, *others) for part in COMMA.split(wide)]
        if None in done or (remarks and lines[1:]):
            return [], []
        formulas += done
    return formulas, remarks


class Unset(ValueError):
    """Raised for a word or sign that cannot be typeset as part of a formula."""


class _Line:
    """A parser of one statement, read from left to right."""

    def __init__(self, text: str):
        self.tokens = [*TOKEN.findall(text), ""]

    def statement(self) -> str | None:
        """Return `left <- right` or `left = right` in TeX, or None for anything else."""
        try:
            left, sign = self.sum(), self.take("<-", "=")
            done = f"{left} {SIGNS[sign]} {self.sum()}"
            self.take("")
        except Unset:
            return None
        return done

    def take(self, *wanted: str) -> str:
        if self.tokens[0] not in wanted:
            raise Unset(self.tokens[0])
        return self.tokens.pop(0)

    def sum(self) -> str:
        sign = self.take("-") if self.tokens[0] == "-" else ""
        done = sign + self.product()
        while self.tokens[0] in ("+", "-"):
            done += f" {self.tokens.pop(0)} {self.product()}"
        return done

    def product(self) -> str:
        done = self.power()
        while self.tokens[0] not in ("", "+", "-", ")", "]", "|", ",", "<-", "=", "<"):
            if self.tokens[0] == "/":
                self.take("/")
                done = rf"\frac{{{_bare(done)}}}{{{_bare(self.power())}}}"
            elif self.tokens[0] in "*.":
                self.tokens.pop(0)
                done += rf" \cdot {self.power()}"
            else:
                done += rf"\,{self.power()}"
        return done

    def power(self) -> str:
        base = self.atom()
        if self.tokens[0] != "^":
            return base
        self.take("^")
        exponent = self.take("T") and r"\top" if self.tokens[0] == "T" else self.atom()
        return f"{base}^{{{exponent}}}"

    def atom(self) -> str:
        one = self.tokens.pop(0)
        if one == "(":  # a group, or a function's argument
            return self.enclose(r"\left(", ")", r"\right)")
        if one[1:] == "(":  # a function's name is one letter, `s(z)`; a product has a space, `a (w - z)`
            return self.enclose(rf"{one[0]}\left(", ")", r"\right)")
        if one == "|":
            return self.enclose(r"\lVert ", "|", r"\rVert ")
        if one in BIG and self.tokens[0] == "over":
            self.take("over")
            end = self.tokens.index("of") if "of" in self.tokens else -1
            under, self.tokens = self.tokens[:end], self.tokens[end + 1 :]
            return f"{BIG[one]}_{{{' '.join(map(_index, under))}}} {self.product()}"
        if one == "sqrt":
            self.take("(")
            return self.enclose(r"\sqrt{", ")", "}")
        if one in FUNCTIONS:
            return rf"\operatorname{{{one}}} {self.atom()}"
        name = _named(one)
        if self.tokens[0] == "[":
            self.take("[")
            return self.enclose(f"{name}_{{", "]", "}")
        return name

    def enclose(self, opening: str, end: str, closing: str) -> str:
        inner = [self.sum()]
        while self.tokens[0] == ",":
            self.take(",")
            inner.append(self.sum())
        self.take(end)
        return f"{opening}{', '.join(inner)}{closing}"


def _index(word: str) -> str:
    """Return one word of a sum's range in TeX."""
    return rf"\text{{{word}}}" if len(word) > 1 and word.isalpha() else _named(word)


def _named(word: str) -> str:
    """Return a name or a number in TeX; raise Unset for an English word."""
    if re.fullmatch(r"\d+\.?\d*|[<,]", word):
        return word
    if word == "...":
        return r"\dots"
    if power := re.fullmatch(r"(\d+)e(-?\d+)", word):
        return rf"{power[1]} \cdot 10^{{{power[2]}}}"
    found = re.fullmatch(r"(d?)([A-Za-z]+?)(\d?)('?)(?:_(\w))?", word)
    if not found:
        raise Unset(word)
    d, stem, number, prime, index = found.groups(default="")
    if word in ("lr", "rate"):  # as in the textbook
        return r"\eta"
    if d + stem in GREEK or d + stem in NAMES or len(d + stem) == 1:
        d, stem = "", d + stem
    if len(stem) > 1 and stem not in GREEK and stem not in NAMES and stem != "Wg":
        raise Unset(word)
    stem = GREEK.get(stem, stem if len(stem) == 1 else rf"\mathrm{{{stem}}}")
    lower = number or index
    return f"{d}{stem}{prime}" + (f"_{{{lower}}}" if lower else "")


def _bare(text: str) -> str:
    """Return an expression without brackets that enclose all of it: a fraction bar makes them unnecessary."""
    inner = text.removeprefix(r"\left(").removesuffix(r"\right)")
    return inner if text == rf"\left({inner}\right)" and r"\right)" not in inner.partition(r"\left(")[0] else text
