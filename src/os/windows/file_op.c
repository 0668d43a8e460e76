/* SPDX-License-Identifier: MIT */
/*
 * What file ops do where a thread does them.  Every file here is opened for overlapped calls, so
 * that the IOCP engine can read and write it too; a call that is to wait names an event whose
 * lowest bit is set, which keeps its packet away from the engine's port.
 *
 * As on other systems a file may be renamed and removed while it is open, and nobody locks it.
 * A folder has nothing to be synced: the system keeps a journal of names.
 * Thread: any.  Reading: CreateFileW, ReadFile, GetQueuedCompletionStatus (Microsoft Learn).
 */
#include <gori/error.h>
#include <gori/file_op.h>
#include <string.h>
#include <winternl.h>

#include "base/compiler.h"
#include "os/os.h"
#include "os/windows/system.h"
#include "os/windows/walk.h"

#define PATH_CHARS   4096
#define IO_BYTES_MAX (1u << 30) /* in one call */
#define SHARE_ALL    (FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE)

/* As an offset: the end of the file, as it is then. */
#define AT_THE_END UINT64_MAX

static int last_error(void)
{
    return gi_os_error((int)GetLastError());
}

/* Opening --------------------------------------------------------------------------------- */

static ACCESS_MASK access_of(uint32_t flags)
{
    return ((flags & GI_OS_FILE_READ) ? FILE_GENERIC_READ : 0u) |
           ((flags & GI_OS_FILE_WRITE) ? FILE_GENERIC_WRITE : 0u) | FILE_READ_ATTRIBUTES |
           SYNCHRONIZE;
}

static DWORD disposition_of(uint32_t flags)
{
    if (!(flags & GI_OS_FILE_CREATE)) {
        return OPEN_EXISTING;
    }
    return (flags & GI_OS_FILE_EXCLUSIVE) ? CREATE_NEW : OPEN_ALWAYS;
}

static int widen(const char *path, wchar_t wide[PATH_CHARS])
{
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, PATH_CHARS) != 0) {
        return 0;
    }
    return GetLastError() == ERROR_INSUFFICIENT_BUFFER ? GORI_ENAMETOOLONG : GORI_ENOTFOUND;
}

