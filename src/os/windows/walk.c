/* SPDX-License-Identifier: MIT */
/*
 * The walk of walk.h.  It keeps two texts: `done`, the way from the root to where it stands, free
 * of links and of "..", and `rest`, what is still to go.  ".." shortens `done` and goes there again
 * from the root, so that a folder that somebody moves out of the root takes nobody with it.
 * Thread: any.
 */
#include "os/windows/walk.h"

#include <gori/error.h>
#include <string.h>
#include <winternl.h>

#define PATH_BYTES 4096
#define LINKS_MAX  40
#define NAME_CHARS 256

/* Marks a tag whose file stands for another name. */
#define TAG_IS_SURROGATE(tag) (((tag)&0x20000000u) != 0)

#define TAG_UNIX_SOCKET 0x80000023u
#define TAG_WSL_FIFO    0x80000024u
#define TAG_WSL_CHAR    0x80000025u
#define TAG_WSL_BLOCK   0x80000026u

/* What FSCTL_GET_REPARSE_POINT says of a symbolic link; the headers have it for drivers only. */
struct link_data {
    ULONG tag;
    USHORT data_bytes;
    USHORT reserved;
    USHORT target_offset; /* bytes, in `text` */
    USHORT target_bytes;
    USHORT shown_offset;
    USHORT shown_bytes;
    ULONG flags;
    WCHAR text[(MAXIMUM_REPARSE_DATA_BUFFER_SIZE - 20) / sizeof(WCHAR)];
};

#define LINK_IS_RELATIVE 1u

struct walk {
    HANDLE root;
    HANDLE folder; /* where the walk stands; the root's own handle at the start */
    const struct gi_os_walk_how *how;
    int links;
    size_t done_size;
    char done[PATH_BYTES];
    char rest[PATH_BYTES];
};

static int last_error(void)
{
    return gi_os_error((int)GetLastError());
}

static void stand_at(struct walk *walk, HANDLE folder)
{
    if (walk->folder != walk->root) {
        (void)CloseHandle(walk->folder);
    }
    walk->folder = folder;
}

/* Opens one name beneath a folder. */
static int open_name(HANDLE folder, const char *name, const struct gi_os_walk_how *how,
                     ULONG options, HANDLE *ret_file)
{
    WCHAR wide[NAME_CHARS];
    size_t size = strlen(name);
    if (!gi_os_name_is_plain(name, size)) {
        return GORI_ENOTFOUND;
    }
    int count =
        MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, name, (int)size, wide, NAME_CHARS);
    if (count == 0) {
        return GetLastError() == ERROR_INSUFFICIENT_BUFFER ? GORI_ENAMETOOLONG : GORI_ENOTFOUND;
    }
    UNICODE_STRING text = {.Length = (USHORT)((size_t)count * sizeof(WCHAR)), .Buffer = wide};
    text.MaximumLength = text.Length;
    OBJECT_ATTRIBUTES attributes = {.Length = sizeof(attributes),
                                    .RootDirectory = folder,
                                    .ObjectName = &text,
                                    .Attributes = OBJ_CASE_INSENSITIVE};
    IO_STATUS_BLOCK status;
    options |= how->overlapped ? 0 : FILE_SYNCHRONOUS_IO_NONALERT;
    NTSTATUS result = NtCreateFile(
        ret_file, how->access | SYNCHRONIZE, &attributes, &status, NULL, FILE_ATTRIBUTE_NORMAL,
        FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, how->disposition, options, NULL, 0);
    return result >= 0 ? 0 : gi_os_error((int)RtlNtStatusToDosError(result));
}

/* "PROGRA~1" is another name of a file, made up by the system: the file is not called that. */
static bool is_its_name(HANDLE file, const char *name)
{
    if (strchr(name, '~') == NULL) {
        return true;
    }
    struct {
        FILE_NAME_INFO info;
        WCHAR more[PATH_BYTES];
    } full;
    WCHAR wide[NAME_CHARS];
    int count = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, name, -1, wide, NAME_CHARS) - 1;
    if (count < 0 || !GetFileInformationByHandleEx(file, FileNameInfo, &full, sizeof(full))) {
        return false;
    }
    int full_count = (int)(full.info.FileNameLength / sizeof(WCHAR));
    if (full_count <= count || full.info.FileName[full_count - count - 1] != L'\\') {
        return false;
    }
    const WCHAR *last = full.info.FileName + full_count - count;
    return CompareStringOrdinal(last, count, wide, count, TRUE) == CSTR_EQUAL;
}

/* The attributes of an open file, and its tag if it is a reparse point. */
static int look(HANDLE file, FILE_ATTRIBUTE_TAG_INFO *ret_info)
{
    return GetFileInformationByHandleEx(file, FileAttributeTagInfo, ret_info, sizeof(*ret_info))
               ? 0
               : last_error();
}

