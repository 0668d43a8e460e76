/* SPDX-License-Identifier: MIT */
/*
 * The main of a fuzz target that is built without libFuzzer: it gives every file it is told, and
 * every file of every folder, to the target once.  So each build, with any compiler and sanitizer,
 * replays what fuzzing ever found.
 *
 * Reading: libFuzzer's manual, "Fuzz target".
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_BYTES_MAX (1U << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return -1;
    }
    /* Exactly as many bytes as the input has, so that a sanitizer sees the first byte beyond. */
    uint8_t *buffer = malloc(INPUT_BYTES_MAX);
    size_t size = fread(buffer, 1, INPUT_BYTES_MAX, file);
    uint8_t *data = malloc(size > 0 ? size : 1);
    memcpy(data, buffer, size);
    free(buffer);
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 1;
}

static int replay_folder(const char *path, DIR *folder)
{
    int count = 0;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        char name[4096];
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        int replayed = replay_file(name);
        if (replayed < 0) {
            return -1;
        }
        count += replayed;
    }
    return count;
}

int main(int argc, char **argv)
{
    int count = 0;
    for (int index = 1; index < argc; index++) {
        DIR *folder = opendir(argv[index]);
        int replayed =
            folder != NULL ? replay_folder(argv[index], folder) : replay_file(argv[index]);
        if (folder != NULL) {
            closedir(folder);
        }
        if (replayed < 0) {
            return 1;
        }
        count += replayed;
    }
    printf("%d inputs replayed\n", count);
    return count > 0 ? 0 : 1;
}
