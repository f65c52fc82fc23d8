/* A link with a round trip: passes bytes on after so many milliseconds each way, as fast as they come.

   delay_link PORT ONE_WAY_MS: prints the port it listens on, on loopback, and serves until it is killed. */

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct piece {
    struct piece *next;
    struct timespec due;
    size_t length;
    char bytes[];
};

struct way {
    int from, to;
    struct piece *first, *last;
    int is_over;
    pthread_mutex_t lock;
    pthread_cond_t more;
};

static long delay_ns;

static void *read_in(void *argument) {
    struct way *way = argument;
    for (;;) {
        struct piece *piece = malloc(sizeof *piece + 65536);
        ssize_t got = recv(way->from, piece->bytes, 65536, 0);
        clock_gettime(CLOCK_MONOTONIC, &piece->due);
        piece->due.tv_nsec += delay_ns;
        piece->due.tv_sec += piece->due.tv_nsec / 1000000000;
        piece->due.tv_nsec %= 1000000000;
        piece->next = NULL;
        piece->length = got > 0 ? got : 0;
        pthread_mutex_lock(&way->lock);
        if (way->first) way->last->next = piece;
        else way->first = piece;
        way->last = piece;
        way->is_over = got <= 0;
        pthread_cond_signal(&way->more);
        pthread_mutex_unlock(&way->lock);
        if (got <= 0) return NULL;
    }
}

static void *write_out(void *argument) {
    struct way *way = argument;
    for (;;) {
        pthread_mutex_lock(&way->lock);
        while (!way->first) pthread_cond_wait(&way->more, &way->lock);
        struct piece *piece = way->first;
        way->first = piece->next;
        pthread_mutex_unlock(&way->lock);
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &piece->due, NULL);
        if (!piece->length) {
            shutdown(way->to, SHUT_WR);
            return NULL;
        }
        for (size_t at = 0; at < piece->length;) {
            ssize_t sent = send(way->to, piece->bytes + at, piece->length - at, MSG_NOSIGNAL);
            if (sent <= 0) return NULL;
            at += sent;
        }
        free(piece);
    }
}

static void pass_on(int from, int to) {
    struct way *way = calloc(1, sizeof *way);
    pthread_t thread;
    way->from = from;
    way->to = to;
    pthread_mutex_init(&way->lock, NULL);
    pthread_cond_init(&way->more, NULL);
    pthread_create(&thread, NULL, read_in, way);
    pthread_create(&thread, NULL, write_out, way);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    delay_ns = atol(argv[2]) * 1000000;
    struct sockaddr_in own = {.sin_family = AF_INET}, server = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    socklen_t size = sizeof own;
    int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    own.sin_addr.s_addr = server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&own, size) || listen(listener, 16)) return 1;
    getsockname(listener, (struct sockaddr *)&own, &size);
    printf("%d\n", ntohs(own.sin_port));
    fflush(stdout);
    for (;;) {
        int client = accept(listener, NULL, NULL), upstream = socket(AF_INET, SOCK_STREAM, 0);
        if (client < 0 || connect(upstream, (struct sockaddr *)&server, sizeof server)) return 1;
        setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        setsockopt(upstream, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        pass_on(client, upstream);
        pass_on(upstream, client);
    }
}