static bool same_file(HANDLE a, HANDLE b)
{
    BY_HANDLE_FILE_INFORMATION of_a;
    BY_HANDLE_FILE_INFORMATION of_b;
    return GetFileInformationByHandle(a, &of_a) && GetFileInformationByHandle(b, &of_b) &&
           of_a.dwVolumeSerialNumber == of_b.dwVolumeSerialNumber &&
           of_a.nFileIndexHigh == of_b.nFileIndexHigh && of_a.nFileIndexLow == of_b.nFileIndexLow;
}

/* A file that a filter keeps elsewhere (compressed, in a cloud): let the filter open it. */
static int open_through(struct walk *walk, const char *name, const struct gi_os_walk_how *how,
                        HANDLE *file)
{
    struct gi_os_walk_how again = *how;
    again.disposition = FILE_OPEN;
    HANDLE through;
    int error = open_name(walk->folder, name, &again, 0, &through);
    if (error < 0) {
        return error;
    }
    if (!same_file(*file, through)) {
        (void)CloseHandle(through);
        return GORI_EXDEV; /* it became a link meanwhile */
    }
    (void)CloseHandle(*file);
    *file = through;
    return 0;
}

/* On the way a folder is only gone through. */
static const struct gi_os_walk_how walk_through = {.access = FILE_READ_ATTRIBUTES | FILE_TRAVERSE,
                                                   .disposition = FILE_OPEN};
const struct gi_os_walk_how gi_os_walk_look = {.access = FILE_READ_ATTRIBUTES,
                                               .disposition = FILE_OPEN};
const struct gi_os_walk_how gi_os_walk_read = {
    .access = FILE_READ_DATA | FILE_READ_ATTRIBUTES | FILE_TRAVERSE, .disposition = FILE_OPEN};

/* Opens the component `name` without following it.  Result: 1 when it is a link to be read. */
static int open_component(struct walk *walk, const char *name, const struct gi_os_walk_how *how,
                          HANDLE *ret_file)
{
    HANDLE file;
    FILE_ATTRIBUTE_TAG_INFO info;
    int error = open_name(walk->folder, name, how, FILE_OPEN_REPARSE_POINT, &file);
    if (error < 0) {
        return error;
    }
    int result = look(file, &info);
    if (result == 0 && !is_its_name(file, name)) {
        result = GORI_ENOTFOUND;
    }
    if (result == 0 && (info.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT)) {
        switch (info.ReparseTag) {
        case IO_REPARSE_TAG_SYMLINK:
            result = 1;
            break;
        case TAG_UNIX_SOCKET:
        case TAG_WSL_FIFO:
        case TAG_WSL_CHAR:
        case TAG_WSL_BLOCK:
            result = GORI_EACCESS;
            break;
        default:
            result = TAG_IS_SURROGATE(info.ReparseTag) ? GORI_EXDEV
                                                       : open_through(walk, name, how, &file);
        }
    }
    if (result < 0) {
        (void)CloseHandle(file);
        return result;
    }
    *ret_file = file;
    return result;
}

/* Reads where a link leads, as UTF-8 with slashes. */
static int read_link(HANDLE link, char *target, int target_bytes)
{
    struct link_data data;
    DWORD size;
    if (!DeviceIoControl(link, FSCTL_GET_REPARSE_POINT, NULL, 0, &data, sizeof(data), &size,
                         NULL)) {
        return last_error();
    }
    if (data.tag != IO_REPARSE_TAG_SYMLINK || !(data.flags & LINK_IS_RELATIVE) ||
        data.target_offset + data.target_bytes > (int)sizeof(data.text)) {
        return GORI_EXDEV;
    }
    int count = WideCharToMultiByte(CP_UTF8, 0, data.text + data.target_offset / sizeof(WCHAR),
                                    data.target_bytes / (int)sizeof(WCHAR), target,
                                    target_bytes - 1, NULL, NULL);
    if (count == 0) {
        return GORI_ENAMETOOLONG;
    }
    target[count] = '\0';
    for (int i = 0; i < count; i++) {
        target[i] = target[i] == '\\' ? '/' : target[i];
    }
    return target[0] == '/' ? GORI_EXDEV : 0;
}

/* Puts what a link says before `rest` (a part of walk->rest). */
static int follow(struct walk *walk, HANDLE link, const char *rest, bool has_rest)
{
    if (++walk->links > LINKS_MAX) {
        return GORI_ELOOP;
    }
    char target[PATH_BYTES];
    int error = read_link(link, target, sizeof(target));
    if (error < 0) {
        return error;
    }
    size_t target_size = strlen(target);
    size_t rest_size = strlen(rest);
    if (target_size + rest_size + 2 > sizeof(walk->rest)) {
        return GORI_ENAMETOOLONG;
    }
    memmove(walk->rest + target_size + (has_rest ? 1 : 0), rest, rest_size + 1);
    memcpy(walk->rest, target, target_size);
    if (has_rest) {
        walk->rest[target_size] = '/';
    }
    return 0;
}

