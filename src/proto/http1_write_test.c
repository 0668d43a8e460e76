/* SPDX-License-Identifier: MIT */
/*
 * Goal: heads come out as asked, never beyond the buffer, and a value cannot start another line.
 * Method: one whole head, the same in every smaller buffer, and each forbidden byte.
 */
#include "proto/http1.h"

#include "lib/test.h"

static const char whole[] = "HTTP/1.1 206 Partial Content\r\n"
                            "Server: gori\r\n"
                            "Content-Length: 18446744073709551615\r\n"
                            "Content-Range: bytes 0-9/10\r\n"
                            "X: y\r\n"
                            "\r\n";

static int write_whole(uint8_t *buffer, size_t capacity)
{
    static const uint8_t raw[] = "X: y\r\n";
    struct gi_http1_writer writer;

    gi_http1_writer_init(&writer, buffer, capacity);
    gi_http1_write_status(&writer, 206);
    gi_http1_write_text(&writer, "Server", "gori");
    gi_http1_write_number(&writer, "Content-Length", UINT64_MAX);
    gi_http1_write_range(&writer, "Content-Range", 0, 9, 10);
    gi_http1_write_raw(&writer, (struct gori_slice){raw, sizeof(raw) - 1});
    return gi_http1_write_end(&writer);
}

GT_TEST(a_head)
{
    uint8_t buffer[sizeof(whole)];
    const int size = write_whole(buffer, sizeof(whole) - 1);

    GT_EQUAL_BYTES(buffer, (size_t)size, whole, sizeof(whole) - 1);
}

GT_TEST(every_buffer_that_is_too_small)
{
    uint8_t buffer[sizeof(whole)];

    for (size_t capacity = 0; capacity < sizeof(whole) - 1; capacity++) {
        memset(buffer, 0xee, sizeof(buffer));
        GT_EQUAL(write_whole(buffer, capacity), GI_HTTP1_E_OUTPUT_SIZE);
        GT_EQUAL(buffer[capacity], 0xee);
    }
}

GT_TEST(values_cannot_start_a_line)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        const uint8_t value[] = {'a', (uint8_t)byte, 'b'};
        const bool forbidden = (byte < 0x20 && byte != '\t') || byte == 0x7f;
        uint8_t buffer[64];
        struct gi_http1_writer writer;
        int result;

        gi_http1_writer_init(&writer, buffer, sizeof(buffer));
        gi_http1_write_header(&writer, "X", (struct gori_slice){value, sizeof(value)});
        result = gi_http1_write_end(&writer);
        GT_EQUAL(result, forbidden ? GI_HTTP1_E_OUTPUT_BYTE : 10);
    }
}

GT_TEST(names_are_tokens)
{
    static const char *const names[] = {"", "a b", "a:", "a\r\n", "\x80"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        uint8_t buffer[64];
        struct gi_http1_writer writer;

        gi_http1_writer_init(&writer, buffer, sizeof(buffer));
        gi_http1_write_text(&writer, names[i], "v");
        gi_http1_write_text(&writer, "Ok", "v");
        GT_EQUAL(gi_http1_write_end(&writer), GI_HTTP1_E_OUTPUT_BYTE);
        GT_EQUAL(writer.size, 0);
    }
}

GT_TEST(a_range_that_cannot_be_had)
{
    static const char expected[] = "Content-Range: bytes */536\r\n\r\n";
    uint8_t buffer[64];
    struct gi_http1_writer writer;

    gi_http1_writer_init(&writer, buffer, sizeof(buffer));
    gi_http1_write_no_range(&writer, "Content-Range", 536);
    GT_EQUAL(gi_http1_write_end(&writer), sizeof(expected) - 1);
    GT_EQUAL_BYTES(buffer, writer.size, expected, sizeof(expected) - 1);
}

GT_TEST(numbers_and_unknown_statuses)
{
    static const char expected[] = "HTTP/1.1 299 \r\nA: 0\r\nB: 1000\r\n\r\n";
    uint8_t buffer[64];
    struct gi_http1_writer writer;

    gi_http1_writer_init(&writer, buffer, sizeof(buffer));
    gi_http1_write_status(&writer, 299);
    gi_http1_write_number(&writer, "A", 0);
    gi_http1_write_number(&writer, "B", 1000);
    GT_EQUAL(gi_http1_write_end(&writer), sizeof(expected) - 1);
    GT_EQUAL_BYTES(buffer, writer.size, expected, sizeof(expected) - 1);
}

GT_MAIN()
