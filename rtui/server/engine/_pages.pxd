"""What the engine holds of keys between their SCAN and the counters: pages, queues of pages, requests, rows.

A page is one piece of memory: the keys of a reply to SCAN, or a portion of them, with the names at the end. It is never
copied: it waits in a queue, rides on a request, waits in the next queue, and is freed when its keys are rows. Rows
are keys that leave the engine for Python: those about which all is known, those that Python asks about itself, names that
are too long.

Functions that need memory return False or NULL where there is none, and have changed nothing then.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from rtui.server.engine._ranges cimport Range

cdef enum:  # what is known of a key
    KNOWS_TTL = 1
    KNOWS_MEMORY = 2
    KNOWS_IDLE = 4
    KNOWS_FREQUENCY = 8
    KNOWS_LENGTH = 16
    IS_SAMPLED = 32  # of a row

cdef enum:  # what is asked of a key in the first stage, by column, and in the second
    ASKS_TYPE = 0
    ASKS_TTL = 1
    ASKS_IDLE = 2
    ASKS_FREQUENCY = 3
    FIRST_COLUMNS = 4
    ASKS_MEMORY = 4
    ASKS_LENGTH = 5
    ASKS_ENCODING = 6
    ALL_COLUMNS = 7

cdef struct Key:
    const uint8_t* name
    size_t length
    int32_t type  # its number in the engine, -1 while it is not known
    uint8_t known
    uint8_t asked  # bits of columns, from ASKS_MEMORY on
    uint8_t encoding  # its number among those of the type, 0 while it is not known
    bint is_gone
    bint is_absent  # it is gone, or another node of the cluster has it: left to Python
    bint is_sampled
    int64_t ttl_ms
    int64_t recency  # idle time or frequency
    int64_t memory_bytes
    int64_t size  # its length as a value

cdef struct Page:
    Page* next
    size_t count
    int64_t asked_at_ms
    bint is_late  # it was decided of which keys the length is asked late
    Key keys[1]

cdef struct Queue:
    Page* first
    Page* last
    size_t keys

cdef struct FirstColumns:  # what the first stage asks of a key, sampled or not
    int count[2]
    uint8_t columns[2][FIRST_COLUMNS]

cdef struct Request:
    Page* first
    Page* second  # and those behind it
    Range* scanned
    bint is_void
    uint32_t cost_keys
    uint64_t commands
    int64_t sent_us
    FirstColumns asked

cdef struct Requests:  # a ring
    Request* items
    size_t capacity
    size_t start
    size_t count

cdef struct Output:
    uint8_t* data
    size_t start  # of what has not been sent
    size_t end
    size_t capacity

cdef struct Row:  # as `rtui.server.source.engine_rows` reads it
    size_t name_at
    size_t length
    int64_t ttl_ms
    int64_t recency
    int64_t memory_bytes
    int64_t size
    int64_t asked_at_ms
    int32_t type
    uint16_t slot
    uint8_t known
    uint8_t encoding

cdef struct Rows:
    Row* items
    size_t count
    size_t capacity
    uint8_t* names
    size_t name_bytes
    size_t name_capacity


cdef inline Page* new_page(size_t count, const uint8_t** names, const size_t* lengths) noexcept nogil:
    """Return a page with copies of these names."""
    cdef size_t index, size = sizeof(Page) + count * sizeof(Key)
    cdef uint8_t* at
    cdef Page* page
    for index in range(count):
        size += lengths[index]
    page = <Page*>malloc(size)
    if page == NULL:
        return NULL
    memset(page, 0, sizeof(Page) + count * sizeof(Key))
    page.count = count
    at = <uint8_t*>&page.keys[count]
    for index in range(count):
        memcpy(at, names[index], lengths[index])
        page.keys[index].name = at
        page.keys[index].length = lengths[index]
        page.keys[index].type = -1
        at += lengths[index]
    return page


cdef inline void push(Queue* queue, Page* page) noexcept nogil:
    """Put a page at the end."""
    page.next = NULL
    if queue.last == NULL:
        queue.first = page
    else:
        queue.last.next = page
    queue.last = page
    queue.keys += page.count


cdef inline Page* pop(Queue* queue) noexcept nogil:
    """Take the first page, NULL if there is none."""
    cdef Page* page = queue.first
    if page != NULL:
        queue.first = page.next
        if queue.first == NULL:
            queue.last = NULL
        queue.keys -= page.count
        page.next = NULL
    return page


cdef inline void free_pages(Queue* queue) noexcept nogil:
    cdef Page* page = pop(queue)
    while page != NULL:
        free(page)
        page = pop(queue)


cdef inline Request* add_request(Requests* requests) noexcept nogil:
    """Return a new request, all zero, at the end."""
    cdef Request* grown
    cdef Request* found
    cdef size_t index, capacity
    if requests.count == requests.capacity:
        capacity = 2 * requests.capacity + 8
        grown = <Request*>malloc(capacity * sizeof(Request))
        if grown == NULL:
            return NULL
        for index in range(requests.count):
            grown[index] = requests.items[(requests.start + index) % requests.capacity]
        free(requests.items)
        requests.items, requests.capacity, requests.start = grown, capacity, 0
    found = &requests.items[(requests.start + requests.count) % requests.capacity]
    memset(found, 0, sizeof(Request))
    requests.count += 1
    return found


cdef inline Request* request_at(Requests* requests, size_t index) noexcept nogil:
    return &requests.items[(requests.start + index) % requests.capacity]


cdef inline void end_request(Requests* requests) noexcept nogil:
    """Take the first request out, whose pages have gone elsewhere."""
    requests.start = (requests.start + 1) % requests.capacity
    requests.count -= 1


cdef inline uint8_t* reserve(Output* output, size_t size) noexcept nogil:
    """Return where so many bytes may be written, after which `end` is to be moved; NULL where there is no memory."""
    cdef uint8_t* grown
    cdef size_t used = output.end - output.start
    if used <= output.start:
        if used:
            memcpy(output.data, output.data + output.start, used)
        output.start, output.end = 0, used
    if size > output.capacity - output.end:
        grown = <uint8_t*>realloc(output.data, 2 * (output.end + size))
        if grown == NULL:
            return NULL
        output.data = grown
        output.capacity = 2 * (output.end + size)
    return output.data + output.end


cdef inline uint8_t* put(uint8_t* at, const uint8_t* source, size_t length) noexcept nogil:
    memcpy(at, source, length)
    return at + length


cdef inline uint8_t* put_number(uint8_t* at, uint64_t number) noexcept nogil:
    """Write a number in digits, and CRLF."""
    cdef uint8_t digits[20]
    cdef int count = 0
    while True:
        digits[count] = <uint8_t>(48 + number % 10)
        count += 1
        number //= 10
        if not number:
            break
    while count:
        count -= 1
        at[0] = digits[count]
        at += 1
    at[0], at[1] = 13, 10
    return at + 2


cdef inline Row* add_row(Rows* rows, const Key* key, int64_t asked_at_ms) noexcept nogil:
    """Copy what is known of a key; return the row, NULL where there is no memory."""
    cdef Row* grown
    cdef uint8_t* names
    cdef Row* row
    if rows.count == rows.capacity:
        grown = <Row*>realloc(rows.items, (2 * rows.capacity + 64) * sizeof(Row))
        if grown == NULL:
            return NULL
        rows.items, rows.capacity = grown, 2 * rows.capacity + 64
    if key.length > rows.name_capacity - rows.name_bytes:
        names = <uint8_t*>realloc(rows.names, 2 * (rows.name_bytes + key.length))
        if names == NULL:
            return NULL
        rows.names, rows.name_capacity = names, 2 * (rows.name_bytes + key.length)
    row = &rows.items[rows.count]
    row.name_at, row.length = rows.name_bytes, key.length
    if key.length:
        memcpy(rows.names + rows.name_bytes, key.name, key.length)
    rows.name_bytes += key.length
    row.ttl_ms, row.recency, row.memory_bytes, row.size = key.ttl_ms, key.recency, key.memory_bytes, key.size
    row.asked_at_ms, row.type, row.slot = asked_at_ms, key.type, 0
    row.known, row.encoding = key.known | (IS_SAMPLED if key.is_sampled else 0), key.encoding
    rows.count += 1
    return row


cdef inline void free_rows(Rows* rows) noexcept nogil:
    free(rows.items)
    free(rows.names)
    memset(rows, 0, sizeof(Rows))
