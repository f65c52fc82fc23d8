"""The meaning of a value's bytes: decoders that are chosen by the bytes, and never execute any of them.

    found = decode(data)                     # data: no more than a preview holds, say 64 KiB
    found.title                              # "base64 › gzip › JSON"
    found.form                               # ValueForm.TREE, TEXT, HEX or LISTING: how to show it
    found.root                               # a ValueNode: kind, value, type_name, name, children, total, is_cut
    found.notes                              # sentences: limits, damage, a missing library, dates
    found.truncated                          # whether this is the beginning only
    found.data                               # the innermost bytes, for a pager or a file
    for row in outline(found.root, folded=is_folded, by_name=True): row.depth, row.node, row.path, row.is_folded
    choices(data, found=found).fitting       # names to switch through, the best first; pass one as `choose`
    choices(data, found=found).others        # all other decoders by name; most fail, see found.has_failed
    summarise(data).text                     # one line for a row: "gzip › JSON {12}"; None if the bytes say as much
    decode(data, choose="hex")               # or "base64 › hex", or any of decoder_names()
    node_json(found.root)                    # a part of the tree as JSON to copy; None if it is incomplete,
    node_json(found.root, may_be_cut=True)   # or with a mark wherever something was not read
    found.is_data_whole                      # whether found.data is complete
    decode(data, is_whole=False)             # data is the beginning of a longer value, which is normal

- **Nothing is safe to show.** `value`, `type_name`, `name` and `notes` hold raw data: str goes through
  `display_text`, bytes through `display` of `keyspace/text/display.py`. `ValueNode.raw` is for copying.
- **Never raises**, whatever the bytes; only UnknownDecoderError for a `choose` that no decoder has.
- **Bounded** by `DecodingLimits`: bytes of each layer, layers, depth, elements and time. The part read before a limit
  is kept, `truncated` is true, a note names the limit. It may take `DecodingLimits.seconds` of a processor, a quarter
  of a second: long values are decoded in a thread, not on the event loop.
- **Nothing is executed or constructed**: for a program in disguise (pickle) calls are named with their arguments.
- A format whose library is missing is named in the chain, its bytes are shown as they are, and a note names the
  package to install.
- A ValueForm.TEXT root is one TEXT or NUMBER node, shown line by line; a ValueForm.HEX root one BYTES node; a
  ValueForm.LISTING one is a list of instructions, which must not be sorted.

`chain.py` chooses decoders; `plugins.py` tells how a user adds one.
"""

from __future__ import annotations

from rtui.values.chain import (
    Choices,
    UnknownDecoderError,
    ValueSummary,
    alternatives,
    choices,
    decode,
    decoder_names,
    summarise,
    summary,
)
from rtui.values.json_text import CUT, is_cut, node_json
from rtui.values.plugins import Decoder
from rtui.values.tree import (
    DEFAULT,
    SEPARATOR,
    Decoded,
    DecodingLimits,
    DecodingStep,
    OutlineRow,
    ValueForm,
    ValueKind,
    ValueNode,
    drop_unfinished,
    outline,
)

__all__ = [
    "CUT",
    "DEFAULT",
    "SEPARATOR",
    "Choices",
    "Decoded",
    "Decoder",
    "DecodingLimits",
    "DecodingStep",
    "OutlineRow",
    "UnknownDecoderError",
    "ValueForm",
    "ValueKind",
    "ValueNode",
    "ValueSummary",
    "alternatives",
    "choices",
    "decode",
    "decoder_names",
    "drop_unfinished",
    "is_cut",
    "node_json",
    "outline",
    "summarise",
    "summary",
]
