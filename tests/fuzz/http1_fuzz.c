/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target for everything in src/proto that reads what an HTTP/1 peer sends.  The first byte
 * chooses the part, see `parts`; the rest is its input.  Beyond not crashing: every cutting gives
 * the same verdict, and what is accepted has the properties that its users rely on.
 */
#include "lib/http1_cut.h"
#include "proto/http_condition.h"
#include "proto/http_date.h"
#include "proto/http_path.h"
#include "proto/http_range.h"

/* Cutting at every byte is quadratic; longer inputs are left to the run byte by byte. */
#define CUT_SIZE_MAX   400
#define INPUT_SIZE_MAX 65536
#define BODY_LIMIT     4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void demand_inside(struct gi_http1_span span, int size)
{
    demand(span.offset <= (uint32_t)size && span.size <= (uint32_t)size - span.offset);
}

static void check_head(const struct gi_http1_head *head, const uint8_t *data, int size)
{
    demand(!(head->chunked && head->has_content_length));
    demand(!(head->chunked && head->version_minor == 0));
    demand(head->host.size > 0 || head->version_minor == 0);
    demand_inside(head->method_text, size);
    demand_inside(head->target, size);
    demand_inside(head->path, size);
    demand_inside(head->query, size);
    demand_inside(head->host, size);
    for (uint32_t i = 0; i < head->header_count; i++) {
        demand(head->headers[i].name.size > 0);
        demand_inside(head->headers[i].name, size);
        demand_inside(head->headers[i].value, size);
    }
    for (int i = 0; i < size; i++) {
        demand(data[i] != '\0');
        demand(data[i] != '\n' || (i > 0 && data[i - 1] == '\r'));
        demand(data[i] != '\r' || data[i + 1] == '\n');
    }
}

static void fuzz_body(const struct gi_http1_head *head, const uint8_t *data, size_t size)
{
    struct gi_test_body body;

    if (size <= CUT_SIZE_MAX) {
        demand(gi_test_body_cut(&body, head, BODY_LIMIT, data, size) == -1);
    } else {
        gi_test_body_init(&body, head, BODY_LIMIT);
        gi_test_body_feed(&body, data, size);
    }
    demand(body.payload_size <= BODY_LIMIT);
    demand(body.consumed <= size);
}

static void fuzz_conditions(const struct gi_http1_head *head, const uint8_t *data)
{
    const struct gi_http_validators validators = {
        .etag = {(const uint8_t *)"\"x\"", 3},
        .modified_seconds = 784111777,
        .now_seconds = 784111778,
        .has_modified = true,
    };
    struct gi_http_range range;

    (void)gi_http_condition_evaluate(head, data, &validators);
    if (gi_http_condition_range(head, data, &validators, 100, &range) == GI_HTTP_RANGE_SINGLE) {
        demand(range.first <= range.last && range.last < 100);
    }
}

static void fuzz_request(const uint8_t *data, size_t size)
{
    static const struct gi_http1_limits limits = {
        .target_size = 512, .head_size = 4096, .header_count = 64};
    struct gi_test_head whole;

    if (size <= CUT_SIZE_MAX) {
        demand(gi_test_head_cut(&whole, &limits, data, size) == -1);
    } else {
        gi_test_head_init(&whole, &limits);
        gi_test_head_show(&whole, data, size);
    }
    demand((size_t)(whole.result > 0 ? whole.result : 0) <= size);
    demand(whole.result >= 0 || gi_http1_status(whole.result) < 506);
    if (whole.result > 0) {
        check_head(&whole.parser.head, data, whole.result);
        fuzz_conditions(&whole.parser.head, data);
        fuzz_body(&whole.parser.head, data + whole.result, size - (size_t)whole.result);
    }
}

static void fuzz_chunks(const uint8_t *data, size_t size)
{
    const struct gi_http1_head head = {.chunked = true};

    fuzz_body(&head, data, size);
}

static void fuzz_path(const uint8_t *data, size_t size)
{
    static uint8_t path[INPUT_SIZE_MAX + 1];
    const int result =
        gi_http_path_decode((struct gori_slice){gi_fenced(data, size), size}, path, size + 1);
    size_t segment = 1;

    demand(result != 0 && result != GI_HTTP1_E_PATH_SIZE);
    if (result < 0) {
        return;
    }
    demand(path[0] == '/');
    for (size_t i = 1; i <= (size_t)result; i++) {
        if (i < (size_t)result && path[i] != '/') {
            demand(path[i] >= 0x20 && path[i] != '\\' && path[i] != 0x7f);
            continue;
        }
        demand(i > segment || i == (size_t)result);
        demand(!(i - segment == 1 && path[segment] == '.'));
        demand(!(i - segment == 2 && path[segment] == '.' && path[segment + 1] == '.'));
        segment = i + 1;
    }
}

static void fuzz_range(const uint8_t *data, size_t size)
{
    const struct gori_slice value = {gi_fenced(data, size), size};
    struct gi_http_range range;

    for (uint64_t total = 0; total < 20; total++) {
        if (gi_http_range_parse(value, total, &range) == GI_HTTP_RANGE_SINGLE) {
            demand(range.first <= range.last && range.last < total);
        }
    }
}

static void fuzz_tags(const uint8_t *data, size_t size)
{
    const struct gori_slice list = {gi_fenced(data, size), size};
    const struct gori_slice etag = {(const uint8_t *)"\"x\"", 3};
    const bool strong = gi_http_etag_in_list(list, etag, GI_HTTP_ETAG_STRONG);

    demand(!strong || gi_http_etag_in_list(list, etag, GI_HTTP_ETAG_WEAK));
}

static void fuzz_date(const uint8_t *data, size_t size)
{
    uint8_t text[GI_HTTP_DATE_SIZE];
    int64_t seconds;
    int64_t again = 0;

    if (gi_http_date_parse((struct gori_slice){gi_fenced(data, size), size}, 0, &seconds) != 0) {
        return;
    }
    gi_http_date_format(seconds, text);
    demand(gi_http_date_parse((struct gori_slice){text, sizeof(text)}, 0, &again) == 0);
    demand(seconds == again);
}

/* What was written is read as the one header that it was. */
static void fuzz_header_out(const uint8_t *data, size_t size)
{
    static const char line[] = "GET / HTTP/1.0\r\n";
    static uint8_t text[2048];
    struct gi_http1_writer writer;
    struct gi_test_head read;

    gi_http1_writer_init(&writer, text, sizeof(text));
    gi_http1_write_raw(&writer, (struct gori_slice){(const uint8_t *)line, sizeof(line) - 1});
    gi_http1_write_header(&writer, "X", (struct gori_slice){data, size});
    if (gi_http1_write_end(&writer) < 0) {
        return;
    }
    gi_test_head_init(&read, NULL);
    gi_test_head_show(&read, text, writer.size);
    demand(read.result == (int)writer.size);
    demand(read.parser.head.header_count == 1);
}

typedef void part_fn(const uint8_t *data, size_t size);

static const struct {
    uint8_t letter;
    part_fn *run;
} parts[] = {
    {'R', fuzz_request}, /* head and body of a request */
    {'C', fuzz_chunks},  /* a chunked body */
    {'P', fuzz_path},    {'G', fuzz_range},      {'E', fuzz_tags},
    {'D', fuzz_date},    {'W', fuzz_header_out},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > INPUT_SIZE_MAX) {
        return 0;
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (data[0] == parts[i].letter) {
            parts[i].run(data + 1, size - 1);
        }
    }
    return 0;
}