/* What Windows says of a path with a file in the place of a folder is that there is none. */
static int path_error(wchar_t *wide, bool writes)
{
    int error = last_error();
    DWORD attributes = GetFileAttributesW(wide);
    if (attributes != INVALID_FILE_ATTRIBUTES) {
        bool is_folder = (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
        return is_folder && writes && error != GORI_EEXIST ? GORI_EISDIR : error;
    }
    for (size_t i = wcslen(wide); error == GORI_ENOTFOUND && i > 0; i--) {
        if (wide[i - 1] != L'/' && wide[i - 1] != L'\\') {
            continue;
        }
        wide[i - 1] = L'\0';
        attributes = GetFileAttributesW(wide);
        if (attributes != INVALID_FILE_ATTRIBUTES) {
            return (attributes & FILE_ATTRIBUTE_DIRECTORY) ? error : GORI_ENOTDIR;
        }
    }
    return error;
}

static int open_by_system(const struct gi_os_file_open *how, HANDLE *ret_file)
{
    wchar_t wide[PATH_CHARS];
    int error = widen(how->path, wide);
    if (error < 0) {
        return error;
    }
    HANDLE file =
        CreateFileW(wide, access_of(how->flags), SHARE_ALL, NULL, disposition_of(how->flags),
                    FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OVERLAPPED, NULL);
    if (file == INVALID_HANDLE_VALUE) {
        return path_error(wide, (how->flags & GI_OS_FILE_WRITE) != 0);
    }
    *ret_file = file;
    return 0;
}

static int open_by_root(const struct gi_os_file_open *how, HANDLE *ret_file)
{
    DWORD disposition = disposition_of(how->flags);
    const struct gi_os_walk_how walk = {.access = access_of(how->flags),
                                        .disposition = disposition == OPEN_EXISTING ? FILE_OPEN
                                                       : disposition == CREATE_NEW  ? FILE_CREATE
                                                                                    : FILE_OPEN_IF,
                                        .overlapped = true};
    return gi_os_walk(gi_os_handle(how->root_fd), how->path, &walk, ret_file);
}

/* What was opened is a file, or a folder that nobody wants to write; empties it if that is wanted.
 */
static int take_opened(HANDLE file, uint32_t flags, struct gori_file_info *ret_info)
{
    if (GetFileType(file) != FILE_TYPE_DISK) {
        return GORI_EACCESS;
    }
    int error = gi_os_describe_handle(file, ret_info);
    if (error < 0) {
        return error;
    }
    if (ret_info->is_directory && (flags & GI_OS_FILE_WRITE)) {
        return GORI_EISDIR;
    }
    if ((flags & GI_OS_FILE_TRUNCATE) && ret_info->size > 0) {
        ret_info->size = 0;
        return gi_os_file_truncate(gi_os_descriptor(file), 0);
    }
    return 0;
}

int gi_os_file_open(const struct gi_os_file_open *how, int *ret_fd, struct gori_file_info *ret_info)
{
    HANDLE file;
    int error =
        how->root_fd == GI_OS_NO_ROOT ? open_by_system(how, &file) : open_by_root(how, &file);
    if (error < 0) {
        return error;
    }
    struct gori_file_info info;
    error = take_opened(file, how->flags, &info);
    if (error < 0) {
        (void)CloseHandle(file);
        return error;
    }
    *ret_fd = gi_os_descriptor(file);
    *ret_info = info;
    return 0;
}

int gi_os_file_stat_path(int root_fd, const char *path, struct gori_file_info *ret_info)
{
    if (root_fd != GI_OS_NO_ROOT) {
        return gi_os_stat_beneath(root_fd, path, ret_info);
    }
    wchar_t wide[PATH_CHARS];
    int error = widen(path, wide);
    if (error < 0) {
        return error;
    }
    HANDLE file = CreateFileW(wide, FILE_READ_ATTRIBUTES, SHARE_ALL, NULL, OPEN_EXISTING,
                              FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (file == INVALID_HANDLE_VALUE) {
        return path_error(wide, false);
    }
    bool is_special = GetFileType(file) != FILE_TYPE_DISK;
    error = is_special ? GORI_EACCESS : gi_os_describe_handle(file, ret_info);
    (void)CloseHandle(file);
    return error;
}

int gi_os_file_stat(int fd, struct gori_file_info *ret_info)
{
    return gi_os_describe_handle(gi_os_handle(fd), ret_info);
}

/* Bytes ----------------------------------------------------------------------------------- */

/* One read or write, waited for. */
static int64_t transfer(int fd, uint8_t *data, size_t size, uint64_t offset, bool writes)
{
    HANDLE file = gi_os_handle(fd);
    HANDLE event = CreateEventW(NULL, TRUE, FALSE, NULL);
    if (event == NULL) {
        return last_error();
    }
    OVERLAPPED place = {.Offset = (DWORD)offset,
                        .OffsetHigh = (DWORD)(offset >> 32),
                        .hEvent = (HANDLE)((uintptr_t)event | 1)};
    DWORD wanted = (DWORD)gi_min_size(size, IO_BYTES_MAX);
    DWORD moved = 0;
    BOOL good = writes ? WriteFile(file, data, wanted, NULL, &place)
                       : ReadFile(file, data, wanted, NULL, &place);
    if (good || GetLastError() == ERROR_IO_PENDING) {
        good = GetOverlappedResult(file, &place, &moved, TRUE);
    }
    int64_t result = moved;
    if (!good && GetLastError() != ERROR_HANDLE_EOF) {
        result = last_error();
    }
    (void)CloseHandle(event);
    return result;
}

int64_t gi_os_file_read(int fd, const struct gori_slice *pieces, uint32_t count, size_t skip,
                        uint64_t offset)
{
    (void)count; /* scattered reads are for whole pages only: one piece at a time */
    return transfer(fd, (uint8_t *)(uintptr_t)pieces->data + skip, pieces->size - skip, offset,
                    false);
}

int64_t gi_os_file_write(int fd, const struct gori_slice *pieces, uint32_t count, size_t skip,
                         uint64_t offset, bool append)
{
    (void)count;
    return transfer(fd, (uint8_t *)(uintptr_t)pieces->data + skip, pieces->size - skip,
                    append ? AT_THE_END : offset, true);
}

/* The rest -------------------------------------------------------------------------------- */

int gi_os_file_sync(int fd, bool data_only)
{
    (void)data_only;
    struct gori_file_info info;
    if (FlushFileBuffers(gi_os_handle(fd))) {
        return 0;
    }
    int error = last_error();
    bool is_folder = gi_os_describe_handle(gi_os_handle(fd), &info) == 0 && info.is_directory;
    return is_folder ? 0 : error;
}

int gi_os_file_truncate(int fd, uint64_t size)
{
    FILE_END_OF_FILE_INFO end = {.EndOfFile.QuadPart = (LONGLONG)size};
    return SetFileInformationByHandle(gi_os_handle(fd), FileEndOfFileInfo, &end, sizeof(end))
               ? 0
               : last_error();
}

int gi_os_file_close(int fd)
{
    return CloseHandle(gi_os_handle(fd)) ? 0 : last_error();
}
