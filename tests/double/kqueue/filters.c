/* SPDX-License-Identifier: MIT */
/*
 * The filters: what they attach to on Linux, and what they answer.
 *
 * Where Linux cannot know what a kernel with kqueue knows:
 *
 *  L1  The error of a socket cannot be read without taking it away, and then the next call on the
 *      socket would not report it.  So fflags of EV_EOF is ECONNRESET for every error.
 *  L2  A socket that we have shut down for sending ourselves is writable here; there it is EV_EOF.
 *  L3  EVFILT_SIGNAL counts only signals that are blocked, and those of one number that come while
 *      one is pending are one.  As there, the signal stays pending all the same.
 *  L4  EVFILT_PROC knows NOTE_EXIT alone, and the status only of children.
 *  L5  How many connections wait is known of TCP listeners alone; else it is 1, for "some".
 *  L6  A directory that somebody has open goes without a word, so its parent is watched for it.
 *  L7  A directory is told of changes to its entries' content too: those are dropped.
 * Reading: kqueue(2); sys_socket.c, kern_event.c of FreeBSD.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/sockios.h>

#include "double/kqueue/knote.h"

static int option_of(int fd, int name)
{
    int value = 0;
    socklen_t size = sizeof(value);
    (void)getsockopt(fd, SOL_SOCKET, name, &value, &size);
    return value;
}

static int fd_of(const struct knote *knote)
{
    return (int)knote->event.ident;
}

static int attach_descriptor(struct knote *knote)
{
    struct stat status;
    if (knote->event.ident > INT32_MAX || fstat(fd_of(knote), &status) != 0) {
        return EBADF;
    }
    knote->is_socket = S_ISSOCK(status.st_mode);
    return 0;
}

static int attach_except(struct knote *knote)
{
    int error = attach_descriptor(knote);
    if (error != 0) {
        return error;
    }
    return knote->is_socket && (knote->wanted & NOTE_OOB) ? 0 : EINVAL;
}

static short poll_of(int fd)
{
    struct pollfd entry = {.fd = fd, .events = POLLIN | POLLOUT | POLLPRI | POLLRDHUP};
    (void)poll(&entry, 1, 0);
    return entry.revents;
}

/* A stream socket that was never connected: Linux says "hung up", kqueue nothing. */
static bool is_unconnected(const struct knote *knote, short state)
{
    return knote->is_socket && (state & POLLHUP) && !(state & (POLLRDHUP | POLLERR));
}

/* Sets EV_EOF and fflags (L1); whether it is the end. */
static bool note_end(struct knote *knote, bool at_end, short state)
{
    knote->event.flags &= (unsigned short)~EV_EOF;
    knote->event.fflags = 0;
    if (at_end) {
        knote->event.flags |= EV_EOF;
        bool failed = knote->is_socket && (state & POLLERR);
        knote->event.fflags = failed ? ECONNRESET : 0;
    }
    return at_end;
}

static intptr_t pending_connections(int fd)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof(info);
    bool is_tcp = getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
    return is_tcp && info.tcpi_unacked > 0 ? (intptr_t)info.tcpi_unacked : 1;
}

static bool ask_plain(struct knote *knote)
{
    struct stat status = {0};
    (void)fstat(fd_of(knote), &status);
    knote->event.data = (intptr_t)(status.st_size - lseek(fd_of(knote), 0, SEEK_CUR));
    return knote->event.data != 0;
}

static bool ask_read(struct knote *knote)
{
    if (knote->is_plain) {
        return ask_plain(knote);
    }
    int fd = fd_of(knote);
    short state = poll_of(fd);
    if (knote->is_socket && option_of(fd, SO_ACCEPTCONN) != 0) {
        knote->event.data = (state & POLLIN) ? pending_connections(fd) : 0;
        return (state & POLLIN) != 0;
    }
    if (is_unconnected(knote, state)) {
        return false;
    }
    int bytes = 0;
    if (ioctl(fd, FIONREAD, &bytes) != 0) {
        bytes = (state & POLLIN) ? 1 : 0; /* no bytes are read from it: a queue in a queue */
    }
    knote->event.data = bytes;
    bool is_stream = !knote->is_socket || option_of(fd, SO_TYPE) == SOCK_STREAM;
    bool at_end = is_stream && (state & (POLLRDHUP | POLLHUP | POLLERR));
    if (note_end(knote, at_end, state)) {
        return true;
    }
    if (!is_stream) {
        return (state & (POLLIN | POLLERR)) != 0; /* a message of no bytes is one all the same */
    }
    intptr_t least = (knote->wanted & NOTE_LOWAT) ? knote->given : 1;
    return bytes >= least;
}

