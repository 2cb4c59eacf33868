"""The bibliography as data, parsed from docs/bibliography.md, and as BibTeX.

An entry reads: key, authors, *title*, where and when, the modules that name it, what was checked.
"""

import difflib
import re
import unicodedata
from dataclasses import dataclass
from functools import cache

from installation import document
from lessons.links import ADDRESS, ARXIV, DOI, OPEN_REVIEW

FILE = document("docs/bibliography.md")
ITEM = re.compile(r"^- .*(?:\n  .*)*", re.MULTILINE)
ENTRY = re.compile(r"- \*\*(.+?) (\d{4}[a-z]?)\*\* (.+?): \*(.+?)\*\. (.+?)\.? For (`.+?`)\. (?:Checked|From memory)")
YEAR = re.compile(r"\b(?:19|20)\d{2}\b")
PAGES = re.compile(r"pages (\d+) to (\d+)")
PERIODICAL = re.compile(r"^(.+?) (\d+)(?:\((\d+)\))?(?:,|$)")  # Neural Computation 14(8), 2002
CONFERENCE = re.compile(r"^[A-Z][\w ]*? \d{4}|^Proceedings")  # NIPS 2012
ESCAPED = {"&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_", "$": r"\$"}


@dataclass(frozen=True)
class Work:
    surname: str
    year: str  # with its letter: "2016a"
    authors: str
    title: str
    where: str  # venue, pages, year, numbers
    modules: tuple[str, ...]

    @property
    def name(self) -> str:
        """The entry's name in the bibliography, such as "Dean 2012"."""
        return f"{self.surname} {self.year}"

    @property
    def key(self) -> str:
        """The BibTeX key. It has letters and digits only."""
        plain = unicodedata.normalize("NFKD", self.name.translate(str.maketrans("øØłŁ", "oOlL")))
        return "".join(c for c in plain if c.isascii() and c.isalnum()).lower()

    @property
    def arxiv(self) -> str:
        return found[1] if (found := ARXIV.search(self.where)) else ""

    @property
    def doi(self) -> str:
        return found[1] if (found := DOI.search(self.where)) else ""

    @property
    def link(self) -> str:
        """The URL, from the DOI, arXiv number, OpenReview identifier or address; "" if none is known."""
        if self.doi:
            return f"https://doi.org/{self.doi}"
        if self.arxiv:
            return f"https://arxiv.org/abs/{self.arxiv}"
        if review := OPEN_REVIEW.search(self.where):
            return f"https://openreview.net/forum?id={review[1]}"
        return found[0] if (found := ADDRESS.search(self.where)) else ""


@cache
def entries() -> tuple[Work, ...]:
    """Return all entries in order. Raise ValueError if one cannot be read."""
    found = []
    for item in ITEM.findall(FILE.read_text("utf-8").split("## A", 1)[1]):
        match = ENTRY.match(" ".join(item.split()))
        if match is None:
            raise ValueError(
                f"docs/bibliography.md: {item[:60]!r} is not a valid entry; compare it with the entries around it."
            )
        surname, year, authors, title, where, modules = match.groups()
        found.append(Work(surname, year, authors, title, where, tuple(re.findall(r"`(.+?)`", modules))))
    return tuple(found)


def cited_by(name: str) -> tuple[Work, ...]:
    """Return the entries cited by a chapter or module. Its name may be, for example, "averaging", "easgd" or
    "algorithms.averaging.easgd".

    Raise ValueError if nothing with this name cites anything.
    """
    modules = {module for entry in entries() for module in entry.modules}
    wanted = {module for module in modules if name == module or module.endswith(f".{name}")}
    if f"lessons.{name}" in wanted:  # a chapter before a family of that name
        wanted = {f"lessons.{name}"}
    if not wanted:
        known = sorted({module.rpartition(".")[2] for module in modules})
        close = difflib.get_close_matches(name, known, n=1)
        raise ValueError(f"nothing named {name[:60]!r} cites a work{f'; did you mean {close[0]}?' if close else '.'}")
    return tuple(entry for entry in entries() if wanted & {*entry.modules})


def bibtex(entry: Work) -> str:
    """Return an entry in BibTeX: a journal article, a conference paper, or a work on arXiv or elsewhere."""
    where = _venue(entry)
    periodical = PERIODICAL.match(where)
    fields = {"author": _authors(entry.authors), "title": f"{{{entry.title}}}", "year": entry.year[:4]}
    if periodical and not YEAR.fullmatch(periodical[2]):
        kind = "article"
        fields |= {"journal": periodical[1], "volume": periodical[2]}
        fields |= {"number": periodical[3]} if periodical[3] else {}
    elif CONFERENCE.match(where):
        kind, fields["booktitle"] = "inproceedings", where
    else:
        kind = "misc"
        if where:
            fields["howpublished"] = where
    if pages := PAGES.search(entry.where):
        fields["pages"] = f"{pages[1]}--{pages[2]}"
    if entry.arxiv:
        fields |= {"eprint": entry.arxiv, "archiveprefix": "arXiv"}
    if entry.doi:
        fields["doi"] = entry.doi
    if entry.link:
        fields["url"] = entry.link
    verbatim = ("doi", "url", "eprint")
    lines = [f"  {name} = {{{text if name in verbatim else _escaped(text)}}}," for name, text in fields.items()]
    return "\n".join([f"@{kind}{{{entry.key},", *lines, "}", ""])


def _venue(entry: Work) -> str:
    """Return the venue of a work, without numbers, pages, year and notes, which have their own fields."""
    text = ADDRESS.sub("", OPEN_REVIEW.sub("OpenReview", DOI.sub("", ARXIV.sub("", entry.where))))
    text = re.sub(r"\([^()]*[a-z ]{3,}[^()]*\)", "", PAGES.sub("", text))
    parts = [part.strip() for part in text.split(",")]
    return ", ".join(part for part in parts if part and not re.fullmatch(r"\d{4}", part)).strip(" .;")


def _authors(text: str) -> str:
    """Return authors as BibTeX joins them, such as "J. Dean and G. S. Corrado and others"."""
    text = re.sub(r"\s*\([^()]*\)", "", text)
    return " and ".join(re.split(r", | and ", text))


def _escaped(text: str) -> str:
    return "".join(ESCAPED.get(letter, letter) for letter in text)
