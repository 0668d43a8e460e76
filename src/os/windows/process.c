/* SPDX-License-Identifier: MIT */
/*
 * Children of Windows.  Contract: process.h.
 *
 *  1. A child is given three handles and inherits no other: they stand in a list that goes with
 *     the call.  Each is a copy that can be inherited, made for this child and closed after it.
 *  2. A pipe is two TCP sockets within the machine, connected to each other: a pipe of Windows has
 *     no place in a completion port's sockets.  The child's end is not overlapped, so that what
 *     reads and writes files reads and writes it.  Whoever else connects meanwhile is sent away.
 *  3. The process itself is the event source: it is signalled when it has ended.  The loop closes
 *     one handle of it; another one is ours, for a kill after a detach.
 *  4. A command line is one text here.  It is written so that the C library of the child takes it
 *     apart into the same arguments.
 * Thread: any.  Reading: CreateProcess, UpdateProcThreadAttribute, CommandLineToArgvW.
 */
#include "os/windows/system.h"

#include "os/process.h"

#include <gori/error.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "os/os.h"

#define TEXT_CHARS 32767u /* of a command line, and of an environment here */
#define PATH_CHARS 4096u

#define SIGNAL_KILL 9

/* How a child that we have ended says so: no program returns that by chance. */
#define EXIT_BY_SIGNAL 0xe0474f00u

/* What a spawn needs: too large for a stack. */
struct preparation {
    const struct gori_process_config *config;
    HANDLE streams[GORI_STDIO_COUNT]; /* the child's; or NULL */
    SOCKET pipes[GORI_STDIO_COUNT];   /* our ends */
    WCHAR program[PATH_CHARS];
    WCHAR directory[PATH_CHARS];
    WCHAR command[TEXT_CHARS];
    WCHAR environment[TEXT_CHARS + 1];
    _Alignas(16) uint8_t attributes[128];
};

static int last_error(void)
{
    DWORD code = GetLastError();
    if (code == ERROR_BAD_EXE_FORMAT || code == ERROR_EXE_MACHINE_TYPE_MISMATCH) {
        return GORI_ENOTSUP;
    }
    return gi_os_error((int)code);
}

/* Streams ---------------------------------------------------------------------------------- */

static int copy_for_child(HANDLE handle, HANDLE *ret_copy)
{
    HANDLE self = GetCurrentProcess();
    if (!DuplicateHandle(self, handle, self, ret_copy, 0, TRUE, DUPLICATE_SAME_ACCESS)) {
        *ret_copy = NULL;
        return GORI_EINVAL;
    }
    return 0;
}

static int open_null(HANDLE *ret_stream)
{
    SECURITY_ATTRIBUTES for_child = {.nLength = sizeof(for_child), .bInheritHandle = TRUE};
    HANDLE file =
        CreateFileW(L"NUL", GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE,
                    &for_child, OPEN_EXISTING, 0, NULL);
    if (file == INVALID_HANDLE_VALUE) {
        return last_error();
    }
    *ret_stream = file;
    return 0;
}

static int inherit(int index, HANDLE *ret_stream)
{
    static const DWORD names[] = {STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE};
    HANDLE ours = GetStdHandle(names[index]);
    if (ours == NULL || ours == INVALID_HANDLE_VALUE) {
        return open_null(ret_stream); /* a program without a console has none */
    }
    return copy_for_child(ours, ret_stream);
}

/* A socket that listens within the machine, for one connection. */
static int listen_within(SOCKADDR_IN *ret_addr, int *ret_fd)
{
    struct gori_addr addr;
    int error = gori_addr_parse("127.0.0.1:0", &addr);
    if (error == 0) {
        error = gi_os_listen(&addr, 1, GI_OS_BLOCKING, ret_fd);
    }
    if (error < 0) {
        return error;
    }
    int size = sizeof(*ret_addr);
    if (getsockname(gi_os_native_socket(*ret_fd), (SOCKADDR *)ret_addr, &size) != 0) {
        error = gi_os_error(WSAGetLastError());
        gi_os_close(*ret_fd);
    }
    return error;
}