static bool ask_write(struct knote *knote)
{
    if (knote->is_plain) {
        knote->event.data = 0;
        return true;
    }
    int fd = fd_of(knote);
    short state = poll_of(fd);
    if (is_unconnected(knote, state)) {
        return false;
    }
    bool is_stream = !knote->is_socket || option_of(fd, SO_TYPE) == SOCK_STREAM;
    bool at_end = note_end(knote, is_stream && (state & (POLLHUP | POLLERR)), state);
    int queued = 0;
    (void)ioctl(fd, SIOCOUTQ, &queued);
    knote->event.data = knote->is_socket ? option_of(fd, SO_SNDBUF) - queued : 0;
    return at_end || (state & POLLOUT);
}

static bool ask_except(struct knote *knote)
{
    bool urgent = (poll_of(fd_of(knote)) & POLLPRI) != 0;
    knote->event.fflags = urgent ? NOTE_OOB : 0;
    return urgent;
}

static int attach_user(struct knote *knote)
{
    knote->wanted &= NOTE_FFLAGSMASK;
    return 0;
}

static bool ask_user(struct knote *knote)
{
    knote->event.fflags = knote->wanted;
    knote->event.data = knote->given;
    return knote->is_triggered;
}

static int attach_timer(struct knote *knote)
{
    int64_t unit_ns = 1000000;
    if (knote->wanted & NOTE_SECONDS) {
        unit_ns = 1000000000;
    } else if (knote->wanted & NOTE_USECONDS) {
        unit_ns = 1000;
    } else if (knote->wanted & NOTE_NSECONDS) {
        unit_ns = 1;
    }
    int64_t length_ns = (int64_t)knote->given * unit_ns;
    if (knote->given < 0) {
        return EINVAL;
    }
    length_ns = length_ns == 0 ? 1 : length_ns;
    struct itimerspec times = {
        .it_value = {.tv_sec = length_ns / 1000000000, .tv_nsec = length_ns % 1000000000}};
    if (!(knote->event.flags & EV_ONESHOT)) {
        times.it_interval = times.it_value;
    }
    knote->own_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    bool works = knote->own_fd >= 0 && timerfd_settime(knote->own_fd, 0, &times, NULL) == 0;
    return works ? 0 : errno;
}

static void note_timer(struct knote *knote)
{
    uint64_t count;
    if (read(knote->own_fd, &count, sizeof(count)) == (ssize_t)sizeof(count)) {
        knote->event.data += (intptr_t)count;
    }
}

static bool ask_count(struct knote *knote)
{
    return knote->event.data != 0;
}

static int attach_signal(struct knote *knote)
{
    sigset_t set;
    (void)sigemptyset(&set);
    if (sigaddset(&set, (int)knote->event.ident) != 0) {
        return EINVAL;
    }
    knote->own_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return knote->own_fd >= 0 ? 0 : errno;
}

static void note_signal(struct knote *knote)
{
    struct pollfd entry = {.fd = knote->own_fd, .events = POLLIN};
    knote->event.data += poll(&entry, 1, 0) > 0 ? 1 : 0;
}

static int attach_process(struct knote *knote)
{
    knote->own_fd = (int)syscall(SYS_pidfd_open, (pid_t)knote->event.ident, 0);
    return knote->own_fd >= 0 ? 0 : errno;
}

/* The status is asked without taking it: waiting for the child is the program's business. */
static bool ask_process(struct knote *knote)
{
    struct pollfd entry = {.fd = knote->own_fd, .events = POLLIN};
    if (poll(&entry, 1, 0) <= 0) {
        return false;
    }
    siginfo_t info = {0};
    (void)waitid(P_PID, (id_t)knote->event.ident, &info, WEXITED | WNOHANG | WNOWAIT);
    int status = info.si_status;
    knote->event.data = info.si_code == CLD_EXITED ? (status & 0xff) << 8 : status & 0x7f;
    knote->event.fflags = knote->wanted & NOTE_EXIT;
    knote->event.flags |= EV_EOF | EV_ONESHOT;
    return true;
}

