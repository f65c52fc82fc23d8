"""Drives a pipeline over a socket, in a thread of its own and without Python: sends, waits, reads.

`drive` returns after a slice of time, or at an event that Python has to see to, with writes still under way. Rows are
made of a page after the next write is out, while the server works on it. Times are microseconds of the monotonic
clock, so that a gentle pace can send a small write every 600 µs. The socket is a blocking one that waits for WAITS_AT_MOST_US
to be read; where a write is due sooner, the thread waits for that.
"""

from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport int64_t

from rtui.server.engine._inspection cimport Inspection, finish_page, stopped_ms
from rtui.server.engine._pages cimport Page, pop
from rtui.server.engine._pipeline cimport (
    HAS_BROKEN,
    HAS_CLOSED,
    IS_DONE,
    IS_DRAINED,
    IS_SILENT,
    NO_MEMORY,
    NONE,
    SLICE_IS_OVER,
    Pipeline,
    feed,
    has_room,
    has_work,
    is_awaiting,
    send_next,
)
from rtui.server.engine._replies cimport make_room

cdef extern from *:
    """
    #ifndef RTUI_DRIVER
    #define RTUI_DRIVER
    #ifdef _WIN32
    #error "rtui needs a Unix"
    #endif
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <poll.h>
    #include <sys/socket.h>
    #include <time.h>

    static inline int64_t rtui_clock_us(clockid_t clock) {
        struct timespec now;
        clock_gettime(clock, &now);
        return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    }
    static inline int64_t rtui_now_us(void) { return rtui_clock_us(CLOCK_MONOTONIC); }
    static inline int64_t rtui_epoch_ms(void) { return rtui_clock_us(CLOCK_REALTIME) / 1000; }

    /* Wait until a socket can be read, or written; 1, 0 when the time is over, -1 for an error. */
    static inline int rtui_wait(int fd, int is_writing, int64_t us) {
        struct pollfd one = {fd, (short)(is_writing ? POLLIN | POLLOUT : POLLIN), 0};
    #ifdef __linux__
        struct timespec rest = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
        return ppoll(&one, 1, &rest, NULL);
    #else
        return poll(&one, 1, (int)((us + 999) / 1000));
    #endif
    }
    #ifndef MSG_NOSIGNAL
    #define MSG_NOSIGNAL 0
    #endif
    static inline ssize_t rtui_recv(int fd, void *to, size_t size, int waits) {
        return recv(fd, to, size, waits ? 0 : MSG_DONTWAIT);
    }
    static inline ssize_t rtui_send(int fd, const void *from, size_t size) {
        return send(fd, from, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    static inline void rtui_set_flag(int *flag, int value) { __atomic_store_n(flag, value, __ATOMIC_RELAXED); }
    static inline int rtui_flag(const int *flag) { return __atomic_load_n(flag, __ATOMIC_RELAXED); }
    #endif
    """
    void set_flag "rtui_set_flag"(int*, int) noexcept nogil
    int flag "rtui_flag"(const int*) noexcept nogil
    int64_t now_us "rtui_now_us"() noexcept nogil
    int64_t going_epoch_ms "rtui_epoch_ms"() noexcept nogil
    int wait_for "rtui_wait"(int, int, int64_t) noexcept nogil
    ssize_t receive "rtui_recv"(int, void*, size_t, int) noexcept nogil
    ssize_t send "rtui_send"(int, const void*, size_t) noexcept nogil

cdef enum:
    READ_BYTES = 65536
    WAITS_AT_MOST_US = 20_000  # how long the socket waits for something to read
    MOST_ROWS = 65536
    MOST_LEFT = 1000  # rows that Python goes on with
    MOST_UNREAD_BYTES = 4 << 20

cdef struct Driver:
    Pipeline* pipeline
    int64_t silence_us  # a server that owes replies for so long is given up
    int64_t last_data_us
    bint is_draining  # nothing more is sent
    int is_interrupted  # a flag that another thread sets: the slice ends


cdef inline int64_t epoch_ms() noexcept nogil:
    """Return the time of day, which may stand still (`rtui.server.wall_clock`)."""
    return stopped_ms if stopped_ms else going_epoch_ms()


cdef inline void finish_done(Driver* driver) noexcept nogil:
    """Make rows of the pages about which all is known."""
    cdef Inspection* one = driver.pipeline.inspection
    cdef Page* page = NULL if one == NULL else pop(&one.done)
    while page != NULL:
        if not finish_page(one, page):
            driver.pipeline.event = NO_MEMORY
            break
        page = pop(&one.done)


