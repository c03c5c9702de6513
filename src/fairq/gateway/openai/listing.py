"""The answer to `GET /v1/models`, as far as it is read."""

import msgspec


class Listed(msgspec.Struct):
    id: str


class Listing(msgspec.Struct):
    data: list[Listed]


decode_listing = msgspec.json.Decoder(Listing).decode
