/* Sends about every key what an inspection sends, counts the replies and keeps nothing: the limit that a server sets.

   limit_loop PORT COUNT COMMANDS: one write holds the questions about the last page and the next SCAN; two writes are under
   way, one in each half of the keyspace (a cursor's lowest bit says in which half it is), so that the server never waits.
   COMMANDS are letters: t TYPE, p PTTL, i OBJECT IDLETIME, f OBJECT FREQ, m MEMORY USAGE,
   x EXISTS, which costs what the length does. Prints keys and seconds. */

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct chain {
    char cursor[24];
    int is_over;
    long replies; /* that come before its SCAN's */
};

static int fd;
static char *in;
static size_t in_start, in_end, in_size;

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static void fill(void) {
    if (in_start == in_end) in_start = in_end = 0;
    if (in_size - in_end < 65536) {
        if (in_start > in_size / 2) {
            memmove(in, in + in_start, in_end - in_start);
            in_end -= in_start;
            in_start = 0;
        } else {
            in_size = 2 * in_size + 131072;
            in = realloc(in, in_size);
        }
    }
    ssize_t got = recv(fd, in + in_end, in_size - in_end, 0);
    if (got <= 0) exit(1);
    in_end += got;
}

/* The next line without its end; valid until the next call. */
static char *line(void) {
    char *end;
    while (!(end = memchr(in + in_start, '\n', in_end - in_start))) fill();
    char *found = in + in_start;
    end[-1] = 0;
    in_start = end + 1 - in;
    return found;
}

static char *text(size_t length) {
    while (in_end - in_start < length + 2) fill();
    char *found = in + in_start;
    in_start += length + 2;
    return found;
}

static char *out;
static size_t out_end, out_size;

static void put(const char *bytes, size_t length) {
    if (out_size - out_end < length) {
        out_size = 2 * (out_size + length);
        out = realloc(out, out_size);
    }
    memcpy(out + out_end, bytes, length);
    out_end += length;
}

static void send_all(void) {
    for (size_t at = 0; at < out_end;) {
        ssize_t sent = send(fd, out + at, out_end - at, 0);
        if (sent <= 0) exit(1);
        at += sent;
    }
    out_end = 0;
}

static void put_scan(struct chain *chain, const char *count) {
    char request[160];
    int length = snprintf(request, sizeof request, "*4\r\n$4\r\nSCAN\r\n$%zu\r\n%s\r\n$5\r\nCOUNT\r\n$%zu\r\n%s\r\n",
                          strlen(chain->cursor), chain->cursor, strlen(count), count);
    put(request, length);
}

static const char *before(char letter) {
    switch (letter) {
        case 't': return "*2\r\n$4\r\nTYPE\r\n$";
        case 'p': return "*2\r\n$4\r\nPTTL\r\n$";
        case 'i': return "*3\r\n$6\r\nOBJECT\r\n$8\r\nIDLETIME\r\n$";
        case 'f': return "*3\r\n$6\r\nOBJECT\r\n$4\r\nFREQ\r\n$";
        case 'x': return "*2\r\n$6\r\nEXISTS\r\n$";
        default: return "*3\r\n$6\r\nMEMORY\r\n$5\r\nUSAGE\r\n$";
    }
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    const char *count = argv[2], *commands = argv[3];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, (struct sockaddr *)&to, sizeof to)) return 1;
    struct chain chains[2] = {{"0", 0, 0}, {"1", 0, 0}};
    double start = now_s();
    long keys = 0, owed = 0;
    for (int at = 0; at < 2; at++) {
        put_scan(&chains[at], count);
        send_all();
    }
    for (int at = 0; !(chains[0].is_over && chains[1].is_over); at = !at) {
        struct chain *chain = &chains[at];
        if (chain->is_over) continue;
        for (; chain->replies; chain->replies--)
            line();
        line();
        char *cursor = text(atoi(line() + 1));
        size_t length = strcspn(cursor, "\r");
        memcpy(chain->cursor, cursor, length);
        chain->cursor[length] = 0;
        long many = atol(line() + 1);
        for (long index = 0; index < many; index++) {
            char header[32];
            length = strtoul(line() + 1, NULL, 10);
            char *key = text(length);
            int header_length = snprintf(header, sizeof header, "%zu\r\n", length);
            for (const char *letter = commands; *letter; letter++) {
                const char *start_of = before(*letter);
                put(start_of, strlen(start_of));
                put(header, header_length);
                put(key, length + 2);
            }
        }
        keys += many;
        chain->replies = many * strlen(commands) + owed;
        owed = 0;
        uint64_t number = strtoull(chain->cursor, NULL, 10);
        chain->is_over = number == 0 || (at == 0 && number & 1);
        if (chain->is_over) owed = chain->replies; /* they come between two writes of the other half */
        else put_scan(chain, count);
        send_all();
    }
    for (; owed; owed--) line();
    printf("%ld %.6f\n", keys, now_s() - start);
    return 0;
}