cdef inline bint may_send(const Driver* driver, int64_t now) noexcept nogil:
    cdef const Pipeline* pipeline = driver.pipeline
    return (
        pipeline.event == NONE
        and not driver.is_draining
        and not flag(&driver.is_interrupted)
        and has_room(pipeline)
        and pipeline.free_at_us <= now
    )


cdef inline bint write_out(Driver* driver, int fd) noexcept nogil:
    """Send what the socket takes; False where it is broken."""
    cdef Pipeline* pipeline = driver.pipeline
    cdef ssize_t sent
    while pipeline.output.start < pipeline.output.end:
        sent = send(fd, pipeline.output.data + pipeline.output.start, pipeline.output.end - pipeline.output.start)
        if sent < 0:
            if errno == EINTR:
                continue
            if errno == EAGAIN:
                return True
            pipeline.event, pipeline.error = HAS_BROKEN, errno
            return False
        pipeline.output.start += sent
    return True


cdef inline void read_in(Driver* driver, int fd, bint waits) noexcept nogil:
    """Read what has arrived, or what arrives while the socket waits."""
    cdef Pipeline* pipeline = driver.pipeline
    cdef ssize_t got
    cdef int64_t now
    if not make_room(&pipeline.input, READ_BYTES):
        pipeline.event = NO_MEMORY
        return
    got = receive(fd, pipeline.input.data + pipeline.input.end, pipeline.input.capacity - pipeline.input.end, waits)
    if got == 0:
        pipeline.event = HAS_CLOSED
    elif got < 0:
        if errno not in (EAGAIN, EINTR):
            pipeline.event, pipeline.error = HAS_BROKEN, errno
    else:
        now = now_us()
        pipeline.input.end += <size_t>got
        pipeline.bytes_in += got
        driver.last_data_us = now
        feed(pipeline, now, epoch_ms())


cdef inline bint is_full(const Pipeline* pipeline) noexcept nogil:
    """Whether so many rows wait for Python that it should take them, or so many lengths are asked late."""
    cdef const Inspection* one = pipeline.inspection
    return one != NULL and (
        one.wants_python
        or one.rows.count >= MOST_ROWS
        or one.exported.count >= MOST_LEFT
        or one.absent.count >= MOST_LEFT
        or one.unread.name_bytes >= MOST_UNREAD_BYTES
    )


cdef inline int state_at(Driver* driver, int64_t now, int64_t end) noexcept nogil:
    """Return why the slice ends, NONE while it does not."""
    cdef Pipeline* pipeline = driver.pipeline
    if pipeline.event != NONE:
        return pipeline.event
    if is_awaiting(pipeline):
        if now - driver.last_data_us > driver.silence_us:
            return IS_SILENT
    elif driver.is_draining:
        return IS_DRAINED
    elif not has_work(pipeline):
        return IS_DONE
    return SLICE_IS_OVER if now >= end or flag(&driver.is_interrupted) or is_full(pipeline) else NONE


cdef inline int drive(Driver* driver, int fd, int64_t slice_us) noexcept nogil:
    """Drive a pipeline for so long; return the event that ended it."""
    cdef Pipeline* pipeline = driver.pipeline
    cdef int64_t now = now_us(), wait_us
    cdef int64_t end = now + slice_us
    cdef int state, ready
    cdef bint is_writing
    feed(pipeline, now, epoch_ms())  # what has come before an event that was seen to
    while True:
        while may_send(driver, now):
            if not pipeline.requests.count:
                driver.last_data_us = now
            ready = send_next(pipeline, now, epoch_ms())
            if ready < 0:
                pipeline.event = NO_MEMORY
            if ready <= 0:
                break
        if pipeline.output.start < pipeline.output.end:
            write_out(driver, fd)
        finish_done(driver)
        state = state_at(driver, now, end)
        if state != NONE:
            return state
        wait_us = end - now
        if has_room(pipeline) and pipeline.free_at_us > now and pipeline.free_at_us - now < wait_us:
            wait_us = <int64_t>pipeline.free_at_us - now + 1
        is_writing = pipeline.output.start < pipeline.output.end
        if pipeline.requests.count and not is_writing and wait_us >= WAITS_AT_MOST_US:
            read_in(driver, fd, True)  # one system call instead of two
        elif wait_for(fd, is_writing, wait_us) > 0:
            read_in(driver, fd, False)
        now = now_us()