/* Accepts what `theirs` has connected, and nobody else. */
static int accept_within(int listener, SOCKET theirs, SOCKET *ret_ours)
{
    SOCKADDR_IN wanted;
    int size = sizeof(wanted);
    if (getsockname(theirs, (SOCKADDR *)&wanted, &size) != 0) {
        return gi_os_error(WSAGetLastError());
    }
    for (;;) {
        SOCKADDR_IN peer;
        size = sizeof(peer);
        SOCKET came = accept(gi_os_native_socket(listener), (SOCKADDR *)&peer, &size);
        if (came == INVALID_SOCKET) {
            return gi_os_error(WSAGetLastError());
        }
        (void)SetHandleInformation((HANDLE)came, HANDLE_FLAG_INHERIT, 0);
        if (peer.sin_port == wanted.sin_port && peer.sin_addr.s_addr == wanted.sin_addr.s_addr) {
            *ret_ours = came;
            return 0;
        }
        (void)closesocket(came);
    }
}

static int open_pipe(HANDLE *ret_stream, SOCKET *ret_ours)
{
    SOCKADDR_IN addr;
    int listener;
    int error = listen_within(&addr, &listener);
    if (error < 0) {
        return error;
    }
    SOCKET theirs =
        WSASocketW(AF_INET, SOCK_STREAM, IPPROTO_TCP, NULL, 0, WSA_FLAG_NO_HANDLE_INHERIT);
    if (theirs == INVALID_SOCKET) {
        error = gi_os_error(WSAGetLastError());
        goto err_listener;
    }
    if (connect(theirs, (const SOCKADDR *)&addr, sizeof(addr)) != 0) {
        error = gi_os_error(WSAGetLastError());
    } else {
        error = accept_within(listener, theirs, ret_ours);
    }
    if (error == 0) {
        BOOL on = TRUE;
        (void)setsockopt(theirs, IPPROTO_TCP, TCP_NODELAY, (const char *)&on, sizeof(on));
        error = copy_for_child((HANDLE)theirs, ret_stream);
    }
    (void)closesocket(theirs);
err_listener:
    gi_os_close(listener);
    return error;
}

static int open_stream(struct preparation *preparation, int index)
{
    const struct gori_stdio_config *stdio = &preparation->config->stdio[index];
    HANDLE *stream = &preparation->streams[index];
    switch (stdio->kind) {
    case GORI_STDIO_NULL:
        return open_null(stream);
    case GORI_STDIO_INHERIT:
        return inherit(index, stream);
    case GORI_STDIO_NATIVE:
        return copy_for_child((HANDLE)stdio->native, stream);
    case GORI_STDIO_PIPE:
        return open_pipe(stream, &preparation->pipes[index]);
    default:
        return GORI_EINVAL;
    }
}

/* Texts ------------------------------------------------------------------------------------ */

/* Writes a text in the system's characters.  Result: characters with the end, or an error. */
static int widen(const char *text, WCHAR *ret_wide, size_t room)
{
    int count = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, ret_wide, (int)room);
    if (count > 0) {
        return count;
    }
    return GetLastError() == ERROR_INSUFFICIENT_BUFFER ? GORI_EMSGSIZE : GORI_EINVAL;
}

/* A text under construction. */
struct line {
    WCHAR *text;
    size_t size;
    bool is_full;
};

static void put(struct line *line, WCHAR character, size_t times)
{
    for (size_t i = 0; i < times; i++) {
        if (line->size + 1 >= TEXT_CHARS) {
            line->is_full = true;
            return;
        }
        line->text[line->size++] = character;
    }
}

/* 4: in quotes; backslashes count double before a quote, and nowhere else. */
static void put_argument(struct line *line, const WCHAR *argument)
{
    size_t backslashes = 0;
    put(line, L'"', 1);
    for (const WCHAR *at = argument; *at != 0; at++) {
        if (*at == L'\\') {
            backslashes++;
            continue;
        }
        put(line, L'\\', *at == L'"' ? 2 * backslashes + 1 : backslashes);
        put(line, *at, 1);
        backslashes = 0;
    }
    put(line, L'\\', 2 * backslashes);
    put(line, L'"', 1);
}

