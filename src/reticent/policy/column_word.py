"""The name of a column as the rules read it."""

from __future__ import annotations

import re
import unicodedata

_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "°": "o ", "º": "o "})


def plain_word(name: str) -> str:
    """A name in small letters without accents, its parts joined by underscores.

    >>> plain_word("N° patient"), plain_word("Pat. Nr."), plain_word("birthDate"), plain_word("Größe [cm]")
    ('no_patient', 'pat_nr', 'birth_date', 'groesse_cm')
    """
    name = name.translate(_UMLAUTS)
    name = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()).strip("_")
