"""What a SCAN cursor tells: positions and the size of the table, as `rtui.server.scan.cursor` explains them."""

from libc.stdint cimport uint32_t, uint64_t

cdef extern from *:
    """
    typedef unsigned __int128 rtui_position;
    """
    ctypedef unsigned long long Position "rtui_position"  # 0 to 2^64, both of them included
    int leading_zeros "__builtin_clzll"(unsigned long long) noexcept nogil

cdef enum:
    SLOT_BITS = 14

cdef enum Dialect:
    STANDALONE = 0
    SLOTTED = 1
    OPAQUE = 2

cdef struct TableWatch:
    uint32_t bits  # n of a table of 2^n buckets, as far as the cursors tell
    bint has_shrunk
    uint32_t short_for
    uint32_t longest_since
    uint32_t patience


cdef inline Position position_end() noexcept nogil:
    return <Position>1 << 64


cdef inline uint64_t reversed_bits(uint64_t value) noexcept nogil:
    value = (value >> 1) & <uint64_t>0x5555555555555555 | (value & <uint64_t>0x5555555555555555) << 1
    value = (value >> 2) & <uint64_t>0x3333333333333333 | (value & <uint64_t>0x3333333333333333) << 2
    value = (value >> 4) & <uint64_t>0x0F0F0F0F0F0F0F0F | (value & <uint64_t>0x0F0F0F0F0F0F0F0F) << 4
    value = (value >> 8) & <uint64_t>0x00FF00FF00FF00FF | (value & <uint64_t>0x00FF00FF00FF00FF) << 8
    value = (value >> 16) & <uint64_t>0x0000FFFF0000FFFF | (value & <uint64_t>0x0000FFFF0000FFFF) << 16
    return value >> 32 | value << 32


cdef inline uint32_t bit_length(uint64_t value) noexcept nogil:
    return 64 - leading_zeros(value) if value else 0


cdef inline Position position_of(int dialect, uint64_t cursor) noexcept nogil:
    """Return the position of a cursor of an ordered dialect."""
    if dialect == STANDALONE:
        return <Position>reversed_bits(cursor)
    return <Position>(
        (cursor & ((1 << SLOT_BITS) - 1)) << (64 - SLOT_BITS) | reversed_bits(cursor >> SLOT_BITS) >> SLOT_BITS
    )


cdef inline uint64_t cursor_at(int dialect, uint64_t position) noexcept nogil:
    """Return the cursor at a position; the opposite of `position_of`."""
    if dialect == STANDALONE:
        return reversed_bits(position)
    return reversed_bits(position << SLOT_BITS) << SLOT_BITS | position >> (64 - SLOT_BITS)


cdef inline Position reached_by(int dialect, uint64_t cursor) noexcept nogil:
    """Return the position up to which a reply with this cursor has visited: 0 is the end."""
    return position_of(dialect, cursor) if cursor else position_end()


cdef inline void watch(TableWatch* table, uint64_t cursor) noexcept nogil:
    """Learn from the cursor of a reply; 0, the end, tells nothing."""
    cdef uint32_t bits = bit_length(cursor)
    if not bits:
        return
    if bits >= table.bits:
        table.bits = bits
        table.short_for = table.longest_since = 0
        return
    table.short_for += 1
    if bits > table.longest_since:
        table.longest_since = bits
    if table.short_for >= table.patience:
        table.has_shrunk = True
        table.bits = table.longest_since
        table.short_for = table.longest_since = 0