static int write_command(struct preparation *preparation)
{
    const struct gori_process_config *config = preparation->config;
    const char *alone[] = {config->program, NULL};
    const char *const *arguments = config->arguments != NULL ? config->arguments : alone;
    struct line line = {.text = preparation->command};
    for (size_t i = 0; arguments[i] != NULL; i++) {
        /* The environment is written later: its room serves. */
        int count = widen(arguments[i], preparation->environment, TEXT_CHARS);
        if (count < 0) {
            return count;
        }
        put(&line, L' ', i == 0 ? 0 : 1);
        put_argument(&line, preparation->environment);
    }
    line.text[line.size] = 0;
    return line.is_full ? GORI_EMSGSIZE : 0;
}

static int write_environment(struct preparation *preparation)
{
    size_t size = 0;
    const char *const *environment = preparation->config->environment;
    for (size_t i = 0; environment != NULL && environment[i] != NULL; i++) {
        int count = widen(environment[i], preparation->environment + size, TEXT_CHARS - size);
        if (count < 0) {
            return count;
        }
        size += (size_t)count;
    }
    /* An empty one ends twice as well. */
    preparation->environment[size] = 0;
    preparation->environment[size == 0 ? 1 : size] = 0;
    return 0;
}

/* Without a separator it is looked for in PATH, with ".exe" when it has no extension. */
static int find_program(struct preparation *preparation)
{
    const char *program = preparation->config->program;
    int count = widen(program, preparation->command, PATH_CHARS);
    if (count < 0) {
        return count;
    }
    if (strpbrk(program, "/\\:") != NULL) {
        memcpy(preparation->program, preparation->command, (size_t)count * sizeof(WCHAR));
        return 0;
    }
    DWORD size =
        SearchPathW(NULL, preparation->command, L".exe", PATH_CHARS, preparation->program, NULL);
    return size == 0 || size >= PATH_CHARS ? GORI_ENOTFOUND : 0;
}

static int write_texts(struct preparation *preparation)
{
    int error = find_program(preparation);
    if (error == 0) {
        error = write_command(preparation);
    }
    if (error == 0) {
        error = write_environment(preparation);
    }
    if (error == 0 && preparation->config->directory != NULL) {
        int count = widen(preparation->config->directory, preparation->directory, PATH_CHARS);
        error = count < 0 ? count : 0;
    }
    return error;
}

/* Life ------------------------------------------------------------------------------------- */

static int create(struct preparation *preparation, PROCESS_INFORMATION *ret_info)
{
    STARTUPINFOEXW startup = {.StartupInfo = {.cb = sizeof(startup),
                                              .dwFlags = STARTF_USESTDHANDLES,
                                              .hStdInput = preparation->streams[0],
                                              .hStdOutput = preparation->streams[1],
                                              .hStdError = preparation->streams[2]}};
    SIZE_T size = sizeof(preparation->attributes);
    startup.lpAttributeList = (LPPROC_THREAD_ATTRIBUTE_LIST)(void *)preparation->attributes;
    if (!InitializeProcThreadAttributeList(startup.lpAttributeList, 1, 0, &size)) {
        return last_error();
    }
    int error = 0;
    const struct gori_process_config *config = preparation->config;
    if (!UpdateProcThreadAttribute(startup.lpAttributeList, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST,
                                   preparation->streams, sizeof(preparation->streams), NULL,
                                   NULL) ||
        !CreateProcessW(preparation->program, preparation->command, NULL, NULL, TRUE,
                        CREATE_UNICODE_ENVIRONMENT | EXTENDED_STARTUPINFO_PRESENT,
                        config->environment != NULL ? preparation->environment : NULL,
                        config->directory != NULL ? preparation->directory : NULL,
                        &startup.StartupInfo, ret_info)) {
        error = last_error();
    }
    DeleteProcThreadAttributeList(startup.lpAttributeList);
    return error;
}

