/* SPDX-License-Identifier: MIT */
/*
 * The error table in three views.
 *
 * Contract:
 *  1. Every int has a name, a text and a category; none is NULL.
 *  2. Values >= 0 are no errors: "OK", "success", GORI_CATEGORY_NONE.
 *  3. Negative values that are not in the table answer as GORI_EUNKNOWN.
 *  4. Values are contiguous from -1, so the table is an array; the tests check it.
 */
#include "base/compiler.h"

#include <gori/error.h>

struct error_entry {
    const char *name;
    const char *text;
    enum gori_category category;
};

#define ERROR_ENTRY(error, value, text, category) [-(value)] = {#error, text, category},

static const struct error_entry entries[] = {[0] = {"OK", "success", GORI_CATEGORY_NONE},
                                             GORI_ERROR_MAP(ERROR_ENTRY)};

static const struct error_entry *find_entry(int error)
{
    if (error >= 0) {
        return &entries[0];
    }
    /* Not -error: INT_MIN has no opposite. */
    if (error <= -(int)GI_ARRAY_COUNT(entries)) {
        return &entries[-GORI_EUNKNOWN];
    }
    return &entries[-error];
}

const char *gori_error_name(int error)
{
    return find_entry(error)->name;
}

const char *gori_error_text(int error)
{
    return find_entry(error)->text;
}

enum gori_category gori_error_category(int error)
{
    return find_entry(error)->category;
}
