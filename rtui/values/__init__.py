"""What the bytes of a value mean: decoders that are chosen by the bytes, and never run any of them.

    found = decode(data)                     # data: at most what a preview holds, say 64 KiB
    found.title                              # "base64 › gzip › JSON"
    found.form                               # Form.TREE, TEXT, HEX or LISTING: how to show it
    found.root                               # a Node: kind, value, type_name, name, children, total, is_cut
    found.notes                              # sentences: limits, damage, a missing library, dates
    found.truncated                          # whether this is the beginning only
    found.data                               # the innermost bytes, for a pager or a file
    for row in outline(found.root, folded=is_folded, by_name=True): row.depth, row.node, row.path, row.is_folded
    choices(data, found=found).fitting       # names to switch through, the best first; pass one as `choose`
    choices(data, found=found).others        # all other decoders by name; most fail, see found.has_failed
    summarise(data).text                     # one line for a row: "gzip › JSON {12}"; None where the bytes say it
    decode(data, choose="hex")               # or "base64 › hex", or any of decoder_names()
    node_json(found.root)                    # a part of the tree to be copied; None where not all of it is there,
    node_json(found.root, may_be_cut=True)   # or with a mark at each place where something was not read
    found.is_data_whole                      # whether found.data is all of it
    decode(data, is_whole=False)             # data is the beginning of a longer value: that is normal

- **Nothing is safe to show.** `value`, `type_name`, `name` and `notes` hold what the bytes hold: str goes through
  `display_text`, bytes through `display` of `keyspace/text/display.py`. `Node.raw` is what is copied.
- **Never raises**, whatever the bytes; only UnknownDecoderError for a `choose` that no decoder has.
- **Bounded** by `Limits`: bytes of each layer, layers, depth, elements and time. What was read until a limit is there,
  `truncated` is true, a note says which limit. It may take `Limits.seconds` of a processor, a quarter of
  a second: long values are decoded in a thread, not on the event loop.
- **Nothing is executed or constructed**: of a program in disguise (pickle) calls are named with their arguments.
- A format whose library is missing is named in the chain, its bytes are shown as they are, and a note says what to
  install.
- A Form.TEXT root is one TEXT or NUMBER node, whose lines are shown; a Form.HEX root one BYTES node; a Form.LISTING one
  is a list of instructions, which is not to be sorted.

How a decoder is chosen is in `chain.py`; how a user adds one, in `plugins.py`.
"""

from __future__ import annotations

from rtui.values.chain import Choices, UnknownDecoderError, alternatives, choices, decode, decoder_names
from rtui.values.json_form import CUT, is_cut, node_json
from rtui.values.limits import DEFAULT, Limits
from rtui.values.plugins import Decoder
from rtui.values.summary import Summary, summarise, summary
from rtui.values.tree import SEPARATOR, Decoded, Form, Kind, Node, OutlineRow, Step, drop_unfinished, outline

__all__ = [
    "CUT",
    "DEFAULT",
    "SEPARATOR",
    "Choices",
    "Decoded",
    "Decoder",
    "Form",
    "Kind",
    "Limits",
    "Node",
    "OutlineRow",
    "Step",
    "Summary",
    "UnknownDecoderError",
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
