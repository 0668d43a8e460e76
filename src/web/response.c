/* SPDX-License-Identifier: MIT */
/*
 * Sending a response.
 *
 *  1. The commonest answer, a small file whole to a GET that keeps the connection, is made once a
 *     second for each file, as an immutable block, and then only referred to: head and body in one
 *     block when the body is short, else the head in one and the body in another.
 *  2. All others have their head written into the scratch of the server and copied into the queue.
 *  3. The body of a small file goes by reference, a part of it as a copy; that of a large one by
 *     gori_session_send_file, which closes the connection should the file have become shorter.
 *  4. HEAD, 204 and 304 have no body; lengths are those that GET would have.
 *
 * Thread: the loop's.
 */
#include <gori/error.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "web/server.h"

/* Room for a head without its location, and for the text of a status. */
#define HEAD_BYTES 1024u
#define TEXT_BYTES 256u

static struct gori_slice text_slice(const char *text)
{
    return (struct gori_slice){(const uint8_t *)text, strlen(text)};
}

static bool has_no_body(const struct gi_web_request *request, int status)
{
    return status == 304 ||
           (request->head != NULL && request->head->method == GI_HTTP1_METHOD_HEAD);
}

/* What is the same in every head: the status, the date, who answers. */
static void write_start(struct gori_web_server *server, struct gi_http1_writer *writer, int status)
{
    gi_http1_write_status(writer, status);
    gi_http1_write_header(writer, "Date",
                          (struct gori_slice){server->clock.date, GI_HTTP_DATE_SIZE});
    gi_http1_write_raw(writer, text_slice(server->server_line));
}

/* The ready answer ------------------------------------------------------------------------- */

static bool is_common(const struct gi_web_request *request, const struct gi_web_response *response)
{
    return response->status == 200 && response->file->body != NULL && !request->close &&
           request->head->method == GI_HTTP1_METHOD_GET && request->head->version_minor > 0;
}

static int write_ready_head(struct gori_web_server *server, const struct gi_web_file *file,
                            struct gi_http1_writer *writer)
{
    write_start(server, writer, 200);
    gi_http1_write_raw(writer, gi_web_file_type_line(file));
    gi_http1_write_number(writer, "Content-Length", file->info.size);
    gi_http1_write_raw(writer, gi_web_file_validator_lines(file));
    return gi_http1_write_end(writer);
}

static int make_ready(struct gori_web_server *server, struct gi_web_file *file)
{
    uint8_t head[HEAD_BYTES];
    struct gi_http1_writer writer;
    gi_http1_writer_init(&writer, head, sizeof(head));
    int head_size = write_ready_head(server, file, &writer);
    GI_ASSERT(head_size > 0);
    struct gori_slice body = {NULL, 0};
    if (file->info.size <= GI_WEB_JOIN_BYTES) {
        body = gori_block_view(file->body);
    }
    struct gori_block *ready;
    uint8_t *data;
    int result = gori_block_build(server->allocator, (size_t)head_size + body.size, &ready, &data);
    if (result < 0) {
        return result;
    }
    memcpy(data, head, (size_t)head_size);
    if (body.size > 0) {
        memcpy(data + head_size, body.data, body.size);
    }
    gori_block_unref(file->ready);
    file->ready = ready;
    file->ready_second = server->clock.seconds;
    return 0;
}

static int send_ready(struct gori_web_server *server, struct gori_session *session,
                      struct gi_web_file *file)
{
    if (file->ready == NULL || file->ready_second != server->clock.seconds) {
        int result = make_ready(server, file);
        if (result < 0) {
            return result;
        }
    }
    int result = gori_session_send_block(session, file->ready);
    if (result >= 0 && file->info.size > GI_WEB_JOIN_BYTES) {
        result = gori_session_send_block(session, file->body);
    }
    return result;
}

/* All others ------------------------------------------------------------------------------- */

/* Appends a decoded name as a reference: what could mean something else in it is escaped. */
static size_t write_reference(uint8_t *text, struct gori_slice name)
{
    static const char digits[] = "0123456789ABCDEF";
    static const char plain[] = "-._~/!$&'()*+,;=:@";
    size_t size = 0;
    for (size_t i = 0; i < name.size; i++) {
        uint8_t byte = name.data[i];
        bool is_alphanumeric = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
                               (byte >= 'a' && byte <= 'z');
        if (is_alphanumeric || (byte != 0 && strchr(plain, byte) != NULL)) {
            text[size++] = byte;
        } else {
            text[size++] = '%';
            text[size++] = (uint8_t)digits[byte >> 4];
            text[size++] = (uint8_t)digits[byte & 15];
        }
    }
    return size;
}

/* Location: the folder with its slash, and the query as it came.  The name has a single slash at
 * its start, so that no browser takes it for a host. */
static void write_location(struct gi_http1_writer *writer, const struct gi_web_request *request,
                           struct gori_slice name)
{
    static const char start[] = "Location: ";
    struct gori_slice query = gi_http1_slice(request->data, request->head->query);
    GI_ASSERT(writer->capacity - writer->size >=
              sizeof(start) + 3 * name.size + query.size + 2 * sizeof("/?\r\n"));
    gi_http1_write_raw(writer, text_slice(start));
    writer->size += write_reference(writer->data + writer->size, name);
    gi_http1_write_raw(writer, text_slice("/"));
    if (query.size > 0) {
        gi_http1_write_raw(writer, text_slice("?"));
        gi_http1_write_raw(writer, query);
    }
    gi_http1_write_raw(writer, text_slice("\r\n"));
}

