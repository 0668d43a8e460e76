/* SPDX-License-Identifier: MIT */
/*
 * Two tables: what a reason means to the peer and to a log, and the phrases of the status codes.
 *
 * Thread: any.
 * Reading: RFC 9110 15, the IANA registry of status codes.
 */
#include "proto/http1.h"

static const struct {
    int status;
    const char *text;
} reasons[GI_HTTP1_REASON_COUNT] = {[GI_HTTP1_REASON_NONE] = {500, "not a reason"},
#define REASON(name, status, text) [GI_HTTP1_REASON_##name] = {status, text},
                                    GI_HTTP1_REASONS(REASON)
#undef REASON
};

static int reason_index(int reason)
{
    return reason < 0 && reason > -GI_HTTP1_REASON_COUNT ? -reason : GI_HTTP1_REASON_NONE;
}

int gi_http1_status(int reason)
{
    return reasons[reason_index(reason)].status;
}

const char *gi_http1_reason_text(int reason)
{
    return reasons[reason_index(reason)].text;
}

static const char *const phrases[] = {
    [100] = "Continue",
    [101] = "Switching Protocols",
    [102] = "Processing",
    [103] = "Early Hints",
    [200] = "OK",
    [201] = "Created",
    [202] = "Accepted",
    [203] = "Non-Authoritative Information",
    [204] = "No Content",
    [205] = "Reset Content",
    [206] = "Partial Content",
    [207] = "Multi-Status",
    [208] = "Already Reported",
    [226] = "IM Used",
    [300] = "Multiple Choices",
    [301] = "Moved Permanently",
    [302] = "Found",
    [303] = "See Other",
    [304] = "Not Modified",
    [305] = "Use Proxy",
    [307] = "Temporary Redirect",
    [308] = "Permanent Redirect",
    [400] = "Bad Request",
    [401] = "Unauthorized",
    [402] = "Payment Required",
    [403] = "Forbidden",
    [404] = "Not Found",
    [405] = "Method Not Allowed",
    [406] = "Not Acceptable",
    [407] = "Proxy Authentication Required",
    [408] = "Request Timeout",
    [409] = "Conflict",
    [410] = "Gone",
    [411] = "Length Required",
    [412] = "Precondition Failed",
    [413] = "Content Too Large",
    [414] = "URI Too Long",
    [415] = "Unsupported Media Type",
    [416] = "Range Not Satisfiable",
    [417] = "Expectation Failed",
    [421] = "Misdirected Request",
    [422] = "Unprocessable Content",
    [423] = "Locked",
    [424] = "Failed Dependency",
    [425] = "Too Early",
    [426] = "Upgrade Required",
    [428] = "Precondition Required",
    [429] = "Too Many Requests",
    [431] = "Request Header Fields Too Large",
    [451] = "Unavailable For Legal Reasons",
    [500] = "Internal Server Error",
    [501] = "Not Implemented",
    [502] = "Bad Gateway",
    [503] = "Service Unavailable",
    [504] = "Gateway Timeout",
    [505] = "HTTP Version Not Supported",
    [506] = "Variant Also Negotiates",
    [507] = "Insufficient Storage",
    [508] = "Loop Detected",
    [511] = "Network Authentication Required",
};

const char *gi_http1_status_text(int status)
{
    if (status < 0 || (size_t)status >= sizeof(phrases) / sizeof(phrases[0]) ||
        phrases[status] == NULL) {
        return "";
    }
    return phrases[status];
}
