"""Hashes of names for the tables of the engine. They are seeded, because names are chosen by whoever writes to the server."""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy


cdef inline uint64_t mixed(uint64_t value) noexcept nogil:
    value = (value ^ (value >> 32)) * <uint64_t>0xD6E8FEB86659FD93
    value = (value ^ (value >> 32)) * <uint64_t>0xD6E8FEB86659FD93
    return value ^ (value >> 32)


cdef inline uint64_t hash_bytes(uint64_t seed, const uint8_t* name, size_t length) noexcept nogil:
    """Return the hash of a name; names of different lengths want different seeds."""
    cdef uint64_t found = seed
    cdef uint64_t word
    while length >= 8:
        memcpy(&word, name, 8)
        found = mixed(found ^ word)
        name += 8
        length -= 8
    word = 0
    if length:
        memcpy(&word, name, length)
    return mixed(found ^ word)
