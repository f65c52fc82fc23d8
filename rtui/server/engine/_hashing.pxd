"""Hashes of names for the tables of the engine. They are seeded, because names are chosen by whoever writes to the server."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

cdef extern from *:
    """
    #if PY_VERSION_HEX >= 0x030E0000
    #define rtui_hash_name(name, length) Py_HashBuffer(name, (Py_ssize_t)(length))
    #else
    #define rtui_hash_name(name, length) _Py_HashBytes(name, (Py_ssize_t)(length))
    #endif
    """
    int64_t python_hash "rtui_hash_name"(const uint8_t*, size_t) noexcept nogil


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
