"""The engine of a scan: what one connection is asked, and what the replies come to, without a Python object for a key.

`ScanEngine` is a pipeline (`_pipeline`) over ranges (`_ranges`) with an inspection of the keys (`_inspection`), or with
groups of their names. It needs no socket: `next_write` returns the bytes to send, `feed` takes those that have arrived.
`drive` does the same over a socket, without the GIL (`_driver`), so that a thread can do it. Everything else is for the
time between two of these calls. `rtui.server.scan.compiled_scan` puts it to use.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from rtui.server.engine._driver cimport WAITS_AT_MOST_US, Driver, drive, epoch_ms, finish_done, now_us, set_flag
from rtui.server.engine._inspection cimport (
    IS_FAILURE,
    MOST_KEY_BYTES,
    MOST_NAME,
    Inspection,
    KeyType,
    Template,
    find_type,
    stopped_ms,
)
from rtui.server.engine._name_table cimport NameGroups, NameTable, add_names
from rtui.server.engine._pages cimport (
    ALL_COLUMNS,
    ASKS_ENCODING,
    ASKS_LENGTH,
    ASKS_MEMORY,
    FIRST_COLUMNS,
    IS_SAMPLED,
    KNOWS_FREQUENCY,
    KNOWS_IDLE,
    KNOWS_LENGTH,
    KNOWS_MEMORY,
    KNOWS_TTL,
    Key,
    Output,
    Page,
    Queue,
    Row,
    Rows,
    free_pages,
    free_rows,
    pop,
)
from rtui.server.engine._pipeline cimport (
    HAS_FAILED,
    NO_MEMORY,
    NONE,
    SLICE_IS_OVER,
    UNASKED,
    NO_PAGE,
    Pipeline,
    drop,
    feed,
    free_pipeline,
    has_room,
    has_work,
    is_awaiting,
    resume,
    send_next,
    waiting_keys,
)
from rtui.server.engine._ranges cimport CompiledRanges
from rtui.server.engine._replies cimport ERROR, NUMBER, TEXT, Reply, make_room
from rtui.server.engine._slot_filter cimport SlotFilter
from rtui.server.engine._slots cimport fill_crcs

from os import urandom

from rtui.server.guard.command import MAX_BULK_KEY_BYTES, KeyTemplate, ScanTemplate

if MAX_BULK_KEY_BYTES != MOST_KEY_BYTES:
    raise ImportError("the compiled engine was built for another guard")

cdef enum:
    MOST_REPLY_BYTES = 512 << 20  # of one reply, as a lane has it

cdef tuple KINDS = (None, "number", "text", "nil", "error", "other")


cdef Template template_of(bytes part):
    cdef Template found
    found.before, found.length = <const uint8_t*>PyBytes_AS_STRING(part), PyBytes_GET_SIZE(part)
    return found


cdef bytes bytes_at(const void* start, size_t length):
    return PyBytes_FromStringAndSize(<const char*>start, length)


cdef int decide(void* owner, int column, const Key* key, const Reply* reply) noexcept nogil:
    """Ask Python what a reply means."""
    with gil:
        return (<ScanEngine>owner).decided(column, key, reply)


cdef bint group_names(void* owner, size_t count, const uint8_t** names, const size_t* lengths) noexcept nogil:
    return add_names(<NameGroups*>owner, count, names, lengths)


def stop_clock(moment_ms):
    """Let the time of day stand still for all engines; 0 lets it go on."""
    global stopped_ms
    stopped_ms = moment_ms


cdef class ScanEngine:
    """What one connection is asked; see the module. Times are microseconds of the monotonic clock."""

    cdef Pipeline pipeline
    cdef Inspection inspection
    cdef Driver driver
    cdef CompiledRanges ranges
    cdef NameTable names
    cdef SlotFilter filter
    cdef object answers
    cdef list kept
    cdef dict names_by_column
    cdef dict length_names
    cdef object failure
    cdef bint is_at_work
    cdef size_t waiting_before

    def __cinit__(self, CompiledRanges ranges not None, scan):
        if type(scan) is not ScanTemplate:
            raise TypeError("the engine sends templates of the guard only")
        self.ranges, self.kept = ranges, [scan]
        self.names_by_column, self.length_names = {}, {}
        self.pipeline.ranges = &ranges.state
        self.pipeline.before_cursor = template_of(scan.before_cursor)
        self.pipeline.before_count = template_of(scan.before_count)
        self.pipeline.end_of_scan = template_of(scan.end)
        self.pipeline.count = self.pipeline.portion = self.pipeline.most_under_way = 10
        self.pipeline.width = 1
        self.driver.pipeline = &self.pipeline
        self.driver.silence_us = 20_000_000
        self.pipeline.most_reply_bytes = MOST_REPLY_BYTES

    def __dealloc__(self):
        cdef int32_t index
        free_pipeline(&self.pipeline)
        free_pages(&self.inspection.listed)
        free_pages(&self.inspection.typed)
        free_pages(&self.inspection.done)
        free_rows(&self.inspection.rows)
        free_rows(&self.inspection.exported)
        free_rows(&self.inspection.unread)
        free_rows(&self.inspection.absent)
        for index in range(self.inspection.type_count):
            free(self.inspection.types[index].encodings)
        free(self.inspection.types)
        free(self.inspection.own_reads)

    cdef int check(self) except -1:
        if self.is_at_work:
            raise RuntimeError("the engine is at work")
        return 0

    def inspect(self, answers, *, uint32_t sampled_every, uint32_t sampled_in):
        """Ask about all keys that are listed; `answers` says what odd replies mean.

        Keys are sampled as the first, second … after `sampled_in` others, one in `sampled_every`.
        """
        self.check()
        if self.pipeline.inspection != NULL or not sampled_every:
            raise ValueError("an inspection is set up once")
        self.answers = answers
        self.inspection.owner = <void*>self
        self.inspection.decide = decide
        self.inspection.seed = <uint64_t>int.from_bytes(urandom(8), "little")
        fill_crcs(self.inspection.crcs)
        self.inspection.sampled_every, self.inspection.sampled_in = sampled_every, sampled_in
        if find_type(&self.inspection, NULL, 0) < 0:
            raise MemoryError
        self.pipeline.inspection = &self.inspection

    def group_names(self, NameTable names not None):
        """Put the names of all keys that are listed into a table."""
        self.check()
        self.names = names
        self.pipeline.sink, self.pipeline.sink_owner = group_names, <void*>&names.groups

    def filter_slots(self, SlotFilter filter not None):
        """Deliver of a cluster's node what this lets through."""
        self.check()
        self.filter, self.pipeline.filter = filter, &filter.state

    def use_ranges(self, CompiledRanges ranges not None):
        """Scan these ranges from now on; RuntimeError while something is under way."""
        self.check()
        if self.pipeline.requests.count:
            raise RuntimeError("something is under way")
        self.ranges, self.pipeline.ranges = ranges, &ranges.state
        self.pipeline.stuck = 0

    @property
    def tells_absent(self):
        """Whether `take_absent` has keys that are gone or that another node has; else these are counted, or unknown."""
        return bool(self.inspection.tells_absent)

    @tells_absent.setter
    def tells_absent(self, bint tells):
        self.check()
        self.inspection.tells_absent = tells

    cdef int decided(self, int column, const Key* key, const Reply* reply) noexcept:
        """Return what a reply means; what Python raises is raised again by whoever has called the engine."""
        try:
            value = None
            if reply.kind in (TEXT, ERROR):
                value = bytes_at(reply.text, reply.length)
            elif reply.kind == NUMBER:
                value = reply.number
            what = self.answers.decide(column, self.type_name(key.type), KINDS[reply.kind], value)
            return what
        except BaseException as error:
            self.failure = error
            return IS_FAILURE

    cdef object type_name(self, int32_t number):
        cdef KeyType* one
        if number <= 0:
            return None
        one = &self.inspection.types[number]
        return bytes_at(one.name, one.length)

    # What is asked

    def ask_first(self, columns, sampled_columns):
        """Ask this of every key first, pairs of a column and a template: of those not sampled, and of those that are."""
        cdef int is_sampled, at
        self.check()
        self.inspection.decision_count = 0  # since rights may have changed
        for is_sampled, wanted in enumerate((columns, sampled_columns)):
            if len(wanted) > FIRST_COLUMNS:
                raise ValueError("too many columns")
            self.inspection.first.count[is_sampled] = 0
            for at, (column, template) in enumerate(wanted):
                self.inspection.first.columns[is_sampled][at] = column
                self.set_template(column, template)
                self.inspection.first.count[is_sampled] += 1

    def set_template(self, int column, template):
        """Ask for what goes into a column by this command; the one for lengths is set by type."""
        if not 0 <= column < ALL_COLUMNS or column == ASKS_LENGTH:
            raise ValueError("no such column")
        if type(template) is not KeyTemplate:
            raise TypeError("the engine sends templates of the guard only")
        self.kept.append(template)
        self.names_by_column[column] = template.name
        self.inspection.before_key[column] = template_of(template.before)

    def ask_encodings(self, uint32_t every):
        """Ask every n-th key of a type for its encoding, none for 0."""
        if every and self.inspection.before_key[ASKS_ENCODING].before == NULL:
            raise ValueError("there is no command for encodings")
        self.inspection.encoding_every = every

    def know_types(self, names):
        """Make room for types before a key of them has come, so that they can be defined."""
        self.check()
        for name in names:
            if len(name) > MOST_NAME:
                raise ValueError("no type has so long a name")
            if find_type(&self.inspection, <const uint8_t*>PyBytes_AS_STRING(name), len(name)) < 0:
                raise MemoryError

    def types(self):
        """Return the types so far in the order of their numbers; the first is None, for keys of unknown type."""
        self.check()
        return [self.type_name(index) for index in range(self.inspection.type_count)]

    def define_type(
        self, int32_t number, *, bint is_exported, bint is_removed_when_empty, tuple asked, length
    ):
        """Say what is asked of keys of a type in the second stage: columns as bits, not sampled and sampled.

        The keys of a type that is exported are left to Python after the first stage.
        """
        cdef KeyType* one
        self.check()
        if not 0 <= number < self.inspection.type_count:
            raise IndexError(number)
        one = &self.inspection.types[number]
        for columns in asked:
            if columns & ~(1 << ASKS_MEMORY | 1 << ASKS_LENGTH):
                raise ValueError("no such columns")
            if columns & (1 << ASKS_MEMORY) and self.inspection.before_key[ASKS_MEMORY].before == NULL:
                raise ValueError("there is no command for memory")
            if columns & (1 << ASKS_LENGTH) and length is None:
                raise ValueError("there is no command for lengths")
        memset(&one.before_key, 0, sizeof(Template))
        if length is not None:
            if type(length) is not KeyTemplate:
                raise TypeError("the engine sends templates of the guard only")
            self.kept.append(length)
            self.length_names[number] = length.name
            one.before_key = template_of(length.before)
        one.asked[0], one.asked[1] = asked
        one.is_exported, one.is_removed_when_empty = is_exported, is_removed_when_empty
        one.late_least = -1

    def set_own_reads(self, hashes):
        """Leave keys to Python after the first stage whose names have these hashes of Python, ascending."""
        cdef size_t index, count = len(hashes)
        cdef int64_t* made
        self.check()
        made = <int64_t*>malloc((count + 1) * sizeof(int64_t))
        if made == NULL:
            raise MemoryError
        try:
            for index in range(count):
                made[index] = hashes[index]
        except BaseException:
            free(made)
            raise
        free(self.inspection.own_reads)
        self.inspection.own_reads, self.inspection.own_read_count = made, count

    def ask_late(self, int32_t number, least_memory, uint64_t most, *, bint is_open):
        """Ask the length of keys of a type late that are not sampled and have at least so much memory; None for none.

        When so many have been asked, the slice ends if `is_open`; otherwise no more are asked.
        """
        self.check()
        if not 0 <= number < self.inspection.type_count:
            raise IndexError(number)
        if least_memory is not None and self.inspection.types[number].before_key.before == NULL:
            raise ValueError("there is no command for lengths")
        self.inspection.types[number].late_least = -1 if least_memory is None else least_memory
        self.inspection.types[number].late_left = most
        self.inspection.types[number].late_is_open = is_open

    def take_late(self):
        """Return by number of a type since the last call: keys not sampled, those asked late, and the most memory of
        those left out, -1 where there is none, None where it is not known."""
        cdef int32_t index
        cdef KeyType* one
        cdef list found = []
        self.check()
        self.inspection.wants_python = False
        for index in range(self.inspection.type_count):
            one = &self.inspection.types[index]
            found.append((one.late_seen, one.late_asked, None if one.left_out_unknown else one.left_out_memory))
            one.late_seen = one.late_asked = 0
            one.left_out_memory, one.left_out_unknown = -1, False
        return found

    def set_pace(
        self, *, uint32_t count, uint32_t portion, uint32_t most_under_way, uint32_t width, double key_gap_us,
        int64_t idle_us
    ):
        """Set COUNT, the keys that are asked about at once, what all writes under way may cost, in keys, the ranges that
        are scanned side by side, and the time between writes for each key that a write costs. `idle_us` is the round
        trip of a write that costs nothing."""
        self.check()
        self.pipeline.count, self.pipeline.portion = count, portion
        self.pipeline.most_under_way, self.pipeline.width = most_under_way, width
        self.pipeline.key_gap_us, self.pipeline.idle_us = key_gap_us, idle_us
        if key_gap_us <= 0:
            self.pipeline.free_at_us = 0

    # At work

    def drive(self, int fd, int64_t slice_us, int64_t silence_us, *, bint is_draining):
        """Ask and answer over a socket for so long, without the GIL; return the event that ended it.

        Meanwhile nothing but `interrupt` may be called, and the ranges say what they said before.
        """
        cdef int event
        self.check()
        self.ranges.publish()
        try:
            self.begin()
            self.driver.is_draining, self.driver.silence_us = is_draining, silence_us
            with nogil:
                event = drive(&self.driver, fd, slice_us)
                set_flag(&self.driver.is_interrupted, 0)
        finally:
            self.is_at_work = False
            self.ranges.take_back()
        return self.ended(event)

    def interrupt(self):
        """End the slice soon; from any thread."""
        set_flag(&self.driver.is_interrupted, 1)

    def next_write(self):
        """Return the bytes of the next write, empty where there is nothing to send now."""
        cdef int64_t now = now_us()
        cdef Output* output
        cdef int outcome = 1
        self.begin()
        with nogil:
            while (
                outcome > 0 and self.pipeline.event == NONE and self.pipeline.output.start == self.pipeline.output.end
                and has_room(&self.pipeline) and self.pipeline.free_at_us <= now
            ):
                outcome = send_next(&self.pipeline, now, epoch_ms())
            if outcome < 0:
                self.pipeline.event = NO_MEMORY
            finish_done(&self.driver)
        self.is_at_work = False
        if self.pipeline.event == NO_MEMORY:
            self.ended(NO_MEMORY)
        output = &self.pipeline.output
        made = bytes_at(output.data + output.start, output.end - output.start)
        self.pipeline.output.start = self.pipeline.output.end = 0
        return made

    def feed(self, const uint8_t[::1] received, at_ms=None):
        """Take bytes that have arrived, in ms since the epoch or now, and return the event that came of them.

        While there is one already they are kept until `resume`.
        """
        cdef size_t size = received.shape[0]
        cdef const uint8_t* start = &received[0] if size else NULL
        cdef int64_t moment_ms = epoch_ms() if at_ms is None else at_ms
        cdef int before = self.pipeline.event
        self.begin()
        with nogil:
            if not make_room(&self.pipeline.input, size):
                self.pipeline.event = NO_MEMORY
            elif size:
                memcpy(self.pipeline.input.data + self.pipeline.input.end, start, size)
                self.pipeline.input.end += size
                self.pipeline.bytes_in += size
            if before == NONE:
                feed(&self.pipeline, now_us(), moment_ms)
            finish_done(&self.driver)
        self.is_at_work = False
        return before if before != NONE and self.pipeline.event != NO_MEMORY else self.ended(self.pipeline.event)

    cdef int begin(self) except -1:
        """Begin to work, unless it is at work already, or memory was short once."""
        self.check()
        if self.pipeline.event == NO_MEMORY:
            raise MemoryError
        self.waiting_before = waiting_keys(&self.pipeline)
        self.is_at_work = True
        return 0

    cdef object ended(self, int event):
        if event == HAS_FAILED and self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        if event in (NO_MEMORY, HAS_FAILED):
            self.pipeline.event = NO_MEMORY
            raise MemoryError
        return event

    @property
    def event(self):
        """What has happened since the last `resume`, 0 for nothing; SLICE_IS_OVER where `take_late` should be called."""
        self.check()
        if self.pipeline.event == NONE and self.inspection.wants_python:
            return SLICE_IS_OVER
        return self.pipeline.event

    @property
    def most_reply_bytes(self):
        """A longer reply than this is an event."""
        return self.pipeline.most_reply_bytes

    @most_reply_bytes.setter
    def most_reply_bytes(self, size_t most):
        self.check()
        self.pipeline.most_reply_bytes = most

    @property
    def socket_waits_us(self):
        """How long the socket that it is driven over waits for something to read."""
        return WAITS_AT_MOST_US

    @property
    def wait_us(self):
        """How long until the pace allows another write, 0 for now."""
        cdef int64_t rest
        self.check()
        rest = <int64_t>self.pipeline.free_at_us - now_us()
        return rest if rest > 0 else 0

    @property
    def is_awaiting(self):
        """Whether replies, or the rest of one that has begun, are still to come."""
        self.check()
        return bool(is_awaiting(&self.pipeline))

    @property
    def has_work(self):
        """Whether anything is left to ask."""
        self.check()
        return bool(has_work(&self.pipeline))

    @property
    def waiting(self):
        """Keys about which something is still to be asked; while it is at work, before it began."""
        return self.waiting_before if self.is_at_work else waiting_keys(&self.pipeline)

    def resume(self):
        """Go on after an event that was seen to; what was under way is asked again, and its replies are passed over.

        Those that have arrived already are looked at by the next `feed` or `drive`.
        """
        self.check()
        resume(&self.pipeline)

    def drop(self):
        """Forget the connection; what was under way is asked again on another one."""
        self.check()
        drop(&self.pipeline)

    def odd_reply(self):
        """Return the reply that was no page of keys, or that nobody asked for, as it came."""
        self.check()
        if self.pipeline.event not in (NO_PAGE, UNASKED):
            return b""
        return bytes_at(self.pipeline.input.data + self.pipeline.input.start, self.pipeline.odd_length)

    @property
    def error(self):
        """The error number of a broken connection."""
        return self.pipeline.error

    # What came of it

    def progress(self):
        """Return: commands sent, commands answered, keys that answered writes cost, keys listed, keys delivered, keys
        inspected, keys that were gone, bytes in, bytes out, writes answered."""
        self.check()
        return (
            self.pipeline.commands, self.pipeline.answered_commands, self.pipeline.cost_keys, self.pipeline.listed,
            self.pipeline.delivered, self.inspection.keys, self.inspection.vanished, self.pipeline.bytes_in,
            self.pipeline.bytes_out, self.pipeline.answered_requests,
        )

    def take_sent(self):
        """Return since the last call: how many commands of each name were sent, and how many replies have come."""
        cdef int32_t index
        cdef int column
        cdef dict sent = {}
        self.check()
        if self.pipeline.scans_sent:
            sent["SCAN"] = self.pipeline.scans_sent
        for column, name in self.names_by_column.items():
            if self.inspection.sent[column]:
                sent[name] = self.inspection.sent[column]
            self.inspection.sent[column] = 0
        for index, name in self.length_names.items():
            if self.inspection.types[index].lengths_sent:
                sent[name] = sent.get(name, 0) + self.inspection.types[index].lengths_sent
            self.inspection.types[index].lengths_sent = 0
        replies = self.pipeline.replies
        self.pipeline.scans_sent = self.pipeline.replies = 0
        return sent, replies

    def take_samples(self):
        """Return since the last call pairs of what a write cost in keys and its round trip, -1 where it was not seen."""
        cdef uint32_t index
        self.check()
        found = [(self.pipeline.samples[index].cost_keys, self.pipeline.samples[index].round_trip_us)
                 for index in range(self.pipeline.sample_count)]
        self.pipeline.sample_count = 0
        return found

    def take_rows(self):
        """Return since the last call the keys about which all is known: rows as `engine_rows` reads them, and the names
        in them, one behind the other."""
        cdef Rows* rows = &self.inspection.rows
        self.check()
        found = bytes_at(rows.items, rows.count * sizeof(Row)), bytes_at(rows.names, rows.name_bytes)
        rows.count = rows.name_bytes = 0
        return found

    def encodings(self):
        """Return by number of a type its encodings so far, in the order of their numbers, which begin with 1."""
        cdef int32_t index
        cdef size_t at
        cdef KeyType* one
        cdef list found = []
        self.check()
        for index in range(self.inspection.type_count):
            one = &self.inspection.types[index]
            found.append([bytes_at(one.encodings[at].name, one.encodings[at].length) for at in range(one.encoding_count)])
        return found

    def take_exported(self):
        """Return keys that Python goes on with since the last call; see `rows_of`."""
        return self.rows_of(&self.inspection.exported)

    def take_unread(self):
        """Return names that are too long to ask about."""
        return [row[0] for row in self.rows_of(&self.inspection.unread)]

    def take_absent(self):
        """Return keys since the last call of which the server has said that another node has them."""
        return [row[0] for row in self.rows_of(&self.inspection.absent)]

    def take_waiting(self):
        """Make rows of all keys about which all is known; forget the others, and return their names."""
        cdef list found = []
        cdef Page* page
        cdef Queue* queue
        cdef size_t index, at
        self.check()
        if self.pipeline.requests.count:
            raise RuntimeError("something is under way")
        self.begin()
        with nogil:
            finish_done(&self.driver)
        self.is_at_work = False
        self.ended(self.pipeline.event if self.pipeline.event == NO_MEMORY else NONE)
        for at in range(2):
            queue = &self.inspection.typed if at else &self.inspection.listed
            page = pop(queue)
            while page != NULL:
                for index in range(page.count):
                    if not page.keys[index].is_absent:
                        found.append(bytes_at(page.keys[index].name, page.keys[index].length))
                free(page)
                page = pop(queue)
        return found

    cdef list rows_of(self, Rows* rows):
        """Return key, type, TTL, memory, idle time, frequency, length, each None where it is not known, when the
        key was asked, in ms since the epoch, and whether it is sampled."""
        cdef list found = []
        cdef size_t index
        cdef Row* row
        self.check()
        for index in range(rows.count):
            row = &rows.items[index]
            found.append((
                bytes_at(rows.names + row.name_at, row.length),
                self.type_name(row.type),
                row.ttl_ms if row.known & KNOWS_TTL else None,
                row.memory_bytes if row.known & KNOWS_MEMORY else None,
                row.recency if row.known & KNOWS_IDLE else None,
                row.recency if row.known & KNOWS_FREQUENCY else None,
                row.size if row.known & KNOWS_LENGTH else None,
                row.asked_at_ms,
                bool(row.known & IS_SAMPLED),
            ))
        rows.count = rows.name_bytes = 0
        return found
