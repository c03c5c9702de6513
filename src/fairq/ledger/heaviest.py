"""Who was charged most: a quick first pass, for audits that cannot compare every pair of tenants."""

from collections import Counter
from pathlib import Path

import msgspec
from msgspec import Struct

from fairq.ledger.segment import LedgerError, segments_in

MARK = b'{"is":"Dispatch"'


class _Charge(Struct):
    tenant: str
    charge: int


def charges(path: Path) -> Counter[str]:
    """Charged cost by tenant, over a segment or a pool's folder. Lines that cannot be read are left to the reader."""
    total: Counter[str] = Counter()
    decode = msgspec.json.Decoder(_Charge).decode
    try:
        for segment in [path] if path.is_file() else segments_in(path):
            with segment.open("rb") as file:
                for line in file:
                    if line.startswith(MARK):
                        try:
                            charge = decode(line)
                        except msgspec.MsgspecError:
                            continue
                        total[charge.tenant] += charge.charge
    except OSError as error:
        raise LedgerError(f"{path}: {error.strerror or error}") from None
    return total
