/* SPDX-License-Identifier: MIT */
/*
 * Probing; see probe.h.  The functions are asked of a TCP socket over IPv4; the provider of the
 * system has the same for all families.
 * Thread: any.  Reading: WSAIoctl, SetFileCompletionNotificationModes (Microsoft Learn).
 */
#include "engine/iocp/probe.h"

#include <gori/error.h>
#include <stdio.h>
#include <string.h>

#include "os/os.h"

static bool find_call(SOCKET native, const GUID *id, void *ret_function, size_t function_size)
{
    DWORD size;
    return WSAIoctl(native, SIO_GET_EXTENSION_FUNCTION_POINTER, (void *)(uintptr_t)id, sizeof(*id),
                    ret_function, (DWORD)function_size, &size, NULL, NULL) == 0;
}

/* Whether the socket is a file handle of the kernel and not a layered provider's invention. */
static bool is_file_handle(SOCKET native)
{
    WSAPROTOCOL_INFOW info;
    int size = sizeof(info);
    return getsockopt(native, SOL_SOCKET, SO_PROTOCOL_INFOW, (char *)&info, &size) == 0 &&
           (info.dwServiceFlags1 & XP1_IFS_HANDLES) != 0;
}

int gi_iocp_find_calls(struct gi_iocp_calls *ret_calls)
{
    static const GUID accept_id = WSAID_ACCEPTEX;
    static const GUID connect_id = WSAID_CONNECTEX;
    static const GUID transmit_id = WSAID_TRANSMITFILE;
    int fd;
    int error = gi_os_socket(GORI_ADDR_IPV4, GI_OS_BLOCKING, &fd);
    if (error < 0) {
        return error;
    }
    SOCKET native = gi_os_native_socket(fd);
    struct gi_iocp_calls calls = {.may_skip = is_file_handle(native)};
    bool found = find_call(native, &accept_id, &calls.accept, sizeof(calls.accept)) &&
                 find_call(native, &connect_id, &calls.connect, sizeof(calls.connect)) &&
                 find_call(native, &transmit_id, &calls.transmit_file, sizeof(calls.transmit_file));
    gi_os_close(fd);
    if (!found) {
        return GORI_ENOSYS;
    }
    *ret_calls = calls;
    return 0;
}

static void add_feature(struct gori_engine_report *report, const char *name,
                        enum gori_feature_state state, const char *text)
{
    struct gori_feature *feature = &report->features[report->feature_count++];
    feature->name = name;
    feature->state = state;
    (void)snprintf(feature->text, sizeof(feature->text), "%s", text);
}

static enum gori_feature_state used_if(bool condition)
{
    return condition ? GORI_FEATURE_USED : GORI_FEATURE_KERNEL;
}

static void report_features(struct gori_engine_report *report, const struct gi_iocp_calls *calls)
{
    int fd;
    bool has_unix = gi_os_socket(GORI_ADDR_UNIX, GI_OS_BLOCKING, &fd) == 0;
    if (has_unix) {
        gi_os_close(fd);
    }
    add_feature(report, "zero_byte_receive", GORI_FEATURE_USED,
                "an idle connection pins no memory");
    add_feature(report, "skip_on_success", used_if(calls->may_skip),
                calls->may_skip ? "what succeeds at once needs no packet"
                                : "a layered Winsock provider makes it unsound");
    add_feature(report, "transmit_file", GORI_FEATURE_USED,
                "files are sent without passing through user memory");
    add_feature(report, "files", GORI_FEATURE_USED,
                "files are read and written overlapped; the rest is done by threads of a pool");
    add_feature(report, "unix_sockets", used_if(has_unix),
                has_unix ? "UNIX paths as addresses" : "Windows 10 1803 or later has them");
    add_feature(report, "reuse_port", GORI_FEATURE_KERNEL, "one worker accepts for all instead");
}

/* Wine says its version by a function of ntdll that Windows does not have. */
static const char *wine_version(void)
{
    typedef const char *version_fn(void);
    FARPROC found = GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "wine_get_version");
    version_fn *version = (version_fn *)(void (*)(void))found;
    return version != NULL ? version() : NULL;
}

void gi_iocp_report(struct gori_engine_report *ret_report)
{
    struct gi_iocp_calls calls;
    int error = gi_iocp_find_calls(&calls);
    ret_report->usable = error == 0;
    if (error < 0) {
        ret_report->state = error == GORI_ENOSYS ? GORI_FEATURE_KERNEL : GORI_FEATURE_ERROR;
        (void)snprintf(ret_report->text, sizeof(ret_report->text),
                       "Winsock lacks AcceptEx, ConnectEx or TransmitFile: %s",
                       gori_error_text(error));
        return;
    }
    ret_report->state = GORI_FEATURE_USED;
    const char *wine = wine_version();
    (void)snprintf(ret_report->text, sizeof(ret_report->text), "%s%s", wine != NULL ? "Wine " : "",
                   wine != NULL ? wine : "");
    report_features(ret_report, &calls);
}