/* Header lines that tell more about the status. */
static void write_status_lines(struct gi_http1_writer *writer, const struct gi_web_request *request,
                               const struct gi_web_response *response)
{
    switch (response->status) {
    case 206:
        gi_http1_write_range(writer, "Content-Range", response->first,
                             response->first + response->size - 1, response->file->info.size);
        break;
    case 301:
        write_location(writer, request, response->location);
        break;
    case 405:
        gi_http1_write_text(writer, "Allow", "GET, HEAD");
        break;
    case 416:
        gi_http1_write_no_range(writer, "Content-Range", response->file->info.size);
        break;
    case 503:
        gi_http1_write_text(writer, "Retry-After", "1");
        break;
    default:
        break;
    }
}

static void write_connection(struct gi_http1_writer *writer, const struct gi_web_request *request)
{
    if (request->close) {
        gi_http1_write_text(writer, "Connection", "close");
    } else if (request->head->version_minor == 0) {
        gi_http1_write_text(writer, "Connection", "keep-alive");
    }
}

static size_t write_text_body(char *text, int status)
{
    const char *phrase = gi_http1_status_text(status);
    int size = snprintf(text, TEXT_BYTES,
                        "<!doctype html>\n<meta charset=\"utf-8\">\n<title>%d %s</title>\n"
                        "<h1>%d %s</h1>\n",
                        status, phrase, status, phrase);
    GI_ASSERT(size > 0 && (size_t)size < TEXT_BYTES);
    return (size_t)size;
}

/* Writes the whole head to `data`, in the scratch behind the name.  Result: its size. */
static size_t write_head(struct gori_web_server *server, const struct gi_web_request *request,
                         const struct gi_web_response *response, uint8_t *data)
{
    const struct gi_web_file *file = response->file;
    struct gi_http1_writer writer;
    gi_http1_writer_init(&writer, data, server->scratch_bytes - server->name_bytes - TEXT_BYTES);
    write_start(server, &writer, response->status);
    if (file == NULL || response->status == 416) {
        gi_http1_write_text(&writer, "Content-Type", "text/html; charset=utf-8");
    } else if (response->status != 304) {
        gi_http1_write_raw(&writer, gi_web_file_type_line(file));
    }
    if (response->status != 304) {
        gi_http1_write_number(&writer, "Content-Length", response->size);
    }
    if (file != NULL && response->status < 400) {
        gi_http1_write_raw(&writer, gi_web_file_validator_lines(file));
    }
    write_status_lines(&writer, request, response);
    write_connection(&writer, request);
    int size = gi_http1_write_end(&writer);
    GI_ASSERT(size > 0);
    return (size_t)size;
}

static int send_part(struct gori_session *session, const struct gi_web_response *response)
{
    const struct gi_web_file *file = response->file;
    if (response->size == 0) {
        return 0;
    }
    if (!gi_web_file_is_small(file)) {
        return gori_session_send_file(session, file->file, response->first, response->size);
    }
    if (response->size == file->info.size) {
        return gori_session_send_block(session, file->body);
    }
    return gori_session_send(session, gori_block_view(file->body).data + response->first,
                             (size_t)response->size);
}

static int send_other(struct gori_web_server *server, struct gori_session *session,
                      const struct gi_web_request *request, struct gi_web_response *response)
{
    uint8_t *data = server->scratch + server->name_bytes;
    bool is_text = response->file == NULL || response->status == 416;
    char text[TEXT_BYTES];
    if (is_text) {
        response->size = write_text_body(text, response->status);
    }
    size_t size = write_head(server, request, response, data);
    bool has_body = !has_no_body(request, response->status);
    if (has_body && is_text) {
        memcpy(data + size, text, (size_t)response->size);
        size += (size_t)response->size;
    }
    int result = gori_session_send(session, data, size);
    if (result < 0 || !has_body || is_text || response->size == 0) {
        return result;
    }
    return send_part(session, response);
}

/* Counting --------------------------------------------------------------------------------- */

static struct gori_slice header_value(const struct gi_web_request *request,
                                      enum gi_http1_field field)
{
    const struct gi_http1_header *header = gi_http1_header(request->head, field);
    return header == NULL ? (struct gori_slice){NULL, 0}
                          : gi_http1_slice(request->data, header->value);
}

static void tell(struct gori_web_server *server, struct gori_session *session,
                 const struct gi_web_request *request, int status, uint64_t body_bytes)
{
    struct gori_web_access access = {
        .session = session,
        .body_bytes = body_bytes,
        .wall_seconds = server->clock.seconds,
        .status = (uint16_t)status,
        .version_minor = 1,
    };
    if (request->head != NULL) {
        access.method = gi_http1_slice(request->data, request->head->method_text);
        access.target = gi_http1_slice(request->data, request->head->target);
        access.version_minor = request->head->version_minor;
    }
    if (request->head != NULL && request->refusal == 0) {
        access.referer = header_value(request, GI_HTTP1_FIELD_REFERER);
        access.user_agent = header_value(request, GI_HTTP1_FIELD_USER_AGENT);
    }
    server->config.on_access(server->config.user, &access);
}

static void count(struct gori_web_server *server, struct gori_session *session,
                  const struct gi_web_request *request, const struct gi_web_response *response)
{
    uint64_t body_bytes = has_no_body(request, response->status) ? 0 : response->size;
    server->stats.requests++;
    server->stats.status_class[response->status / 100]++;
    server->stats.body_bytes += body_bytes;
    if (GI_UNLIKELY(server->config.on_access != NULL)) {
        tell(server, session, request, response->status, body_bytes);
    }
}

int gi_web_respond(struct gori_web_server *server, struct gori_session *session,
                   const struct gi_web_request *request, struct gi_web_response *response)
{
    int result = is_common(request, response) ? send_ready(server, session, response->file)
                                              : send_other(server, session, request, response);
    if (result >= 0) {
        count(server, session, request, response);
    }
    return result;
}
