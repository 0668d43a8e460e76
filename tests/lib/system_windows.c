/* SPDX-License-Identifier: MIT */
/*
 * Files and handles for tests on Windows; contract: system.h.
 */
#include "lib/system.h"

#include <windows.h>

#include <winternl.h>

#include "lib/test.h"
#include "os/os.h"

#define HANDLES_LOOKED_AT 4096u

/* Winsock keeps some handles of its own from the first socket on. */
static void start_winsock(void)
{
    int fd;
    GT_EQUAL(gi_os_socket(GORI_ADDR_IPV4, 0, &fd), 0);
    gi_os_close(fd);
}

/* What gori opens and must close.  Threads, events and the like come and go with the C library. */
static bool is_ours(HANDLE handle)
{
    struct {
        UNICODE_STRING name;
        BYTE more[1024];
    } type;
    if (NtQueryObject(handle, ObjectTypeInformation, &type, sizeof(type), NULL) < 0) {
        return false;
    }
    size_t count = type.name.Length / sizeof(WCHAR);
    return (count == 4 && wcsncmp(type.name.Buffer, L"File", count) == 0) ||
           (count == 12 && wcsncmp(type.name.Buffer, L"IoCompletion", count) == 0);
}

/* Counted by asking for each number: GetProcessHandleCount answers 0 under Wine 8. */
int gt_open_descriptors(void)
{
    start_winsock();
    int count = 0;
    for (uintptr_t handle = 4; handle < HANDLES_LOOKED_AT; handle += 4) {
        count += is_ours((HANDLE)handle) ? 1 : 0;
    }
    return count;
}

bool gt_is_wine(void)
{
    return GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "wine_get_version") != NULL;
}

void gt_event_open(struct gt_event *event)
{
    HANDLE handle = CreateEventW(NULL, TRUE, FALSE, NULL);
    GT_CHECK(handle != NULL);
    *event = (struct gt_event){.native = (intptr_t)handle};
}

void gt_event_set(const struct gt_event *event, bool is_ready)
{
    GT_CHECK(is_ready ? SetEvent((HANDLE)event->native) : ResetEvent((HANDLE)event->native));
}

bool gt_event_fill(const struct gt_event *event, bool is_full)
{
    (void)event;
    (void)is_full;
    return false;
}

void gt_event_close(const struct gt_event *event)
{
    GT_CHECK(CloseHandle((HANDLE)event->native));
}

/* Control events go to all processes of a console. */
bool gt_raise(int number)
{
    (void)number;
    return false;
}

const char *gt_child_program(void)
{
    const char *path = getenv("GORI_TEST_CHILD");
    GT_CHECK(path != NULL);
    return path;
}

void gt_wait_for_child(int64_t id)
{
    HANDLE child = OpenProcess(SYNCHRONIZE, FALSE, (DWORD)id);
    if (child != NULL) {
        GT_EQUAL(WaitForSingleObject(child, INFINITE), WAIT_OBJECT_0);
        CloseHandle(child);
    }
}

void gt_reap_child(int64_t id)
{
    gt_wait_for_child(id);
}

void gt_spoil_process(void)
{
    /* No signals, and handles are for children only when somebody says so. */
}

bool gt_is_same_folder(const char *one, const char *other)
{
    return _stricmp(one, other) == 0;
}

bool gt_limit_descriptors(int room)
{
    (void)room;
    return false;
}

int gt_read_file(int file, void *data, size_t size)
{
    OVERLAPPED place = {0};
    DWORD got = 0;
    GT_CHECK(ReadFile((HANDLE)(intptr_t)file, data, (DWORD)size, &got, &place));
    return (int)got;
}

static HANDLE make_named(const char *path, DWORD flags, const void *data, size_t size)
{
    HANDLE file = CreateFileA(path, GENERIC_READ | GENERIC_WRITE | DELETE,
                              FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                              CREATE_ALWAYS, flags, NULL);
    GT_CHECK(file != INVALID_HANDLE_VALUE);
    DWORD written = 0;
    GT_CHECK(size == 0 || WriteFile(file, data, (DWORD)size, &written, NULL));
    GT_EQUAL(written, size);
    return file;
}

static void make_name(char path[GT_FOLDER_BYTES])
{
    char folder[MAX_PATH];
    GT_CHECK(GetTempPathA(sizeof(folder), folder) > 0);
    int size = snprintf(path, GT_FOLDER_BYTES, "%sgori-test-%llx", folder,
                        (unsigned long long)gi_os_entropy());
    GT_CHECK(size > 0 && size < GT_FOLDER_BYTES);
}

int gt_make_file(const void *data, size_t size)
{
    char path[GT_FOLDER_BYTES];
    make_name(path);
    return (int)(intptr_t)make_named(path, FILE_FLAG_DELETE_ON_CLOSE, data, size);
}

