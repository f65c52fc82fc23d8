"""Counts keys, bytes and times to live by hash slot, as `rtui.analysis.aggregate.slot_counts` does."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint64_t
from libc.string cimport memchr

from rtui.server.engine._tallies cimport Wide, wide_add

cdef enum:
    SLOT_COUNT = 16384

cdef struct SlotCounts:
    uint16_t crcs[256]
    uint64_t* keys  # by slot, as all of these
    uint64_t* unmeasured
    Wide* memory
    uint64_t* ttl_known
    uint64_t* no_ttl


cdef inline size_t count_slots(
    SlotCounts* slots, size_t count, const uint8_t** keys, size_t* lengths, const int64_t* sizes, const int64_t* ttl_ms
) noexcept nogil:
    """Count keys, and replace each by its tag, an empty one where it has none; return how many have one.

    Sizes and times to live are NULL where they are not known.
    """
    cdef size_t index, tagged = 0
    cdef const uint8_t* at
    cdef const uint8_t* end
    cdef const uint8_t* tag
    cdef const uint8_t* tag_end
    cdef uint16_t crc
    for index in range(count):
        at, end = keys[index], keys[index] + lengths[index]
        lengths[index] = 0
        tag = <const uint8_t*>memchr(at, b'{', end - at)
        if tag != NULL:
            tag += 1
            tag_end = <const uint8_t*>memchr(tag, b'}', end - tag)
            if tag_end != NULL and tag_end > tag:
                at, end = tag, tag_end
                keys[index], lengths[index] = tag, tag_end - tag
                tagged += 1
        crc = 0
        while at < end:
            crc = <uint16_t>((crc << 8) ^ slots.crcs[(crc >> 8) ^ at[0]])
            at += 1
        crc &= SLOT_COUNT - 1
        slots.keys[crc] += 1
        if sizes == NULL:
            slots.unmeasured[crc] += 1
        else:
            wide_add(&slots.memory[crc], sizes[index])
        if ttl_ms != NULL:
            slots.ttl_known[crc] += 1
            slots.no_ttl[crc] += ttl_ms[index] < 0
    return tagged
