/* SPDX-License-Identifier: MIT */
/*
 * The errors that callers decide by keep their meaning; every errno has an answer.
 */
#include "lib/test.h"

#include <errno.h>
#include <gori/error.h>

#include "os/os.h"

GT_TEST(os_error_keeps_its_meaning)
{
    static const struct {
        int system_error;
        int error;
    } pairs[] = {
        {EAGAIN, GORI_EAGAIN},
        {EINTR, GORI_EAGAIN},
        {EINPROGRESS, GORI_EAGAIN},
        {EPIPE, GORI_EPIPE},
        {ECONNRESET, GORI_ECONNRESET},
        {ECONNABORTED, GORI_ECONNABORTED},
        {ECONNREFUSED, GORI_ECONNREFUSED},
        {ETIMEDOUT, GORI_ETIMEDOUT},
        {ECANCELED, GORI_ECANCELED},
        {ENOTCONN, GORI_ECLOSED},
        {EMFILE, GORI_EMFILE},
        {ENFILE, GORI_ENFILE},
        {ENOBUFS, GORI_ENOBUFS},
        {ENOMEM, GORI_ENOMEM},
        {EADDRINUSE, GORI_EADDRINUSE},
        {EACCES, GORI_EACCESS},
        {EPERM, GORI_EPERM},
        {ENOSYS, GORI_ENOSYS},
        {ENOENT, GORI_ENOTFOUND},
        {ENOTDIR, GORI_ENOTDIR},
        {EXDEV, GORI_EXDEV},
        {ELOOP, GORI_ELOOP},
        {EBADF, GORI_EINVAL},
        {EOPNOTSUPP, GORI_ENOTSUP},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        GT_EQUAL(gi_os_error(pairs[i].system_error), pairs[i].error);
    }
}

GT_TEST(os_error_answers_everything)
{
    GT_EQUAL(gi_os_error(0), 0);
    for (int i = 1; i < 300; i++) {
        GT_CHECK(gi_os_error(i) < 0);
    }
    GT_EQUAL(gi_os_error(-5), GORI_EUNKNOWN);
    GT_EQUAL(gi_os_error(100000), GORI_EUNKNOWN);
}

GT_MAIN()
