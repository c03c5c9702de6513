"""A JSON document that does not fit its type: the decoder's words, turned into ours.

Expected `int | null`, got `str` - at `$.max_tokens`     becomes     max_tokens = "100": must be an integer
"""

import re
from typing import Self

from msgspec import DecodeError, Raw, Struct
from msgspec.json import Decoder

_TEXT = re.compile(r"(?P<rule>.*?)(?: - at `\$\.?(?P<key>.*)`)?", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`")
_EXPECTED = re.compile(r"Expected `(?P<kinds>[^`]*)`(?: (?P<length>of length )?(?P<sign>[<>]=) (?P<bound>\S+))?")
_GOT = re.compile(r"got `(?P<kind>[^`]*)`")

_KINDS = {"int": "an integer", "float": "a number", "str": "text", "bool": "true or false"}
_KINDS |= {"array": "a list", "object": "an object", "null": "null"}
_SHOWN = 40  # bytes of a wrong value in a message

_members = Decoder(dict[str, Raw]).decode


class WrongValue(Struct, frozen=True):
    """
    key      path of the value, "" for the document as a whole
    value    as it was written; "" where it is long or deep inside
    rule     what it breaks
    wants    type, value, presence, absence: what kind of rule that is
    """

    key: str
    value: str
    rule: str
    wants: str

    @classmethod
    def read(cls, error: DecodeError, document: bytes) -> Self:
        """From the decoder's error about a document that is JSON."""
        found = _TEXT.fullmatch(str(error))
        assert found is not None  # it matches everything
        key, said = found["key"] or "", found["rule"]
        for pattern, rule, wants in ((_MISSING, "is missing", "presence"), (_UNKNOWN, "is not known here", "absence")):
            if named := pattern.fullmatch(said):
                return cls(f"{key}.{named['name']}" if key else named["name"], "", rule, wants)
        got = _GOT.search(said)
        value = _written(key, document)
        rule = _rule(said) + (f", not {_KINDS.get(got['kind'], got['kind'])}" if got and not value else "")
        return cls(key, value, rule, "type" if got else "value")

    def __str__(self) -> str:
        if self.wants in ("presence", "absence"):
            return f"{self.key} {self.rule}"
        return f"{self.key or 'the body'}{f' = {self.value}' if self.value else ''}: {self.rule}"


def _written(key: str, document: bytes) -> str:
    try:
        value = bytes(_members(document).get(key, b""))
    except (DecodeError, RecursionError):  # the decoder stopped at the wrong value and never saw the broken rest
        return ""
    return " ".join(value.decode().split()) if len(value) <= _SHOWN else ""


def _rule(said: str) -> str:
    expected = _EXPECTED.match(said)
    if expected is None:
        return said[:1].lower() + said[1:].replace("`", "")
    kinds = [_KINDS.get(kind, kind) for kind in expected["kinds"].split(" | ") if kind != "null"]
    rule = f"must be {' or '.join(kinds) or 'null'}"
    if expected["bound"]:
        limit = f"at {'least' if expected['sign'] == '>=' else 'most'} {expected['bound']}"
        rule = f"must have a length of {limit}" if expected["length"] else f"{rule} of {limit}"
    return rule
