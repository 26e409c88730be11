"""Text made comparable: the official rule of SQuAD and MRQA, and a kinder one beside it."""

from __future__ import annotations

import re
import string
import unicodedata
from functools import lru_cache

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_TYPOGRAPHIC = str.maketrans(
    {"‘": "'", "’": "'", "‚": "'", "‛": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"'}
    | dict.fromkeys("‐‑‒–—―−-", " ")
)


@lru_cache(maxsize=1024)  # each answer and each accepted one is asked for several times
def squad_normalised(text: str) -> str:
    """The official form of SQuAD v1.1 and MRQA: lower case, no ASCII punctuation, no articles, single spaces.

    As evaluate-v1.1.py of Rajpurkar et al., "SQuAD: 100,000+ questions for machine comprehension of text",
    EMNLP 2016: punctuation is deleted before the words a, an and the are replaced by a space.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


@lru_cache(maxsize=1024)
def lenient_normalised(text: str) -> str:
    """As `squad_normalised`, with forms unified that a reader takes for the same.

    Compatibility forms (NFKC), typographic quotes as ASCII, dashes and hyphens as spaces, accents dropped.
    """
    decomposed = unicodedata.normalize("NFKD", text.translate(_TYPOGRAPHIC))
    return squad_normalised("".join(letter for letter in decomposed if not unicodedata.combining(letter)))
