"""Chooses decoders by what the bytes are, one after another, until a tree, text or plain bytes are left.

For `H4sIAA…` that goes like this. base64 fits its alphabet, but so do words: it counts only since what comes out of it
is recognised. That begins as gzip does; what comes out of that is a JSON object, so the chain is base64 › gzip › JSON.
At each layer every decoder is asked how sure it is; one with a mark that nothing else has wins at once, else the surest
one, the earlier one of two that are equally sure. Decoders that need proof are asked only when no other one is sure,
and text and hex are what is left.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rtui.values import (
    bson,
    cbor,
    charsets,
    compressed,
    encoded,
    igbinary,
    java,
    msgpack,
    nearly_json,
    php,
    php_compression,
    pickles,
    pictures,
    plain,
    prefixed,
    protobuf,
    ruby,
    signed,
    snappy,
)
from rtui.values.formats import CERTAIN, LIKELY, OFFERED, Format
from rtui.values.limits import DEFAULT, Budget, Exceeded, Limits, MissingLibrary, Stopped
from rtui.values.plain import HEX, TEXT
from rtui.values.plugins import plugin_formats
from rtui.values.prefixed import PREFIXES, after, offsets
from rtui.values.source import Source
from rtui.values.tree import SEPARATOR, Decoded, Form, Kind, Node, Step

BUILT_IN: Final = (
    *nearly_json.FORMATS,
    *compressed.FORMATS,
    *php_compression.FORMATS,
    *prefixed.FORMATS,
    *pickles.FORMATS,
    *php.FORMATS,
    *igbinary.FORMATS,
    *java.FORMATS,
    *ruby.FORMATS,
    *bson.FORMATS,
    *pictures.FORMATS,
    *msgpack.FORMATS,
    *cbor.FORMATS,
    *encoded.FORMATS,
    *signed.FORMATS,
    *snappy.FORMATS,
    *plain.FORMATS,
    *protobuf.FORMATS,
    *charsets.FORMATS,
)
"""All decoders but the two that are left in the end, in the order in which they are asked."""

INSTALL: Final = "install redis-rtui[decode] to read it"

MIN_PROOF_BYTES: Final = 6
"""How long what comes out of a decoder without a mark has to be to prove that it was right."""


class UnknownDecoderError(ValueError):
    """No decoder has the name that was chosen; the message quotes it."""


def formats() -> tuple[Format, ...]:
    """Return the decoders: the user's own before those of rtui, text and hex last."""
    return (*plugin_formats(), *BUILT_IN, TEXT, HEX)


def decoder_names() -> tuple[str, ...]:
    """Return the names that `choose` understands."""
    return tuple(dict.fromkeys(one.name for one in (*formats(), *PREFIXES)))


def decode(data: bytes, *, limits: Limits = DEFAULT, choose: str | None = None, is_whole: bool = True) -> Decoded:
    """Return what a value means, by the decoders that fit it or that were chosen.

    `choose` names the first decoder, or several separated by ` › `; what comes after them is recognised again.
    `is_whole` says that `data` is all of the value, not only its beginning. Never raises for any bytes; raises
    UnknownDecoderError for a name that no decoder has.
    """
    wanted = [_named(name) for name in choose.split(SEPARATOR)] if choose else []
    return _Chain(Source(data, is_whole), Budget.starting(limits)).follow(wanted)


class Choices(NamedTuple):
    """What `choose` may be for a value."""

    fitting: tuple[str, ...]
    """What was found, its layers, what else recognises the bytes, text and hex, the best first."""
    others: tuple[str, ...]
    """All other decoders by name; most of them fail, which `Decoded.has_failed` tells."""


def choices(data: bytes, *, limits: Limits = DEFAULT, is_whole: bool = True, found: Decoded | None = None) -> Choices:
    """Return all decoders for these bytes, those that fit first.

    `found` is what `decode` has returned for them without a choice; where it is given they are not decoded again.
    """
    fitting = alternatives(data, limits=limits, is_whole=is_whole, found=found)
    source = Source(data, is_whole)
    first = {name.split(SEPARATOR)[0] for name in fitting}
    left = sorted({one.name for one in formats() if one.can_read(source)} - first, key=str.casefold)
    return Choices(fitting, tuple(left))


def alternatives(
    data: bytes, *, limits: Limits = DEFAULT, is_whole: bool = True, found: Decoded | None = None
) -> tuple[str, ...]:
    """Return the decoders that fit, as `Choices.fitting`."""
    found = found or decode(data, limits=limits, is_whole=is_whole)
    names = [found.title]
    for length in range(len(found.chain) - 1, 0, -1):
        outer = found.chain[:length]
        names += [SEPARATOR.join((*outer, last)) for last in (TEXT.name, HEX.name)]
    source, budget = Source(data, is_whole), Budget.starting(limits)
    names += [one.name for _, one in _candidates(source, budget) if one.name != found.chain[0]]
    if source.is_text:
        names.append(TEXT.name)
    return tuple(dict.fromkeys((*names, HEX.name)))


