/* SPDX-License-Identifier: MIT */
/*
 * From errno to GORI_E…: the one place where the two meet.  Several system errors share a value of
 * ours when a caller would do the same about them.
 * Thread: any.  Reading: errno(3).
 */
#include <errno.h>
#include <gori/error.h>

#include "os/os.h"

/* Passing, ended or used up. */
static int state_error(int system_error)
{
    switch (system_error) {
    case EAGAIN:
#if EWOULDBLOCK != EAGAIN
    case EWOULDBLOCK:
#endif
    case EINTR:
    case EINPROGRESS:
    case EALREADY:
        return GORI_EAGAIN;
    case EBUSY:
    case ETXTBSY:
        return GORI_EBUSY;
    case ECANCELED:
        return GORI_ECANCELED;
    case ETIMEDOUT:
    case ETIME:
        return GORI_ETIMEDOUT;
    case ENOTCONN:
    case ESHUTDOWN:
        return GORI_ECLOSED;
    case ENOMEM:
        return GORI_ENOMEM;
    case EMFILE:
        return GORI_EMFILE;
    case ENFILE:
        return GORI_ENFILE;
    case ENOBUFS:
        return GORI_ENOBUFS;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return GORI_ENOSPC;
    default:
        return 0;
    }
}

/* The network and the peer. */
static int network_error(int system_error)
{
    switch (system_error) {
    case ECONNREFUSED:
        return GORI_ECONNREFUSED;
    case ECONNRESET:
    case ENETRESET:
        return GORI_ECONNRESET;
    case ECONNABORTED:
        return GORI_ECONNABORTED;
    case EPIPE:
        return GORI_EPIPE;
    case EADDRINUSE:
        return GORI_EADDRINUSE;
    case EADDRNOTAVAIL:
        return GORI_EADDRNOTAVAIL;
    case EHOSTUNREACH:
    case EHOSTDOWN:
        return GORI_EHOSTUNREACH;
    case ENETUNREACH:
    case ENETDOWN:
        return GORI_ENETUNREACH;
    case EPROTO:
        return GORI_EPROTO;
    case EMSGSIZE:
    case E2BIG:
        return GORI_EMSGSIZE;
    default:
        return 0;
    }
}

/* Files and names. */
static int file_error(int system_error)
{
    switch (system_error) {
    case EACCES:
    case EROFS:
        return GORI_EACCESS;
    case EPERM:
        return GORI_EPERM;
    case ENOENT:
    case ENXIO:
    case ENODEV:
    case ESRCH:
    case ECHILD:
        return GORI_ENOTFOUND;
    case EEXIST:
        return GORI_EEXIST;
    case EISDIR:
        return GORI_EISDIR;
    case ENOTDIR:
        return GORI_ENOTDIR;
    case EIO:
        return GORI_EIO;
    case ELOOP:
        return GORI_ELOOP;
    case ENAMETOOLONG:
        return GORI_ENAMETOOLONG;
    case EXDEV:
        return GORI_EXDEV;
    case ESTALE:
        return GORI_ESTALE;
    default:
        return 0;
    }
}

/* What the caller should not have asked, at least not here. */
static int usage_error(int system_error)
{
    switch (system_error) {
    case EINVAL:
    case EBADF:
    case ENOTSOCK:
    case EFAULT:
    case EDESTADDRREQ:
    case EISCONN:
        return GORI_EINVAL;
    case EOPNOTSUPP:
#if ENOTSUP != EOPNOTSUPP
    case ENOTSUP:
#endif
    case EAFNOSUPPORT:
    case EPROTONOSUPPORT:
    case EPROTOTYPE:
    case ENOPROTOOPT:
    case ENOEXEC:
    case ESOCKTNOSUPPORT:
        return GORI_ENOTSUP;
    case ENOSYS:
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
