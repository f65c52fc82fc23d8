"""Writes and replies of one connection: a scan of ranges, an inspection of what it lists, or both, without a socket.

A write holds the next SCAN of a range, the first questions about one page of keys and the second ones about another, so
that a page costs one round trip a stage. `send_next` appends it to the output and a request to those under way;
`feed` takes replies out of the input and gives them to the first request. Keys that a SCAN lists go to the inspection,
or to the groups of names of the tree where nothing is inspected.

What goes wrong is an event: nothing is sent after it until Python has seen to it. `give_back` lets everything that is
under way be asked again; replies to it that still arrive are passed over.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free

from rtui.server.engine._inspection cimport (
    Inspection,
    Template,
    after_first,
    after_second,
    answer_first,
    answer_second,
    leave_watched,
    list_keys,
    write_first,
    write_second,
)
from rtui.server.engine._pages cimport (
    ALL_COLUMNS,
    ASKS_MEMORY,
    Key,
    Output,
    Page,
    Queue,
    Request,
    Requests,
    add_request,
    end_request,
    pop,
    push,
    put,
    put_number,
    request_at,
    reserve,
)
from rtui.server.engine._ranges cimport RANGE_NO_MEMORY, RANGE_OK, Range, RangeSet, advance, next_range
from rtui.server.engine._replies cimport BAD, INCOMPLETE, Input, Reply, clear_input, read_reply
from rtui.server.engine._scan_reply cimport Names, free_names, read_page
from rtui.server.engine._slot_filter cimport SlotFilterState, filter_names

cdef enum:
    MOST_COUNT = 1000  # of a SCAN
    PAGE_BYTES = 4 << 20  # of names, about so many are asked for in one page
    MOST_WAITING_COUNTS = 6  # with so many COUNTs of keys waiting beyond those that the link holds, no further ones are listed
    STUCK_AFTER = 1000  # replies in a row with the cursor they were asked with
    MOST_SAMPLES = 64
    MOST_REQUESTS = 1024
    LATE_US = 1000  # so much is made up for where a write goes out later than the pace allows it

cdef enum Event:
    NONE = 0
    SLICE_IS_OVER = 1
    IS_DONE = 2  # nothing is left to ask, and nothing is under way
    IS_DRAINED = 3  # nothing is under way
    HAS_CLOSED = 4  # the server, the connection
    HAS_BROKEN = 5  # the connection; `error` is errno
    IS_SILENT = 6
    NO_PROTOCOL = 7
    HAS_FAILED = 8  # Python has raised an exception
    NO_MEMORY = 9
    NO_PAGE = 10  # the reply to SCAN in `odd_length` bytes at the start of the input is no page of keys
    NOT_IN_ORDER = 11
    IS_STUCK = 12
    UNASKED = 13  # a reply to nothing, in `odd_length`
    TOO_LONG = 14  # a reply has more than `most_reply_bytes`

cdef struct Sample:  # of a round trip
    int64_t cost_keys
    int64_t round_trip_us  # -1 where it was not seen in time

ctypedef bint (*Sink)(void* owner, size_t count, const uint8_t** names, const size_t* lengths) noexcept nogil

cdef struct Pipeline:
    Input input
    Output output
    Requests requests
    Page* page  # where in the first request the next reply belongs
    size_t key
    int column
    uint64_t answered
    RangeSet* ranges
    Inspection* inspection  # NULL where keys are only listed
    SlotFilterState* filter  # of a cluster's node, NULL where all keys are delivered
    Sink sink  # where they go then, NULL for nowhere
    void* sink_owner
    Names names
    Template before_cursor
    Template before_count
    Template end_of_scan
    uint32_t count  # of the next SCAN
    uint32_t portion  # keys of a page
    uint32_t most_under_way  # what writes under way may cost together, in keys
    uint64_t under_way  # what they cost
    uint32_t width  # ranges that may be scanned side by side
    double key_gap_us  # between writes, for each key that a write costs
    double free_at_us
    int64_t idle_us  # round trip of a write that costs nothing
    int64_t last_arrival_us
    double name_bytes
    uint32_t stuck
    int event
    int error
    size_t odd_length
    size_t most_reply_bytes
    Sample samples[MOST_SAMPLES]
    uint32_t sample_count
    uint64_t commands
    uint64_t scans_sent  # until Python has taken it, as `replies`
    uint64_t replies
    uint64_t answered_commands
    uint64_t cost_keys  # of answered writes
    uint64_t answered_requests
    uint64_t listed  # keys that the server returned
    uint64_t delivered  # without those left out
    uint64_t bytes_in
    uint64_t bytes_out


cdef inline void free_pipeline(Pipeline* pipeline) noexcept nogil:
    """Free all but the ranges, the inspection and the groups, which belong to others and may be gone."""
    cdef size_t index
    cdef Request* request
    cdef Page* page
    for index in range(pipeline.requests.count):
        request = request_at(&pipeline.requests, index)
        free(request.first)
        while request.second != NULL:
            page, request.second = request.second, request.second.next
            free(page)
    free(pipeline.input.data)
    free(pipeline.output.data)
    free(pipeline.requests.items)
    free_names(&pipeline.names)


cdef inline bint has_work(const Pipeline* pipeline) noexcept nogil:
    """Whether anything is left to send."""
    if pipeline.inspection != NULL and pipeline.inspection.listed.keys + pipeline.inspection.typed.keys:
        return True
    return next_range(pipeline.ranges, pipeline.width) != NULL


cdef inline size_t waiting_keys(Pipeline* pipeline) noexcept nogil:
    """Return of how many keys something is still to be asked, or is being asked."""
    cdef size_t index, count
    cdef Page* page
    if pipeline.inspection == NULL:
        return 0
    count = pipeline.inspection.listed.keys + pipeline.inspection.typed.keys
    for index in range(pipeline.requests.count):
        page = request_at(&pipeline.requests, index).first
        count += page.count if page != NULL else 0
        page = request_at(&pipeline.requests, index).second
        while page != NULL:
            count += page.count
            page = page.next
    return count


cdef inline bint is_awaiting(const Pipeline* pipeline) noexcept nogil:
    """Whether replies, or the rest of one that has begun, are still to come."""
    return pipeline.requests.count > 0 or pipeline.input.start < pipeline.input.end


cdef inline bint write_scan(Pipeline* pipeline, uint64_t cursor, uint32_t count) noexcept nogil:
    cdef size_t size = pipeline.before_cursor.length + pipeline.before_count.length + pipeline.end_of_scan.length + 64
    cdef uint8_t* at = reserve(&pipeline.output, size)
    if at == NULL:
        return False
    at = put(at, pipeline.before_cursor.before, pipeline.before_cursor.length)
    at = put_number(put_number(at, digits_of(cursor)), cursor) - 2
    at = put(at, pipeline.before_count.before, pipeline.before_count.length)
    at = put_number(put_number(at, digits_of(count)), count) - 2
    at = put(at, pipeline.end_of_scan.before, pipeline.end_of_scan.length)
    pipeline.output.end = at - pipeline.output.data
    return True


cdef inline int digits_of(uint64_t number) noexcept nogil:
    cdef int digits = 1
    while number > 9:
        number //= 10
        digits += 1
    return digits


cdef inline bint has_room(const Pipeline* pipeline) noexcept nogil:
    """Whether another write of the usual size may be under way."""
    if not pipeline.requests.count:
        return True
    return pipeline.under_way + pipeline.portion <= pipeline.most_under_way and pipeline.requests.count < MOST_REQUESTS


cdef inline int64_t ask_second(Pipeline* pipeline, Request* request, uint32_t* cost) noexcept nogil:
    """Append the second questions about a page, or about several of which few keys are asked; return how many.

    -1 where there is no memory. `cost` is raised by the keys that are asked.
    """
    cdef Queue* typed = &pipeline.inspection.typed
    cdef Page* last = NULL
    cdef Page* page
    cdef int64_t written = 0, more
    cdef size_t keys = 0
    while typed.first != NULL and keys < pipeline.portion:
        page = typed.first
        if last != NULL and not page.is_late and keys + page.count > pipeline.portion:
            break
        page = pop(typed)
        if not leave_watched(pipeline.inspection, page):
            free(page)
            return -1
        if not page.count:
            free(page)
            continue
        if last == NULL:
            request.second = page
        else:
            last.next = page
        last = page
        more = write_second(&pipeline.output, pipeline.inspection, page)
        if more < 0:
            return -1
        written += more
        keys += <size_t>more if <size_t>more < page.count else page.count
    cost[0] += <uint32_t>keys
    return written


cdef inline int send_next(Pipeline* pipeline, int64_t now_us, int64_t epoch_ms) noexcept nogil:
    """Append the next write to the output; return 1, 0 where there is nothing to ask, -1 where there is no memory.

    Pages of keys about which nothing may be asked any more go on at once, and nothing may have been appended then.
    """
    cdef Inspection* inspection = pipeline.inspection
    cdef Range* scanned = NULL
    cdef Request* request
    cdef size_t end = pipeline.output.end - pipeline.output.start, waiting = 0
    cdef int64_t written = 0, more = 0
    cdef uint32_t count = pipeline.count, cost = 0
    if pipeline.name_bytes * count > PAGE_BYTES:
        count = <uint32_t>(PAGE_BYTES / pipeline.name_bytes)
    count = 1 if count < 1 else MOST_COUNT if count > MOST_COUNT else count
    if inspection != NULL:
        waiting = inspection.listed.keys + inspection.typed.keys
    if waiting <= MOST_WAITING_COUNTS * count + pipeline.most_under_way:
        scanned = next_range(pipeline.ranges, pipeline.width)
    if scanned == NULL and not waiting:
        return 0
    request = add_request(&pipeline.requests)
    if request == NULL:
        return -1
    if inspection != NULL:
        request.first = pop(&inspection.listed)
        if request.first != NULL:
            request.asked = inspection.first
            written = write_first(&pipeline.output, inspection, request.first)
            cost += <uint32_t>request.first.count
        more = ask_second(pipeline, request, &cost)
        if written < 0 or more < 0:
            return -1
        written += more
    if not written and scanned == NULL:
        pipeline.requests.count -= 1
        return 1 if keep_pages(pipeline, request, epoch_ms) else -1
    cost = (cost + 1) // 2
    if inspection != NULL:  # a SCAN costs about a quarter of all that is asked about the keys that it lists
        cost = (3 * cost + (count if scanned != NULL else 0) + 3) // 4
    elif scanned != NULL:
        cost = count
    if scanned != NULL:
        if not write_scan(pipeline, scanned.cursor, count):
            return -1
        pipeline.scans_sent += 1
        scanned.is_started = True
        scanned.is_under_way = True
        request.scanned = scanned
        written += 1
    request.commands, request.cost_keys, request.sent_us = written, cost, now_us
    pipeline.under_way += cost
    pipeline.commands += written
    pipeline.bytes_out += pipeline.output.end - pipeline.output.start - end
    if pipeline.key_gap_us > 0:
        if pipeline.free_at_us < now_us - LATE_US:
            pipeline.free_at_us = now_us - LATE_US
        pipeline.free_at_us += pipeline.key_gap_us * cost
    return 1


cdef inline void begin_request(Pipeline* pipeline) noexcept nogil:
    """Stand before the first reply to the first request."""
    pipeline.page = NULL
    pipeline.answered = 0


cdef inline void give_back(Pipeline* pipeline) noexcept nogil:
    """Let all that is under way be asked again."""
    cdef size_t index
    cdef Request* request
    cdef Page* page
    for index in range(pipeline.requests.count):
        request = request_at(&pipeline.requests, index)
        request.is_void = True
        if request.first != NULL:
            push(&pipeline.inspection.listed, request.first)
        while request.second != NULL:
            page, request.second = request.second, request.second.next
            push(&pipeline.inspection.typed, page)
        if request.scanned != NULL:
            request.scanned.is_under_way = False
        request.first = NULL
        request.scanned = NULL


cdef inline void drop(Pipeline* pipeline) noexcept nogil:
    """Forget what is under way and all bytes, since the connection is gone; what was asked is asked again."""
    give_back(pipeline)
    while pipeline.requests.count:
        end_request(&pipeline.requests)
    pipeline.under_way = 0
    clear_input(&pipeline.input)
    pipeline.odd_length = 0
    pipeline.output.start = pipeline.output.end = 0
    begin_request(pipeline)
    if pipeline.inspection != NULL:
        pipeline.inspection.decision_count = 0
    if pipeline.event != NO_MEMORY:
        pipeline.event = NONE


cdef inline void resume(Pipeline* pipeline) noexcept nogil:
    """Go on after an event that was seen to; what was under way is asked again, and its replies are passed over."""
    give_back(pipeline)
    pipeline.input.start += pipeline.odd_length
    pipeline.odd_length = 0
    if pipeline.event != NO_MEMORY:
        pipeline.event = NONE


cdef inline void read_questions(Pipeline* pipeline, Request* request, const Reply* reply) noexcept nogil:
    """Give a reply to the question that it answers, and move on to the next one."""
    cdef Inspection* one = pipeline.inspection
    cdef bint is_first = pipeline.page == request.first
    cdef Key* key = &pipeline.page.keys[pipeline.key]
    cdef int what
    if is_first:
        what = answer_first(one, key, request.asked.columns[key.is_sampled][pipeline.column], reply)
        pipeline.column += 1
    else:
        what = answer_second(one, key, pipeline.column, reply)
        pipeline.column += 1
    if what:
        pipeline.event = HAS_FAILED
        give_back(pipeline)


cdef inline bint find_question(Pipeline* pipeline, Request* request) noexcept nogil:
    """Move on to the next question about keys that awaits its reply; False where none does any more."""
    cdef Page* page
    if pipeline.page == NULL:
        pipeline.page = request.first if request.first != NULL else request.second
        pipeline.key = 0
        pipeline.column = 0 if request.first != NULL else ASKS_MEMORY
    while pipeline.page != NULL:
        page = pipeline.page
        while pipeline.key < page.count:
            if page == request.first:
                if pipeline.column < request.asked.count[page.keys[pipeline.key].is_sampled]:
                    return True
                pipeline.column = 0
            else:
                while pipeline.column < ALL_COLUMNS:
                    if page.keys[pipeline.key].asked & (1 << pipeline.column):
                        return True
                    pipeline.column += 1
                pipeline.column = ASKS_MEMORY
            pipeline.key += 1
        pipeline.page = request.second if page == request.first else page.next
        pipeline.key, pipeline.column = 0, ASKS_MEMORY
    return False


cdef inline bint keep_pages(Pipeline* pipeline, Request* request, int64_t epoch_ms) noexcept nogil:
    """Let the pages of a request that was answered go on; False where there is no memory."""
    cdef Page* first = request.first
    cdef Page* page
    request.first = NULL
    while request.second != NULL:
        page, request.second = request.second, request.second.next
        after_second(pipeline.inspection, page)
    if first != NULL:
        first.asked_at_ms = epoch_ms
        return after_first(pipeline.inspection, first)
    return True


cdef inline bint deliver(Pipeline* pipeline, size_t count) noexcept nogil:
    """Hand the names of a page that are kept to whoever gets them; False where there is no memory."""
    cdef Names* names = &pipeline.names
    cdef size_t index, kept = 0, size = 0
    if pipeline.filter != NULL and not filter_names(
        pipeline.filter, count, names.starts, names.lengths, names.keep
    ):
        return False
    for index in range(count):
        size += names.lengths[index]
        if names.keep[index]:
            names.starts[kept], names.lengths[kept] = names.starts[index], names.lengths[index]
            kept += 1
    pipeline.listed += count
    if count:
        pipeline.name_bytes = 0.9 * pipeline.name_bytes
        if <double>size / count > pipeline.name_bytes:
            pipeline.name_bytes = <double>size / count
    pipeline.delivered += kept
    if pipeline.inspection != NULL:
        return list_keys(pipeline.inspection, kept, names.starts, names.lengths, pipeline.portion)
    return not kept or pipeline.sink == NULL or pipeline.sink(pipeline.sink_owner, kept, names.starts, names.lengths)


cdef inline void keep_odd(Pipeline* pipeline, const Reply* reply) noexcept nogil:
    """Leave a reply at the start of the input for Python to look at."""
    pipeline.input.start = reply.at
    pipeline.odd_length = reply.end - reply.at


cdef inline void read_scan(Pipeline* pipeline, Request* request, const Reply* reply) noexcept nogil:
    """Take the keys of a page, and move its range on."""
    cdef uint64_t cursor = 0
    cdef size_t count = 0
    cdef Names* names = &pipeline.names
    cdef Range* scanned = request.scanned
    cdef int found = read_page(names, reply, &cursor, &count)
    scanned.is_under_way = False
    if found == 1:
        pipeline.stuck = pipeline.stuck + 1 if cursor and cursor == scanned.cursor else 0
        if pipeline.stuck >= STUCK_AFTER:
            pipeline.event = IS_STUCK
            return
        found = advance(
            pipeline.ranges, scanned, cursor, True, count, names.starts, names.lengths, names.keep
        )
        if found != RANGE_OK:
            pipeline.event = NO_MEMORY if found == RANGE_NO_MEMORY else NOT_IN_ORDER
        elif not deliver(pipeline, count):
            pipeline.event = NO_MEMORY
    elif found < 0:
        pipeline.event = NO_MEMORY
    else:
        pipeline.event = NO_PAGE
        keep_odd(pipeline, reply)


cdef inline void finish_request(Pipeline* pipeline, Request* request, bint has_waited, int64_t now_us) noexcept nogil:
    """Note what a request cost, whose last reply has come."""
    cdef Sample* sample
    cdef int64_t since_us = pipeline.last_arrival_us - pipeline.idle_us
    if pipeline.sample_count < MOST_SAMPLES:
        sample = &pipeline.samples[pipeline.sample_count]
        pipeline.sample_count += 1
        sample.cost_keys = request.cost_keys
        sample.round_trip_us = -1
        if has_waited:
            sample.round_trip_us = now_us - (request.sent_us if request.sent_us > since_us else since_us)
    pipeline.last_arrival_us = now_us
    pipeline.cost_keys += request.cost_keys
    pipeline.answered_commands += request.commands
    pipeline.answered_requests += 1


cdef inline void feed(Pipeline* pipeline, int64_t now_us, int64_t epoch_ms) noexcept nogil:
    """Read all replies that have arrived; what goes wrong is in `event`."""
    cdef Request* request
    cdef Reply reply
    cdef int found
    cdef bint has_waited = True
    while pipeline.event == NONE:
        request = request_at(&pipeline.requests, 0) if pipeline.requests.count else NULL
        if request != NULL and pipeline.answered == request.commands:
            if not request.is_void:
                if not keep_pages(pipeline, request, epoch_ms):
                    pipeline.event = NO_MEMORY
                    return
                finish_request(pipeline, request, has_waited, now_us)
                has_waited = False
            pipeline.under_way -= request.cost_keys
            end_request(&pipeline.requests)
            begin_request(pipeline)
            continue
        found = read_reply(&pipeline.input, &reply)
        if found == INCOMPLETE:
            if pipeline.input.end - pipeline.input.start > pipeline.most_reply_bytes:
                pipeline.event = TOO_LONG
            return
        if found == BAD:
            pipeline.event = NO_PROTOCOL
            return
        if request == NULL:
            pipeline.event = UNASKED
            keep_odd(pipeline, &reply)
            return
        pipeline.answered += 1
        pipeline.replies += 1
        if request.is_void:
            continue
        if find_question(pipeline, request):
            read_questions(pipeline, request, &reply)
            if pipeline.event == NONE and not find_question(pipeline, request):
                if not keep_pages(pipeline, request, epoch_ms):
                    pipeline.event = NO_MEMORY
        elif request.scanned != NULL:
            read_scan(pipeline, request, &reply)
