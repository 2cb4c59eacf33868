"""Turn arXiv numbers, DOIs and OpenReview identifiers, which authors write as plain text, into links.

- J. Dean et al., ..., arXiv:1604.00981          [arXiv:1604.00981](https://arxiv.org/abs/1604.00981)
"""

import re

ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")
DOI = re.compile(r"doi:(10\.\d{4,9}/(?:[^\s,;()]|\([^\s,;()]*\))*[^\s,;().])")
OPEN_REVIEW = re.compile(r"OpenReview (\w{8,})")
ADDRESS = re.compile(r"https?://[^\s)]+[^\s),.]")
TARGETS = (
    (ARXIV, "https://arxiv.org/abs/"),
    (DOI, "https://doi.org/"),
    (OPEN_REVIEW, "https://openreview.net/forum?id="),
)


def link_identifiers(text: str) -> str:
    """Return Markdown in which arXiv numbers, DOIs and OpenReview identifiers are links. Existing links stay as they
    are.
    """
    for pattern, target in TARGETS:
        text = re.sub(rf"(?<!\[){pattern.pattern}", lambda m, target=target: f"[{m[0]}]({target}{m[1]})", text)
    return text