static int spawn_prepared(struct preparation *preparation, PROCESS_INFORMATION *ret_info)
{
    int error = write_texts(preparation);
    for (int i = 0; i < GORI_STDIO_COUNT && error == 0; i++) {
        error = open_stream(preparation, i);
    }
    return error == 0 ? create(preparation, ret_info) : error;
}

static void close_streams(struct preparation *preparation)
{
    for (int i = 0; i < GORI_STDIO_COUNT; i++) {
        if (preparation->streams[i] != NULL) {
            (void)CloseHandle(preparation->streams[i]);
        }
    }
}

/* 3. */
static int watch_child(struct gi_os_process *process, const PROCESS_INFORMATION *info)
{
    HANDLE self = GetCurrentProcess();
    HANDLE source;
    (void)CloseHandle(info->hThread);
    process->id = info->dwProcessId;
    process->own = (intptr_t)info->hProcess;
    process->is_over = false;
    if (!DuplicateHandle(self, info->hProcess, self, &source, 0, FALSE, DUPLICATE_SAME_ACCESS)) {
        int error = last_error();
        gi_os_process_end(process);
        (void)CloseHandle(info->hProcess);
        return error;
    }
    process->source = (intptr_t)source;
    return 0;
}

int gi_os_process_spawn(const struct gori_process_config *config, struct gi_os_process *process,
                        gori_native ret_pipes[GORI_STDIO_COUNT])
{
    struct preparation *preparation = gi_alloc_zero(NULL, sizeof(*preparation));
    if (preparation == NULL) {
        return GORI_ENOMEM;
    }
    preparation->config = config;
    for (int i = 0; i < GORI_STDIO_COUNT; i++) {
        preparation->pipes[i] = INVALID_SOCKET;
    }
    PROCESS_INFORMATION info;
    int error = spawn_prepared(preparation, &info);
    close_streams(preparation);
    if (error == 0) {
        error = watch_child(process, &info);
    }
    for (int i = 0; i < GORI_STDIO_COUNT; i++) {
        if (error == 0) {
            ret_pipes[i] = (gori_native)preparation->pipes[i];
        } else if (preparation->pipes[i] != INVALID_SOCKET) {
            (void)closesocket(preparation->pipes[i]);
        }
    }
    gi_free(NULL, preparation, sizeof(*preparation));
    return error;
}

static bool has_ended(const struct gi_os_process *process)
{
    return WaitForSingleObject((HANDLE)process->own, 0) == WAIT_OBJECT_0;
}

int gi_os_process_take(struct gi_os_process *process, struct gori_exit *ret_exit)
{
    DWORD code = 0;
    if (!has_ended(process)) {
        return GORI_EAGAIN;
    }
    process->is_over = true;
    (void)GetExitCodeProcess((HANDLE)process->own, &code);
    *ret_exit = (struct gori_exit){0};
    if ((code & ~0xffu) == EXIT_BY_SIGNAL) {
        ret_exit->signal = (int)(code & 0xffu);
    } else {
        ret_exit->status = (int)code;
    }
    return 0;
}

int gi_os_process_kill(struct gi_os_process *process, int number)
{
    if (process->is_over) {
        return GORI_ECLOSED;
    }
    switch (number) {
    case 0:
        return 0;
    case SIGTERM:
    case SIGINT:
    case SIGNAL_KILL:
        break;
    default:
        return GORI_EINVAL;
    }
    bool ended = TerminateProcess((HANDLE)process->own, EXIT_BY_SIGNAL | (UINT)number);
    return ended || has_ended(process) ? 0 : last_error();
}

void gi_os_process_end(struct gi_os_process *process)
{
    (void)TerminateProcess((HANDLE)process->own, EXIT_BY_SIGNAL | SIGNAL_KILL);
    (void)WaitForSingleObject((HANDLE)process->own, INFINITE);
    process->is_over = true;
}

void gi_os_process_close(struct gi_os_process *process)
{
    (void)CloseHandle((HANDLE)process->own);
}
