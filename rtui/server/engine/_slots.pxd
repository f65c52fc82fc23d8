"""The hash slot of a key."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.string cimport memchr

cdef enum:
    SLOT_COUNT = 16384


cdef inline void fill_crcs(uint16_t crcs[2][256]) noexcept nogil:
    """Fill in the CRC16 of each byte, and of each byte that another one follows."""
    cdef int byte, bit
    cdef uint16_t crc
    for byte in range(256):
        crc = <uint16_t>(byte << 8)
        for bit in range(8):
            crc = <uint16_t>((crc << 1) ^ 0x1021) if crc & 0x8000 else <uint16_t>(crc << 1)
        crcs[0][byte] = crc
    for byte in range(256):
        crc = crcs[0][byte]
        crcs[1][byte] = <uint16_t>((crc << 8) ^ crcs[0][crc >> 8])


cdef inline uint32_t slot_of(const uint16_t crcs[2][256], const uint8_t* at, size_t length) noexcept nogil:
    """Return the slot of a key."""
    cdef const uint8_t* end = at + length
    cdef const uint8_t* tag = <const uint8_t*>memchr(at, b'{', length)
    cdef const uint8_t* tag_end
    cdef uint16_t crc = 0
    if tag != NULL:
        tag += 1
        tag_end = <const uint8_t*>memchr(tag, b'}', end - tag)
        if tag_end != NULL and tag_end > tag:
            at, end = tag, tag_end
    while end - at >= 2:
        crc = crcs[1][(crc >> 8) ^ at[0]] ^ crcs[0][(crc & 255) ^ at[1]]
        at += 2
    if at < end:
        crc = <uint16_t>((crc << 8) ^ crcs[0][(crc >> 8) ^ at[0]])
    return crc & (SLOT_COUNT - 1)