def _named(name: str) -> Format:
    found = next((one for one in (*formats(), *PREFIXES) if one.name.casefold() == name.casefold()), None)
    if found is None:
        raise UnknownDecoderError(f"there is no decoder {name!r}")
    return found


@dataclass(slots=True)
class _Chain:
    """The decoders that were applied to a value so far, and what came out."""

    source: Source
    budget: Budget
    names: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)

    def follow(self, wanted: list[Format]) -> Decoded:
        """Apply the wanted decoders, then those that fit, until nothing is left to decode."""
        while True:
            chosen = wanted.pop(0) if wanted else None
            if chosen is None and len(self.names) >= self.budget.limits.layers:
                self.notes.append(f"only {self.budget.limits.layers} layers are decoded")
                chosen = TEXT if self.source.is_text else HEX
            fitting = chosen or recognise(self.source, self.budget, self.failed, self.notes)
            try:
                step = fitting.read(self.source, self.budget)
            except Stopped as stopped:
                self.notes.append(_failure(fitting, stopped))
                self.failed.add(fitting.name)
                if chosen is not None or isinstance(stopped, MissingLibrary):
                    self.names.append(fitting.name)
                    return self._ended(Step(Node(Kind.BYTES, self.source.data), form=Form.HEX), has_failed=True)
                continue
            self.names.append(fitting.name)
            self.notes += step.notes
            if isinstance(step.content, Node):
                return self._ended(step)
            self.source = Source(step.content, self.source.is_whole and not step.truncated)
            self.failed.clear()

    def _ended(self, step: Step, *, has_failed: bool = False) -> Decoded:
        root = step.content if isinstance(step.content, Node) else Node(Kind.BYTES, step.content)
        truncated = step.truncated or not self.source.is_whole
        names, notes = tuple(self.names), tuple(self.notes)
        is_whole = self.source.is_whole
        return Decoded(names, step.form, root, self.source.data, notes, truncated, has_failed, is_whole)


def _failure(fitting: Format, stopped: Stopped) -> str:
    """Say why a decoder has made nothing of the bytes."""
    match stopped:
        case MissingLibrary():
            return f"{fitting.name}: {INSTALL}"
        case Exceeded():
            return f"{fitting.name}: {stopped}"
    return f"{fitting.name} {stopped}"


def recognise(source: Source, budget: Budget, without: set[str], notes: list[str]) -> Format:
    """Return the decoder that fits best; text or hex where none does.

    Those `without` are not asked; `notes` gets what is to be said of plugins that fail.
    """
    fitting = (one for sure, one in _candidates(source, budget, notes) if sure > OFFERED and one.name not in without)
    best = next(fitting, None) or _behind_prefix(source, budget, without)
    if best is not None:
        return best
    for one in formats():
        if one.needs_proof and one.name not in without and _is_proved(one, source, budget):
            return one
    return TEXT if source.is_text and TEXT.name not in without else HEX


def _behind_prefix(source: Source, budget: Budget, without: set[str]) -> Format | None:
    """Return the decoder that leaves out the bytes before something that has a mark and can be read."""
    for at in offsets(source):
        skip, behind = after(at), Source(source.data[at:], source.is_whole)
        sure, fitting = next(iter(_candidates(behind, budget)), (0.0, HEX))
        if skip.name in without or sure < LIKELY:
            continue
        try:
            step = fitting.read(behind, budget.probe())
        except MissingLibrary:
            return skip
        except Stopped:
            continue
        if not (step.truncated and source.is_whole) or step.limited or isinstance(step.content, Node):
            return skip
    return None


def _candidates(source: Source, budget: Budget, notes: list[str] | None = None) -> list[tuple[float, Format]]:
    """Return the decoders that recognise the bytes without a proof, the surest first."""
    if not source.data:
        return []
    found: list[tuple[float, Format]] = []
    for one in formats():
        if one.needs_proof or one is TEXT:
            continue
        try:
            confidence = one.sniff(source, budget)
        except Stopped as stopped:
            note = _failure(one, stopped)
            if notes is not None and note not in notes:
                notes.append(note)
            continue
        if confidence is not None and confidence > 0:
            found.append((confidence, one))
            if confidence >= CERTAIN:
                break
    return sorted(found, key=lambda one: -one[0])


def _is_proved(fitting: Format, source: Source, budget: Budget) -> bool:
    """Tell whether what a decoder makes of the bytes is itself recognised, as text or as something else."""
    if fitting.sniff(source, budget) is None:
        return False
    probe = budget.probe()
    try:
        step = fitting.read(source, probe)
    except Stopped:
        return False
    if not isinstance(step.content, bytes) or len(step.content) < MIN_PROOF_BYTES:
        return False
    if step.truncated and source.is_whole and not step.limited:
        return False
    inner = Source(step.content, not step.truncated)
    return inner.is_text or any(confidence >= LIKELY for confidence, _ in _candidates(inner, probe))