/* Steps into a folder that is open already. */
static int step_into(struct walk *walk, const char *name, HANDLE file)
{
    FILE_ATTRIBUTE_TAG_INFO info;
    int error = look(file, &info);
    if (error < 0) {
        return error;
    }
    if (!(info.FileAttributes & FILE_ATTRIBUTE_DIRECTORY)) {
        return GORI_ENOTDIR;
    }
    size_t size = strlen(name);
    if (walk->done_size + size + 2 > sizeof(walk->done)) {
        return GORI_ENAMETOOLONG;
    }
    walk->done[walk->done_size] = '/';
    memcpy(walk->done + walk->done_size + 1, name, size);
    walk->done_size += size + 1;
    stand_at(walk, file);
    return 0;
}

/* Ends the component at `path`; answers what is behind it. */
static char *cut(char *path)
{
    char *end = path + strcspn(path, "/");
    if (*end == '\0') {
        return end;
    }
    *end = '\0';
    return end + 1;
}

/* Goes again from the root to `done`. */
static int walk_again(struct walk *walk)
{
    char path[PATH_BYTES];
    memcpy(path, walk->done, walk->done_size);
    path[walk->done_size] = '\0';
    stand_at(walk, walk->root);
    walk->done_size = 0;
    char *name = path + strspn(path, "/");
    while (*name != '\0') {
        char *next = cut(name);
        HANDLE file;
        int error = open_component(walk, name, &walk_through, &file);
        if (error < 0) {
            return error;
        }
        error = error == 1 ? GORI_EXDEV : step_into(walk, name, file);
        if (error < 0) {
            (void)CloseHandle(file);
            return error;
        }
        name = next;
    }
    return 0;
}

static int leave(struct walk *walk)
{
    if (walk->done_size == 0) {
        return GORI_EXDEV;
    }
    do {
        walk->done_size--;
    } while (walk->done[walk->done_size] != '/');
    return walk_again(walk);
}

/* The folder where the walk stands is the end of the way. */
static int take_folder(struct walk *walk, HANDLE *ret_file)
{
    HANDLE process = GetCurrentProcess();
    return DuplicateHandle(process, walk->folder, process, ret_file, 0, FALSE,
                           DUPLICATE_SAME_ACCESS)
               ? 1
               : last_error();
}

/* One component that is a name.  Result: 1 when `ret_file` is the end of the way, 0 to go on. */
static int step_name(struct walk *walk, const char *name, const char *rest, bool has_rest,
                     HANDLE *ret_file)
{
    HANDLE file;
    int result = open_component(walk, name, has_rest ? &walk_through : walk->how, &file);
    if (result < 0) {
        return result;
    }
    if (result == 1) {
        result = follow(walk, file, rest, has_rest);
        (void)CloseHandle(file);
        return result;
    }
    if (!has_rest) {
        *ret_file = file;
        return 1;
    }
    result = step_into(walk, name, file);
    if (result < 0) {
        (void)CloseHandle(file);
        return result;
    }
    memmove(walk->rest, rest, strlen(rest) + 1);
    return 0;
}

static int step(struct walk *walk, HANDLE *ret_file)
{
    char *name = walk->rest + strspn(walk->rest, "/");
    bool has_rest = name[strcspn(name, "/")] == '/';
    char *rest = cut(name);
    bool is_here = name[0] == '\0' || strcmp(name, ".") == 0;
    if (!is_here && strcmp(name, "..") != 0) {
        return step_name(walk, name, rest, has_rest, ret_file);
    }
    int error = is_here ? 0 : leave(walk);
    if (error < 0) {
        return error;
    }
    if (!has_rest) {
        return take_folder(walk, ret_file);
    }
    memmove(walk->rest, rest, strlen(rest) + 1);
    return 0;
}

int gi_os_walk(HANDLE root, const char *path, const struct gi_os_walk_how *how, HANDLE *ret_file)
{
    struct walk walk;
    size_t size = strlen(path);
    if (size >= sizeof(walk.rest)) {
        return GORI_ENAMETOOLONG;
    }
    if (path[0] == '/') {
        return GORI_EXDEV;
    }
    walk.root = root;
    walk.folder = root;
    walk.how = how;
    walk.links = 0;
    walk.done_size = 0;
    memcpy(walk.rest, path, size + 1);
    int result;
    do {
        result = step(&walk, ret_file);
    } while (result == 0);
    stand_at(&walk, root);
    return result < 0 ? result : 0;
}