void gt_close_file(int file)
{
    CloseHandle((HANDLE)(intptr_t)file);
}

void gt_make_folder(char path[GT_FOLDER_BYTES])
{
    make_name(path);
    GT_CHECK(CreateDirectoryA(path, NULL));
}

void gt_write_file(const char *folder, const char *name, const void *data, size_t size)
{
    char path[2 * GT_PROGRAM_BYTES];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    HANDLE file = make_named(path, FILE_ATTRIBUTE_NORMAL, data, data == NULL ? 0 : size);
    FILE_END_OF_FILE_INFO end = {.EndOfFile.QuadPart = (LONGLONG)size};
    GT_CHECK(SetFileInformationByHandle(file, FileEndOfFileInfo, &end, sizeof(end)));
    CloseHandle(file);
}

void gt_append_file(const char *path, const void *data, size_t size)
{
    HANDLE file =
        CreateFileA(path, FILE_APPEND_DATA, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                    NULL, OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL, NULL);
    GT_CHECK(file != INVALID_HANDLE_VALUE);
    DWORD written = 0;
    GT_CHECK(WriteFile(file, data, (DWORD)size, &written, NULL));
    CloseHandle(file);
}

void gt_touch_file(const char *path)
{
    GT_CHECK(SetFileAttributesA(path, FILE_ATTRIBUTE_READONLY));
    GT_CHECK(SetFileAttributesA(path, FILE_ATTRIBUTE_NORMAL));
}

void gt_make_directory(const char *path)
{
    GT_CHECK(CreateDirectoryA(path, NULL));
}

void gt_make_directory_if_missing(const char *path)
{
    GT_CHECK(CreateDirectoryA(path, NULL) || GetLastError() == ERROR_ALREADY_EXISTS);
}

void gt_rename(const char *from, const char *to)
{
    GT_CHECK(MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING));
}

void gt_remove(const char *path)
{
    bool is_directory = (GetFileAttributesA(path) & FILE_ATTRIBUTE_DIRECTORY) != 0;
    GT_CHECK(is_directory ? RemoveDirectoryA(path) : DeleteFileA(path));
}

#define TICKS_PER_SECOND 10000000 /* from 1601 on */
#define SECONDS_TO_1970  INT64_C(11644473600)

void gt_set_modified(const char *path, int64_t seconds)
{
    HANDLE file = CreateFileA(path, FILE_WRITE_ATTRIBUTES,
                              FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                              OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    GT_CHECK(file != INVALID_HANDLE_VALUE);
    uint64_t ticks = (uint64_t)(seconds + SECONDS_TO_1970) * TICKS_PER_SECOND;
    const FILETIME when = {.dwLowDateTime = (DWORD)ticks, .dwHighDateTime = (DWORD)(ticks >> 32)};
    GT_CHECK(SetFileTime(file, NULL, NULL, &when));
    CloseHandle(file);
}

void gt_remove_tree(const char *path)
{
    char below[2 * MAX_PATH];
    WIN32_FIND_DATAA entry;
    snprintf(below, sizeof(below), "%s/*", path);
    HANDLE search = FindFirstFileA(below, &entry);
    GT_CHECK(search != INVALID_HANDLE_VALUE);
    do {
        snprintf(below, sizeof(below), "%s/%s", path, entry.cFileName);
        if (strcmp(entry.cFileName, ".") == 0 || strcmp(entry.cFileName, "..") == 0) {
            continue;
        }
        if (entry.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) {
            gt_remove_tree(below);
        } else {
            gt_remove(below);
        }
    } while (FindNextFileA(search, &entry));
    FindClose(search);
    GT_CHECK(RemoveDirectoryA(path));
}

void gt_program_path(char path[GT_PROGRAM_BYTES])
{
    DWORD size = GetModuleFileNameA(NULL, path, GT_PROGRAM_BYTES);
    GT_CHECK(size > 0 && size < GT_PROGRAM_BYTES);
    for (char *at = path; *at != '\0'; at++) {
        *at = *at == '\\' ? '/' : *at;
    }
}

void gt_pause(void)
{
    Sleep(1);
}

/* What is open goes when it is closed; the folder waits for that. */
static char late_folder[GT_FOLDER_BYTES];

static void remove_late_folder(void)
{
    (void)RemoveDirectoryA(late_folder);
}

bool gt_make_fifo(const char *folder, const char *name)
{
    (void)folder;
    (void)name;
    return false; /* pipes have a name space of their own */
}

bool gt_limit_file_size(size_t size)
{
    (void)size;
    return false;
}

void gt_remove_folder(const char *folder, const char *name)
{
    char path[2 * GT_FOLDER_BYTES];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    GT_CHECK(DeleteFileA(path));
    if (!RemoveDirectoryA(folder)) {
        snprintf(late_folder, sizeof(late_folder), "%s", folder);
        atexit(remove_late_folder);
    }
}
