/* SPDX-License-Identifier: MIT */
/*
 * Files beneath a root, for sending: roots, what a file is like, reading at a place.  How a path
 * becomes a handle is walk.c.
 * Thread: any.  Reading: GetFileInformationByHandle, ReadFile (Microsoft Learn).
 */
#include <gori/error.h>

#include "base/compiler.h"
#include "os/os.h"
#include "os/windows/system.h"
#include "os/windows/walk.h"

#define TICKS_PER_SECOND 10000000u /* of 100 ns, from 1601 on */
#define SECONDS_TO_1970  INT64_C(11644473600)
#define PATH_CHARS       4096

static int last_error(void)
{
    return gi_os_error((int)GetLastError());
}

static uint64_t join(DWORD high, DWORD low)
{
    return (uint64_t)high << 32 | low;
}

int gi_os_describe_handle(HANDLE file, struct gori_file_info *ret_info)
{
    BY_HANDLE_FILE_INFORMATION info;
    if (!GetFileInformationByHandle(file, &info)) {
        return last_error();
    }
    uint64_t ticks = join(info.ftLastWriteTime.dwHighDateTime, info.ftLastWriteTime.dwLowDateTime);
    *ret_info = (struct gori_file_info){
        .size = join(info.nFileSizeHigh, info.nFileSizeLow),
        .modified_s = (int64_t)(ticks / TICKS_PER_SECOND) - SECONDS_TO_1970,
        .modified_ns = (uint32_t)(ticks % TICKS_PER_SECOND) * 100,
        .device = info.dwVolumeSerialNumber,
        .inode = join(info.nFileIndexHigh, info.nFileIndexLow),
        .is_directory = (info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0,
    };
    return 0;
}

int gi_os_open_root(const char *path, int *ret_fd)
{
    wchar_t wide[PATH_CHARS];
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, PATH_CHARS) == 0) {
        return GetLastError() == ERROR_INSUFFICIENT_BUFFER ? GORI_ENAMETOOLONG : GORI_ENOTFOUND;
    }
    HANDLE root = CreateFileW(wide, FILE_TRAVERSE | FILE_READ_ATTRIBUTES | SYNCHRONIZE,
                              FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                              OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (root == INVALID_HANDLE_VALUE) {
        return last_error();
    }
    struct gori_file_info info;
    int error = gi_os_describe_handle(root, &info);
    if (error == 0 && !info.is_directory) {
        error = GORI_ENOTDIR;
    }
    if (error < 0) {
        (void)CloseHandle(root);
        return error;
    }
    *ret_fd = gi_os_descriptor(root);
    return 0;
}

int gi_os_open_beneath(int root_fd, const char *path, int *ret_fd, struct gori_file_info *ret_info)
{
    HANDLE file;
    int error = gi_os_walk(gi_os_handle(root_fd), path, &gi_os_walk_read, &file);
    if (error < 0) {
        return error;
    }
    error = gi_os_describe_handle(file, ret_info);
    if (error < 0) {
        (void)CloseHandle(file);
        return error;
    }
    *ret_fd = gi_os_descriptor(file);
    return 0;
}

int gi_os_stat_beneath(int root_fd, const char *path, struct gori_file_info *ret_info)
{
    HANDLE file;
    int error = gi_os_walk(gi_os_handle(root_fd), path, &gi_os_walk_look, &file);
    if (error < 0) {
        return error;
    }
    error = gi_os_describe_handle(file, ret_info);
    (void)CloseHandle(file);
    return error;
}

void gi_os_close_file(int fd)
{
    GI_ASSERT(fd >= 0);
    (void)CloseHandle(gi_os_handle(fd));
}

int64_t gi_os_read_at(int fd, void *data, size_t size, uint64_t offset)
{
    size_t done = 0;
    while (done < size) {
        const struct gori_slice room = {.data = (uint8_t *)data + done, .size = size - done};
        int64_t got = gi_os_file_read(fd, &room, 1, 0, offset + done);
        if (got < 0) {
            return got;
        }
        if (got == 0) {
            break;
        }
        done += (size_t)got;
    }
    return (int64_t)done;
}
