"""What is asked about keys and what becomes of the answers, as `rtui.server.inspection` does in Python.

A page of keys goes through it like this:

1. `list_keys` copies the names of a page of SCAN into pages of a few keys each, which wait in `listed`.
2. `write_first` writes TYPE, PTTL and idle time or frequency of each key of a page. `answer_first` reads the replies, and
   `after_first` chooses what is asked next, by the type of each key; the page waits in `typed`.
3. `write_second` writes MEMORY USAGE and the length, and the encoding of every 16th key of a type. `answer_second` reads
   the replies. Where a list of the longest keys might otherwise miss one, `after_second` lets the page wait once more.
4. The page waits in `done` until the next write is out; then its keys become rows, which Python takes.

What a reply means that is no plain answer is asked of Python, once for each text of an error (`decide`). Keys of a type
that comes for the first time are left to Python until it has said what to ask about them.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memcpy, memset

from rtui.server.engine._hashing cimport hash_bytes, python_hash
from rtui.server.engine._pages cimport (
    ALL_COLUMNS,
    ASKS_ENCODING,
    ASKS_FREQUENCY,
    ASKS_IDLE,
    ASKS_LENGTH,
    ASKS_MEMORY,
    ASKS_TTL,
    ASKS_TYPE,
    KNOWS_FREQUENCY,
    KNOWS_IDLE,
    KNOWS_LENGTH,
    KNOWS_MEMORY,
    KNOWS_TTL,
    FirstColumns,
    Key,
    Output,
    Page,
    Queue,
    Row,
    Rows,
    add_row,
    new_page,
    push,
    put,
    put_number,
    reserve,
)
from rtui.server.engine._replies cimport ERROR, NIL, NUMBER, TEXT, Reply
from rtui.server.engine._slots cimport slot_of

cdef extern from *:
    """
    #ifndef RTUI_STOPPED
    #define RTUI_STOPPED
    static int64_t rtui_stopped_ms = 0;
    #endif
    """
    int64_t stopped_ms "rtui_stopped_ms"  # where the time of day stands still (rtui.server.wall_clock); else 0

cdef enum:
    MOST_NAME = 64  # bytes of the name of a type or an encoding
    MOST_TYPES = 4096
    MOST_ENCODINGS = 32  # of one type
    MOST_DECISIONS = 64
    MOST_KEY_BYTES = 65536  # of a name in bulk
    MOST_PORTION_BYTES = 65536  # of the names of a page, unless it has one key

cdef enum:  # what a reply means that is no plain answer
    IS_GONE = 1  # the key
    IS_UNKNOWN = 2  # the fact
    IS_FAILURE = 3  # Python has raised an exception
    IS_ELSEWHERE = 4  # another node of the cluster has the key

ctypedef int (*Decide)(void* owner, int column, const Key* key, const Reply* reply) noexcept nogil

cdef struct Template:
    const uint8_t* before
    size_t length

cdef struct Encoding:
    uint8_t name[MOST_NAME]
    size_t length

cdef struct KeyType:
    uint8_t name[MOST_NAME]
    size_t length
    bint is_exported  # Python goes on with its keys after the first stage
    bint is_removed_when_empty
    uint8_t asked[2]  # bits of columns in the second stage, sampled or not
    int64_t late_least  # with so much memory the length of a key that is not sampled is asked late; -1 for none
    uint64_t late_left  # so many may be asked until Python has looked again
    bint late_is_open  # whether Python then looks at once, and would let more be asked
    uint64_t late_seen
    uint64_t late_asked
    int64_t left_out_memory  # the most of a key that was not asked, -1 where there is none
    bint left_out_unknown  # whether there is one of which it is not known
    Template before_key  # of the command for its length
    uint64_t lengths_sent  # until Python has taken it
    uint32_t encoding_in  # so many keys are passed over before the next whose encoding is asked
    Encoding* encodings
    size_t encoding_count

cdef struct Decision:
    uint64_t hash
    int what

cdef struct Inspection:
    void* owner
    Decide decide
    uint64_t seed  # of the hashes of errors
    uint16_t crcs[2][256]  # see `_slots`
    FirstColumns first
    int64_t* own_reads  # hashes of keys that rtui has read, ascending; Python corrects their idle times
    size_t own_read_count
    Template before_key[ALL_COLUMNS]
    uint64_t sent[ALL_COLUMNS]  # commands until Python has taken them; those for lengths are counted by type
    uint32_t encoding_every  # 0 where they are not asked
    uint32_t sampled_every
    uint32_t sampled_in  # so many keys are passed over before the next that is sampled
    KeyType* types
    int32_t type_count
    Decision decisions[MOST_DECISIONS]
    size_t decision_count
    Queue listed
    Queue typed
    Queue done
    Rows rows  # keys about which all is known
    Rows exported  # keys that Python goes on with
    Rows unread  # names that are too long
    bint tells_absent  # whether keys that are gone, or that another node has, are left to Python
    Rows absent  # such keys
    uint64_t keys  # that have become rows
    uint64_t vanished
    bint wants_python  # the slice is to end, since it is not known how many lengths may still be asked late


cdef inline bint list_keys(
    Inspection* one, size_t count, const uint8_t** names, const size_t* lengths, size_t portion
) noexcept nogil:
    """Let copies of these names wait for the first stage, in pages of about so many keys."""
    cdef size_t start = 0, stop, size, index, each
    cdef Page* page
    cdef Key unknown
    if not count:
        return True
    portion = portion if portion else 1
    each = (count + (count + portion - 1) // portion - 1) // ((count + portion - 1) // portion)
    while start < count:
        if lengths[start] > MOST_KEY_BYTES:
            memset(&unknown, 0, sizeof(Key))
            unknown.type, unknown.name, unknown.length = -1, names[start], lengths[start]
            if add_row(&one.unread, &unknown, 0) == NULL:
                return False
            start += 1
            continue
        stop, size = start, 0
        while stop < count and stop - start < each and lengths[stop] <= MOST_KEY_BYTES:
            size += lengths[stop]
            if size > MOST_PORTION_BYTES and stop > start:
                break
            stop += 1
        page = new_page(stop - start, names + start, lengths + start)
        if page == NULL:
            return False
        for index in range(page.count):
            page.keys[index].is_sampled = one.sampled_in == 0
            one.sampled_in = (one.sampled_in if one.sampled_in else one.sampled_every) - 1
        push(&one.listed, page)
        start = stop
    return True


cdef inline bint write_request(Output* output, const Template* template, const Key* key) noexcept nogil:
    cdef uint8_t* at = reserve(output, template.length + key.length + 24)
    if at == NULL:
        return False
    at = put(at, template.before, template.length)
    at = put(put_number(at, key.length), key.name, key.length)
    at[0], at[1] = 13, 10
    output.end = at + 2 - output.data
    return True


cdef inline int64_t write_first(Output* output, Inspection* one, Page* page) noexcept nogil:
    """Write the questions of the first stage about a page; return how many, -1 where there is no memory."""
    cdef size_t index
    cdef int at
    cdef int64_t written = 0
    cdef bint is_sampled
    cdef Key* key
    page.is_late = False
    for index in range(page.count):
        key = &page.keys[index]
        is_sampled = key.is_sampled
        key.known, key.is_gone, key.type = 0, False, -1
        for at in range(one.first.count[is_sampled]):
            if not write_request(output, &one.before_key[one.first.columns[is_sampled][at]], key):
                return -1
            one.sent[one.first.columns[is_sampled][at]] += 1
        written += one.first.count[is_sampled]
    return written


cdef inline uint8_t asked_now(const Inspection* one, const Key* key, bint is_late) noexcept nogil:
    """Return what is asked of a key in the second stage; what may be asked can have changed since it waits."""
    cdef const KeyType* key_type = &one.types[key.type]
    cdef uint8_t asked = key.asked
    if not is_late:
        asked = (asked & (1 << ASKS_ENCODING)) | key_type.asked[key.is_sampled]
    elif key_type.before_key.before == NULL:
        asked &= ~(1 << ASKS_LENGTH)
    if not one.encoding_every:
        asked &= ~(1 << ASKS_ENCODING)
    return asked


cdef inline bint leave_watched(Inspection* one, Page* page) noexcept nogil:
    """Leave keys to Python whose memory may be asked only with an eye on the clock; False where there is no memory.

    `after_first` leaves all keys of such types to it, but what may be asked can have changed while a page waited.
    """
    cdef size_t index, kept = 0
    cdef Key* key
    for index in range(page.count):
        key = &page.keys[index]
        if key.is_absent:
            continue
        if one.types[key.type].is_exported and not key.known & KNOWS_MEMORY:
            key.known &= ~KNOWS_LENGTH  # asked again
            if add_row(&one.exported, key, page.asked_at_ms) == NULL:
                return False
            continue
        if index != kept:
            page.keys[kept] = key[0]
        kept += 1
    page.count = kept
    return True


cdef inline int64_t write_second(Output* output, Inspection* one, Page* page) noexcept nogil:
    """Write the questions of the second stage about a page; return how many, -1 where there is no memory."""
    cdef size_t index
    cdef int64_t written = 0
    cdef Key* key
    for index in range(page.count):
        key = &page.keys[index]
        key.asked = asked_now(one, key, page.is_late)
        if key.asked:
            key.is_gone = False
        if key.asked & (1 << ASKS_MEMORY):
            key.known &= ~KNOWS_MEMORY
            if not write_request(output, &one.before_key[ASKS_MEMORY], key):
                return -1
            one.sent[ASKS_MEMORY] += 1
            written += 1
        if key.asked & (1 << ASKS_LENGTH):
            key.known &= ~KNOWS_LENGTH
            if not write_request(output, &one.types[key.type].before_key, key):
                return -1
            one.types[key.type].lengths_sent += 1
            written += 1
        if key.asked & (1 << ASKS_ENCODING):
            if not write_request(output, &one.before_key[ASKS_ENCODING], key):
                return -1
            one.sent[ASKS_ENCODING] += 1
            written += 1
    return written


cdef inline bint means_elsewhere(const Reply* error) noexcept nogil:
    """Whether another node has the key, by the usual errors; Python knows all of them."""
    return (error.length >= 6 and memcmp(error.text, b"MOVED ", 6) == 0) or (
        error.length >= 4 and memcmp(error.text, b"ASK ", 4) == 0
    )


cdef inline int leave_to_python(Inspection* one, Key* key) noexcept nogil:
    """Leave a key to Python that is not there, once; return 0 or IS_FAILURE."""
    if not key.is_absent and add_row(&one.absent, key, 0) == NULL:
        return IS_FAILURE
    key.is_absent = True
    return 0


cdef inline int add_gone(Inspection* one, Key* key) noexcept nogil:
    """Count a key that is gone, or have it found out whether it has moved; return 0 or IS_FAILURE."""
    if one.tells_absent:
        return leave_to_python(one, key)
    one.vanished += 1
    return 0


cdef inline int decided(Inspection* one, int column, Key* key, const Reply* reply) noexcept nogil:
    """Return what a reply means that is no plain answer; of errors with the same text Python is asked once."""
    cdef uint64_t hash
    cdef size_t index
    cdef int what
    if reply.kind != ERROR:
        return one.decide(one.owner, column, key, reply)
    if reply.length >= 9 and memcmp(reply.text, b"WRONGTYPE", 9) == 0:
        return IS_GONE
    if one.tells_absent and means_elsewhere(reply):
        return IS_ELSEWHERE
    hash = one.seed + (<uint64_t>reply.length << 8) + column
    if column == ASKS_LENGTH:  # a command of its own for each type
        hash += <uint64_t>key.type << 40
    hash = hash_bytes(hash, reply.text, reply.length)
    for index in range(one.decision_count):
        if one.decisions[index].hash == hash:
            return one.decisions[index].what
    what = one.decide(one.owner, column, key, reply)
    if one.decision_count < MOST_DECISIONS and what in (IS_GONE, IS_UNKNOWN):
        one.decisions[one.decision_count].hash = hash
        one.decisions[one.decision_count].what = what
        one.decision_count += 1
    return what


cdef inline int32_t find_type(Inspection* one, const uint8_t* name, size_t length) noexcept nogil:
    """Return the number of a type in the engine, a new one if need be; -1 where there is no memory.

    The first type, without a name, is that of keys whose type is not known. It is returned where there are too many.
    """
    cdef int32_t index
    cdef KeyType* grown
    for index in range(1, one.type_count):
        if one.types[index].length == length and memcmp(one.types[index].name, name, length) == 0:
            return index
    if one.type_count == MOST_TYPES:
        return 0
    grown = <KeyType*>realloc(one.types, (one.type_count + 1) * sizeof(KeyType))
    if grown == NULL:
        return -1
    one.types = grown
    grown = &grown[one.type_count]
    memset(grown, 0, sizeof(KeyType))
    if length:
        memcpy(grown.name, name, length)
    grown.length = length
    grown.is_exported = True
    grown.late_least = grown.left_out_memory = -1
    one.type_count += 1
    return one.type_count - 1


cdef inline int answer_first(Inspection* one, Key* key, int column, const Reply* reply) noexcept nogil:
    """Learn the answer to a question of the first stage; return 0 or IS_FAILURE."""
    cdef int what = 0
    if reply.kind == NUMBER:
        if column == ASKS_TTL and reply.number >= -1:
            key.known |= KNOWS_TTL
            key.ttl_ms = reply.number
            if stopped_ms and reply.number >= 0:  # the server of a dump: it is the moment of the expiry
                key.ttl_ms = max(0, reply.number - stopped_ms)
            return 0
        if column == ASKS_TTL and reply.number == -2:
            what = IS_GONE
        elif column == ASKS_IDLE and reply.number >= 0:
            key.known |= KNOWS_IDLE
            key.recency = reply.number
            return 0
        elif column == ASKS_FREQUENCY and 0 <= reply.number <= 255:
            key.known |= KNOWS_FREQUENCY
            key.recency = reply.number
            return 0
    elif reply.kind == TEXT and column == ASKS_TYPE and 0 < reply.length <= MOST_NAME:
        if reply.length == 4 and memcmp(reply.text, b"none", 4) == 0:
            what = IS_GONE
        else:
            key.type = find_type(one, reply.text, reply.length)
            return 0 if key.type >= 0 else IS_FAILURE
    elif reply.kind == NIL and column in (ASKS_IDLE, ASKS_FREQUENCY):
        what = IS_GONE
    if not what:
        what = decided(one, column, key, reply)
    if what == IS_GONE:
        key.is_gone = True
    elif what == IS_ELSEWHERE:
        return leave_to_python(one, key)
    return 0 if what in (IS_GONE, IS_UNKNOWN) else what


cdef inline bint find_encoding(KeyType* key_type, Key* key, const uint8_t* name, size_t length) noexcept nogil:
    """Note the encoding of a key, unless there are too many; False where there is no memory."""
    cdef size_t index
    cdef Encoding* grown
    for index in range(key_type.encoding_count):
        if key_type.encodings[index].length == length and memcmp(key_type.encodings[index].name, name, length) == 0:
            key.encoding = <uint8_t>(index + 1)
            return True
    if key_type.encoding_count == MOST_ENCODINGS:
        return True
    grown = <Encoding*>realloc(key_type.encodings, (key_type.encoding_count + 1) * sizeof(Encoding))
    if grown == NULL:
        return False
    key_type.encodings = grown
    grown = &grown[key_type.encoding_count]
    memcpy(grown.name, name, length)
    grown.length = length
    key_type.encoding_count += 1
    key.encoding = <uint8_t>key_type.encoding_count
    return True


cdef inline int answer_second(Inspection* one, Key* key, int column, const Reply* reply) noexcept nogil:
    """Learn the answer to a question of the second stage; return 0 or IS_FAILURE."""
    cdef int what = 0
    if reply.kind == NUMBER and reply.number >= 0:
        if column == ASKS_MEMORY:
            key.known |= KNOWS_MEMORY
            key.memory_bytes = reply.number
            return 0
        if column == ASKS_LENGTH:
            key.known |= KNOWS_LENGTH
            key.size = reply.number
            if not reply.number and one.types[key.type].is_removed_when_empty:
                key.is_gone = True
            return 0
    elif reply.kind == TEXT and column == ASKS_ENCODING and 0 < reply.length <= MOST_NAME:
        key.asked &= ~(1 << ASKS_ENCODING)  # it is known, however often the rest is asked
        return 0 if find_encoding(&one.types[key.type], key, reply.text, reply.length) else IS_FAILURE
    elif reply.kind == NIL and column != ASKS_LENGTH:
        what = IS_GONE
    if not what:
        what = decided(one, column, key, reply)
    if what == IS_GONE and column != ASKS_ENCODING:
        key.is_gone = True
    elif what == IS_ELSEWHERE:
        return 0 if column == ASKS_ENCODING else leave_to_python(one, key)
    return 0 if what in (IS_GONE, IS_UNKNOWN) else what


cdef inline bint is_own_read(const Inspection* one, const Key* key) noexcept nogil:
    """Whether rtui itself may have read a key, so that its idle time says nothing of others."""
    cdef int64_t wanted
    cdef size_t low = 0, high = one.own_read_count, middle
    if not high or not key.known & KNOWS_IDLE:
        return False
    wanted = python_hash(key.name, key.length)
    while low < high:
        middle = (low + high) // 2
        if one.own_reads[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low < one.own_read_count and one.own_reads[low] == wanted


cdef inline bint after_first(Inspection* one, Page* page) noexcept nogil:
    """Choose what is asked of the keys of a page next; False where there is no memory, and the page is freed."""
    cdef size_t index, kept = 0
    cdef uint8_t all_asked = 0
    cdef Key* key
    cdef KeyType* key_type
    for index in range(page.count):
        key = &page.keys[index]
        key.asked = 0
        if key.is_absent:
            continue
        if key.is_gone:
            if add_gone(one, key) == IS_FAILURE:
                free(page)
                return False
            continue
        if key.type < 0:
            key.type = 0
        key_type = &one.types[key.type]
        if key_type.is_exported or is_own_read(one, key):
            if add_row(&one.exported, key, page.asked_at_ms) == NULL:
                free(page)
                return False
            continue
        key.asked = key_type.asked[key.is_sampled]
        if key.type and one.encoding_every:
            if not key_type.encoding_in:
                key.asked |= 1 << ASKS_ENCODING
                key_type.encoding_in = one.encoding_every
            key_type.encoding_in -= 1
        all_asked |= key.asked
        if index != kept:
            page.keys[kept] = key[0]
        kept += 1
    page.count = kept
    if all_asked:
        push(&one.typed, page)
    else:
        after_second(one, page)
    return True


cdef inline void leave_out(KeyType* key_type, const Key* key) noexcept nogil:
    """Note how much memory a key has whose length is not known, and that is not asked again."""
    if not key.known & KNOWS_MEMORY:
        key_type.left_out_unknown = True
    elif key.memory_bytes > key_type.left_out_memory:
        key_type.left_out_memory = key.memory_bytes


cdef inline bint asks_late(Inspection* one, const Key* key) noexcept nogil:
    """Whether the length of a key is to be asked although it is not sampled; see `late_lengths` in Python."""
    cdef bint is_asked
    cdef KeyType* key_type = &one.types[key.type]
    key_type.late_seen += 1
    if key.known & KNOWS_MEMORY:
        is_asked = key.memory_bytes >= key_type.late_least
    else:
        is_asked = key_type.late_least == 0
    if is_asked and key_type.late_least >= 0 and (key_type.late_left or key_type.late_is_open):
        if key_type.late_left:
            key_type.late_left -= 1
        one.wants_python = one.wants_python or (key_type.late_is_open and not key_type.late_left)
        key_type.late_asked += 1
        return True
    leave_out(key_type, key)
    return False


cdef inline void after_second(Inspection* one, Page* page) noexcept nogil:
    """Let the page wait to become rows, unless lengths are to be asked late."""
    cdef size_t index
    cdef bint is_complete = True, was_asked
    cdef Key* key
    for index in range(page.count):
        key = &page.keys[index]
        was_asked = key.asked & (1 << ASKS_LENGTH)
        key.asked = 0
        if key.is_sampled or key.is_gone or key.is_absent or key.known & KNOWS_LENGTH:
            continue
        if page.is_late:
            leave_out(&one.types[key.type], key)
        elif not was_asked and asks_late(one, key):
            key.asked = 1 << ASKS_LENGTH
            is_complete = False
    page.is_late = True
    push(&one.done if is_complete else &one.typed, page)


cdef inline bint finish_page(Inspection* one, Page* page) noexcept nogil:
    """Make rows of all keys of a page and free it; False where there is no memory, once and for all."""
    cdef size_t index
    cdef bint is_whole = True
    cdef Key* key
    cdef Row* row
    for index in range(page.count):
        key = &page.keys[index]
        if key.is_absent or not is_whole:
            continue
        if key.is_gone:
            is_whole = add_gone(one, key) != IS_FAILURE
            continue
        row = add_row(&one.rows, key, page.asked_at_ms)
        is_whole = row != NULL
        if is_whole:
            row.slot = <uint16_t>slot_of(one.crcs, key.name, key.length)
            one.keys += 1
    free(page)
    return is_whole
