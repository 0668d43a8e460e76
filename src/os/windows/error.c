/* SPDX-License-Identifier: MIT */
/*
 * From the codes of Windows to GORI_E…: those of Winsock (10000 and up) and of Win32, which never
 * overlap.  Several share a value of ours when a caller would do the same about them.  The same
 * event has two names, by the call that tells it: ERROR_NETNAME_DELETED is WSAECONNRESET.
 * Thread: any.  Reading: "Windows Sockets Error Codes", "System Error Codes" (Microsoft Learn).
 */
#include <gori/error.h>

#include "os/os.h"
#include "os/windows/system.h"

/* Passing, ended or used up. */
static int state_error(int system_error)
{
    switch (system_error) {
    case WSAEWOULDBLOCK:
    case WSAEINTR:
    case WSAEINPROGRESS:
    case WSAEALREADY:
    case WSA_IO_PENDING: /* ERROR_IO_PENDING */
    case WSA_IO_INCOMPLETE:
        return GORI_EAGAIN;
    case ERROR_BUSY:
    case ERROR_SHARING_VIOLATION:
    case ERROR_LOCK_VIOLATION:
        return GORI_EBUSY;
    case WSA_OPERATION_ABORTED: /* ERROR_OPERATION_ABORTED */
    case WSAECANCELLED:
    case WSA_E_CANCELLED:
        return GORI_ECANCELED;
    case WSAETIMEDOUT:
    case WAIT_TIMEOUT:
    case ERROR_SEM_TIMEOUT:
        return GORI_ETIMEDOUT;
    case WSAENOTCONN:
    case ERROR_INVALID_NETNAME:
        return GORI_ECLOSED;
    case WSA_NOT_ENOUGH_MEMORY: /* ERROR_NOT_ENOUGH_MEMORY */
    case ERROR_OUTOFMEMORY:
    case ERROR_COMMITMENT_LIMIT:
        return GORI_ENOMEM;
    case WSAEMFILE:
    case ERROR_TOO_MANY_OPEN_FILES:
        return GORI_EMFILE;
    case WSAENOBUFS:
    case ERROR_NO_SYSTEM_RESOURCES:
    case ERROR_WORKING_SET_QUOTA:
    case ERROR_NOT_ENOUGH_QUOTA:
    case ERROR_NONPAGED_SYSTEM_RESOURCES:
        return GORI_ENOBUFS;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL:
        return GORI_ENOSPC;
    default:
        return 0;
    }
}

/* The network and the peer. */
static int network_error(int system_error)
{
    switch (system_error) {
    case WSAECONNREFUSED:
    case ERROR_CONNECTION_REFUSED:
        return GORI_ECONNREFUSED;
    case WSAECONNRESET:
    case WSAENETRESET:
    case ERROR_NETNAME_DELETED:
        return GORI_ECONNRESET;
    case WSAECONNABORTED:
    case ERROR_CONNECTION_ABORTED:
        return GORI_ECONNABORTED;
    case WSAESHUTDOWN:
    case ERROR_BROKEN_PIPE:
    case ERROR_NO_DATA:
        return GORI_EPIPE;
    case WSAEADDRINUSE:
        return GORI_EADDRINUSE;
    case WSAEADDRNOTAVAIL:
        return GORI_EADDRNOTAVAIL;
    case WSAEHOSTUNREACH:
    case WSAEHOSTDOWN:
    case ERROR_HOST_UNREACHABLE:
    case ERROR_PORT_UNREACHABLE:
        return GORI_EHOSTUNREACH;
    case WSAENETUNREACH:
    case WSAENETDOWN:
    case ERROR_NETWORK_UNREACHABLE:
        return GORI_ENETUNREACH;
    case WSAEMSGSIZE:
        return GORI_EMSGSIZE;
    default:
        return 0;
    }
}

/* Files and names. */
static int file_error(int system_error)
{
    switch (system_error) {
    case WSAEACCES:
    case ERROR_ACCESS_DENIED:
    case ERROR_WRITE_PROTECT:
    case ERROR_DELETE_PENDING:
        return GORI_EACCESS;
    case ERROR_PRIVILEGE_NOT_HELD:
        return GORI_EPERM;
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_NAME:
    case ERROR_BAD_PATHNAME:
    case ERROR_BAD_NETPATH:
    case ERROR_INVALID_DRIVE:
    case ERROR_NO_UNICODE_TRANSLATION:
        return GORI_ENOTFOUND;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS:
        return GORI_EEXIST;
    case ERROR_DIRECTORY:
        return GORI_ENOTDIR;
    case ERROR_CRC:
    case ERROR_READ_FAULT:
    case ERROR_WRITE_FAULT:
    case ERROR_IO_DEVICE:
    case ERROR_FILE_CORRUPT:
        return GORI_EIO;
    case WSAELOOP:
    case ERROR_CANT_RESOLVE_FILENAME:
        return GORI_ELOOP;
    case WSAENAMETOOLONG:
    case ERROR_FILENAME_EXCED_RANGE:
        return GORI_ENAMETOOLONG;
    case ERROR_HANDLE_EOF:
        return GORI_ETRUNCATED;
    case ERROR_NOT_SAME_DEVICE:
        return GORI_EXDEV;
    default:
        return 0;
    }
}

/* What the caller should not have asked, at least not here. */
static int usage_error(int system_error)
{
    switch (system_error) {
    case WSA_INVALID_HANDLE:    /* ERROR_INVALID_HANDLE */
    case WSA_INVALID_PARAMETER: /* ERROR_INVALID_PARAMETER */
    case WSAEINVAL:
    case WSAEBADF:
    case WSAENOTSOCK:
    case WSAEFAULT:
    case WSAEDESTADDRREQ:
    case WSAEISCONN:
        return GORI_EINVAL;
    case WSAEOPNOTSUPP:
    case WSAEAFNOSUPPORT:
    case WSAEPFNOSUPPORT:
    case WSAEPROTONOSUPPORT:
    case WSAEPROTOTYPE:
    case WSAENOPROTOOPT:
    case WSAESOCKTNOSUPPORT:
    case ERROR_NOT_SUPPORTED:
    case ERROR_INVALID_FUNCTION:
        return GORI_ENOTSUP;
    case ERROR_CALL_NOT_IMPLEMENTED:
    case ERROR_PROC_NOT_FOUND:
        return GORI_ENOSYS;
    default:
        return 0;
    }
}

int gi_os_error(int system_error)
{
    if (system_error == 0) {
        return 0;
    }
    static int (*const tables[])(int) = {state_error, network_error, file_error, usage_error};
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        int error = tables[i](system_error);
        if (error != 0) {
            return error;
        }
    }
    return GORI_EUNKNOWN;
}
