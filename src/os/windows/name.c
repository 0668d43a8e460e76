/* SPDX-License-Identifier: MIT */
/*
 * Which names are only names.  The walk opens by the native interface, where most of these have no
 * meaning; refusing them anyway keeps a path of ours meaning the same to every other program.
 * Thread: any.  Reading: "Naming Files, Paths, and Namespaces" (Microsoft Learn).
 */
#include <string.h>

#include "base/compiler.h"
#include "os/windows/walk.h"

static char upper(char character)
{
    return character >= 'a' && character <= 'z' ? (char)(character - 'a' + 'A') : character;
}

static bool is_word(const char *name, size_t size, const char *word)
{
    if (size != strlen(word)) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        if (upper(name[i]) != word[i]) {
            return false;
        }
    }
    return true;
}

/* The digits of COM1 to COM9 and LPT1 to LPT9; the superscripts of Latin-1 count as such. */
static bool is_port_number(const char *text, size_t size)
{
    if (size == 1) {
        return text[0] >= '0' && text[0] <= '9';
    }
    return size == 2 && (unsigned char)text[0] == 0xc2 && strchr("\xb9\xb2\xb3", text[1]) != NULL;
}

/* The name of a device, also with an extension, and with blanks before it. */
static bool is_device(const char *name, size_t size)
{
    static const char *const words[] = {"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$"};
    const char *dot = memchr(name, '.', size);
    size_t stem_size = dot == NULL ? size : (size_t)(dot - name);
    while (stem_size > 0 && name[stem_size - 1] == ' ') {
        stem_size--;
    }
    for (size_t i = 0; i < GI_ARRAY_COUNT(words); i++) {
        if (is_word(name, stem_size, words[i])) {
            return true;
        }
    }
    return stem_size > 3 && (is_word(name, 3, "COM") || is_word(name, 3, "LPT")) &&
           is_port_number(name + 3, stem_size - 3);
}

bool gi_os_name_is_plain(const char *name, size_t size)
{
    if (size == 0 || name[size - 1] == '.' || name[size - 1] == ' ') {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)name[i] < 0x20 || strchr("\\/:*?\"<>|", name[i]) != NULL) {
            return false;
        }
    }
    return !is_device(name, size);
}
