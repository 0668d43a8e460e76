/* SPDX-License-Identifier: MIT */
/*
 * Answers from the files of the root: which file a request names, and what its conditions and its
 * range make of it.  Nothing is sent here.
 *
 *  1. GET and HEAD; other methods of the registry are answered 405, unknown ones 501.
 *  2. The name is decoded once and must not climb; what it names is found beneath the root only.
 *     "/" at the end means the file index.html there; a folder without it is redirected to.
 *  3. Conditions come before the range, in the order of RFC 9110 13.2.2; a range counts for GET
 *     only, one range is sent as 206, several as the whole.
 *  4. A site may say itself what a missing file looks like: /404.html, sent with 404.
 *
 * Thread: the loop's.  Reading: RFC 9110 9, 13, 14, 15.
 */
#include <gori/error.h>

#include "base/assert.h"
#include "proto/http_condition.h"
#include "proto/http_path.h"
#include "web/server.h"

static void answer(struct gi_web_response *response, int status)
{
    *response = (struct gi_web_response){.status = status};
}

static void answer_whole(struct gi_web_response *response, int status, struct gi_web_file *file)
{
    *response = (struct gi_web_response){.status = status, .file = file, .size = file->info.size};
}

static int find(struct gori_web_server *server, struct gori_slice name,
                struct gi_web_file **ret_file)
{
    return gi_web_cache_find(&server->cache, name, gori_loop_now(server->loop),
                             server->clock.seconds, ret_file);
}

static void answer_missing(struct gori_web_server *server, struct gi_web_response *response)
{
    static const uint8_t name[] = "/404.html";
    struct gi_web_file *file;
    if (find(server, (struct gori_slice){name, sizeof(name) - 1}, &file) == 0 &&
        gi_web_file_is_small(file)) {
        answer_whole(response, 404, file);
    } else {
        answer(response, 404);
    }
}

static void answer_error(struct gori_web_server *server, int error,
                         struct gi_web_response *response)
{
    if (error == GORI_EACCESS || error == GORI_EPERM) {
        answer(response, 403);
    } else if (gori_error_category(error) == GORI_CATEGORY_REFUSED) {
        answer_missing(server, response);
    } else if (gori_error_category(error) == GORI_CATEGORY_RESOURCE ||
               gori_error_category(error) == GORI_CATEGORY_AGAIN) {
        answer(response, 503);
    } else {
        answer(response, 500);
    }
}

static void answer_file(struct gori_web_server *server, const struct gi_web_request *request,
                        struct gi_web_file *file, struct gi_web_response *response)
{
    const struct gi_http_validators validators = {
        .etag = gi_web_file_etag(file),
        .modified_seconds = file->info.modified_s,
        .now_seconds = server->clock.seconds,
        .has_modified = file->has_modified,
    };
    answer_whole(response, 200, file);
    switch (gi_http_condition_evaluate(request->head, request->data, &validators)) {
    case GI_HTTP_CONDITION_NOT_MODIFIED:
        response->status = 304;
        return;
    case GI_HTTP_CONDITION_FAILED:
        answer(response, 412);
        return;
    case GI_HTTP_CONDITION_PROCEED:
        break;
    }
    struct gi_http_range range;
    switch (gi_http_condition_range(request->head, request->data, &validators, file->info.size,
                                    &range)) {
    case GI_HTTP_RANGE_SINGLE:
        GI_ASSERT(range.first <= range.last && range.last < file->info.size);
        response->status = 206;
        response->first = range.first;
        response->size = range.last - range.first + 1;
        return;
    case GI_HTTP_RANGE_UNSATISFIABLE:
        response->status = 416;
        return;
    case GI_HTTP_RANGE_NONE:
        break;
    }
}

/* The status for a method that no file answers; 0 for those that do. */
static int refuse_method(const struct gi_http1_head *head)
{
    switch (head->method) {
    case GI_HTTP1_METHOD_GET:
    case GI_HTTP1_METHOD_HEAD:
        return 0;
    case GI_HTTP1_METHOD_OTHER:
        return 501;
    default:
        return 405;
    }
}

void gi_web_static_files(struct gori_web_server *server, const struct gi_web_request *request,
                         struct gi_web_response *ret_response)
{
    int refusal = refuse_method(request->head);
    if (refusal != 0) {
        answer(ret_response, refusal);
        return;
    }
    int size = gi_http_path_decode(gi_http1_slice(request->data, request->head->path),
                                   server->scratch, server->name_bytes);
    if (size == GI_HTTP1_E_PATH_SLASH) {
        answer_missing(server, ret_response);
        return;
    }
    if (size < 0) {
        answer(ret_response, gi_http1_status(size));
        return;
    }
    const struct gori_slice name = {server->scratch, (size_t)size};
    struct gi_web_file *file;
    int result = find(server, name, &file);
    if (result == 0) {
        answer_file(server, request, file, ret_response);
    } else if (result == GI_WEB_IS_FOLDER) {
        answer(ret_response, 301);
        ret_response->location = name;
    } else {
        answer_error(server, result, ret_response);
    }
}
