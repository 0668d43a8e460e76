/* SPDX-License-Identifier: MIT */
/*
 * A program of somebody else: it knows gori only as an installed package, and says by its exit
 * status whether the library that it got is the one whose headers it was compiled with.
 */
#include <gori/block.h>
#include <gori/error.h>
#include <gori/version.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
    struct gori_block *block = NULL;
    int result = gori_block_create(NULL, "ring", 4, &block);
    if (result < 0) {
        fprintf(stderr, "gori %s: %s\n", GORI_VERSION_TEXT, gori_error_text(result));
        return 1;
    }
    struct gori_slice view = gori_block_view(block);
    int same = view.size == 4 && memcmp(view.data, "ring", 4) == 0;
    gori_block_unref(block);
    printf("gori %s: %s\n", GORI_VERSION_TEXT, gori_error_text(0));
    return same ? 0 : 1;
}