static void look_at_file(struct knote *knote, struct stat *ret_status)
{
    *ret_status = (struct stat){0};
    (void)fstat(fd_of(knote), ret_status);
    knote->size = ret_status->st_size;
    knote->links = ret_status->st_nlink;
}

static int attach_file(struct knote *knote)
{
    struct stat status;
    int error = attach_descriptor(knote);
    if (error != 0) {
        return error;
    }
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd_of(knote));
    knote->own_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (knote->own_fd < 0) {
        return errno;
    }
    look_at_file(knote, &status);
    uint32_t wanted =
        IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO;
    if (inotify_add_watch(knote->own_fd, path, wanted) < 0) {
        return errno;
    }
    if (!S_ISDIR(status.st_mode)) {
        return 0;
    }
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d/..", fd_of(knote));
    knote->parent_watch = inotify_add_watch(knote->own_fd, path, IN_DELETE);
    return knote->parent_watch >= 0 ? 0 : errno;
}

/* What one kind of inotify event means; `before` and `now` are of the file itself. */
static unsigned int file_notes(uint32_t mask, off_t size_before, nlink_t links_before,
                               const struct stat *now)
{
    unsigned int notes = 0;
    if (mask & (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO)) {
        notes |= NOTE_WRITE;
    }
    if (mask & IN_MODIFY) {
        notes |= NOTE_WRITE | (now->st_size > size_before ? NOTE_EXTEND : 0);
    }
    if (mask & IN_ATTRIB) {
        notes |= now->st_nlink == 0 ? NOTE_DELETE : NOTE_ATTRIB;
    }
    if (now->st_nlink != links_before) {
        notes |= NOTE_LINK;
    }
    if (mask & IN_MOVE_SELF) {
        notes |= NOTE_RENAME;
    }
    return notes;
}

/* Of one event; L6 and L7. */
static unsigned int notes_of(const struct knote *knote, const struct inotify_event *event,
                             off_t size_before, nlink_t links_before, const struct stat *now)
{
    if (knote->parent_watch != 0 && event->wd == knote->parent_watch) {
        return now->st_nlink == 0 ? NOTE_DELETE : 0;
    }
    bool is_of_entry = event->len > 0 && (event->mask & (IN_MODIFY | IN_ATTRIB));
    return is_of_entry ? 0 : file_notes(event->mask, size_before, links_before, now);
}

static void note_file(struct knote *knote)
{
    _Alignas(struct inotify_event) char bytes[4096];
    off_t size_before = knote->size;
    nlink_t links_before = knote->links;
    struct stat now;
    look_at_file(knote, &now);
    ssize_t size;
    while ((size = read(knote->own_fd, bytes, sizeof(bytes))) > 0) {
        for (char *at = bytes; at < bytes + size;) {
            const struct inotify_event *event = (const struct inotify_event *)(void *)at;
            unsigned int notes = notes_of(knote, event, size_before, links_before, &now);
            knote->event.fflags |= notes & knote->wanted;
            at += sizeof(*event) + event->len;
        }
    }
}

static bool ask_file(struct knote *knote)
{
    return knote->event.fflags != 0;
}

const struct filter *filter_of(short name)
{
    static const struct filter filters[] = {
        {EVFILT_READ, DIRECTION_READ, 0, attach_descriptor, NULL, ask_read},
        {EVFILT_WRITE, DIRECTION_WRITE, 0, attach_descriptor, NULL, ask_write},
        {EVFILT_EXCEPT, DIRECTION_EXCEPT, 0, attach_except, NULL, ask_except},
        {EVFILT_USER, DIRECTION_NONE, 0, attach_user, NULL, ask_user},
        {EVFILT_TIMER, DIRECTION_NONE, EV_CLEAR, attach_timer, note_timer, ask_count},
        {EVFILT_SIGNAL, DIRECTION_NONE, EV_CLEAR, attach_signal, note_signal, ask_count},
        {EVFILT_PROC, DIRECTION_NONE, EV_CLEAR, attach_process, NULL, ask_process},
        {EVFILT_VNODE, DIRECTION_NONE, 0, attach_file, note_file, ask_file},
    };
    for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
        if (filters[i].name == name) {
            return &filters[i];
        }
    }
    return NULL;
}
