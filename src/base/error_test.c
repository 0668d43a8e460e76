/* SPDX-License-Identifier: MIT */
/*
 * The error table: complete, contiguous, and defined for every int.
 */
#include "lib/test.h"

#include <gori/error.h>
#include <limits.h>

/* Values are contiguous from -1 in the order of the table: the array in error.c relies on it. */
GT_TEST(error_values_are_contiguous)
{
    int expected = -1;
#define CHECK_VALUE(name, value, text, category) GT_EQUAL(name, expected--);
    GORI_ERROR_MAP(CHECK_VALUE)
#undef CHECK_VALUE
    GT_EQUAL(GORI_EUNKNOWN, expected + 1);
}

GT_TEST(error_entries_answer_what_the_table_says)
{
#define CHECK_ENTRY(error, value, what, group)                                                     \
    GT_EQUAL_STRING(gori_error_name(error), #error);                                               \
    GT_EQUAL_STRING(gori_error_text(error), what);                                                 \
    GT_EQUAL(gori_error_category(error), group);
    GORI_ERROR_MAP(CHECK_ENTRY)
#undef CHECK_ENTRY
}

GT_TEST(error_success_is_no_error)
{
    static const int values[] = {0, 1, INT_MAX};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        GT_EQUAL_STRING(gori_error_name(values[i]), "OK");
        GT_EQUAL_STRING(gori_error_text(values[i]), "success");
        GT_EQUAL(gori_error_category(values[i]), GORI_CATEGORY_NONE);
    }
}

GT_TEST(error_values_outside_the_table_are_unknown)
{
    static const int values[] = {GORI_EUNKNOWN - 1, -1000, INT_MIN + 1, INT_MIN};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        GT_EQUAL_STRING(gori_error_name(values[i]), "GORI_EUNKNOWN");
        GT_EQUAL_STRING(gori_error_text(values[i]), "unknown error");
        GT_EQUAL(gori_error_category(values[i]), GORI_CATEGORY_BUG);
    }
}

GT_MAIN()
