#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""http1_corpus: writes the hand-made part of tests/fuzz/corpus/http1, one file a case.

    tests/fuzz/http1_corpus.py

The first letter of a file chooses the part of the target (see http1_fuzz.c).  What fuzzing finds is
committed beside these files under the name that the fuzzer gave.
"""

import pathlib

FOLDER = pathlib.Path(__file__).parent / "corpus" / "http1"

LINE = b"GET / HTTP/1.1\r\n"
HOST = b"Host: a\r\n"
DATE = b"Sun, 06 Nov 1994 08:49:37 GMT"


def request(headers=b"", line=LINE, host=HOST, body=b""):
    return b"R" + line + host + headers + b"\r\n" + body


def post(headers, body=b""):
    return request(headers, line=b"POST /form HTTP/1.1\r\n", body=body)


CASES = {
    # Request lines.
    "get": request(),
    "get_query": request(line=b"GET /a/b?c=d HTTP/1.1\r\n"),
    "get_absolute": request(line=b"GET http://b:80/c?d HTTP/1.1\r\n"),
    "options_asterisk": request(line=b"OPTIONS * HTTP/1.1\r\n"),
    "connect": request(line=b"CONNECT [::1]:443 HTTP/1.1\r\n"),
    "version_1_0": request(line=b"GET / HTTP/1.0\r\n", host=b"Connection: keep-alive\r\n"),
    "version_1_32": request(line=b"GET / HTTP/1.32\r\n"),
    "version_short": request(line=b"GET / HTTP/1\r\n"),
    "version_space": request(line=b"GET / HTTP/ 1.1\r\n"),
    "version_lower": request(line=b"GET / http/1.1\r\n"),
    "version_huge": request(line=b"GET / HTTP/4294967297.1\r\n"),
    "version_2": b"RPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "version_none": b"RGET /\r\n\r\n",
    "method_quote": request(line=b"G=\" / HTTP/1.1\r\n"),
    "method_long": request(line=b"A" * 40 + b" / HTTP/1.1\r\n"),
    "target_fragment": request(line=b"GET /a#b HTTP/1.1\r\n"),
    "target_utf8": request(line=b"GET /\xc3\xa9 HTTP/1.1\r\n"),
    "target_space": request(line=b"GET /a b HTTP/1.1\r\n"),
    "target_long": request(line=b"GET /" + b"a" * 600 + b" HTTP/1.1\r\n"),
    "blank_lines": b"R\r\n\r\n" + request()[1:],
    "blank_lines_many": b"R" + b"\r\n" * 6 + request()[1:],
    "tls_hello": b"R\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "pipelined": request() + request()[1:] + b"GET /x HTT",
    "bare_line_feeds": b"RGET / HTTP/1.1\nHost: a\n\n",
    # Headers.
    "browser": request(b"User-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n"
                       b"Accept: text/html,*/*;q=0.8\r\n"
                       b"Accept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate, br\r\n"
                       b"Connection: keep-alive\r\nCookie: a=b; c=d\r\n"),
    "host_missing": request(host=b""),
    "host_twice": request(HOST),
    "host_space": request(host=b"Host: a b\r\n"),
    "host_literal": request(host=b"Host: [::1]:8080\r\n"),
    "name_empty": request(b": x\r\n"),
    "colon_alone": request(b":\r\nA: b\r\n"),
    "colon_missing": request(b"Content-Length 10\r\n"),
    "colon_spaced": request(b"Content-Length : 34\r\n"),
    "value_carriage_return": request(b"A: b\rc\r\n"),
    "value_line_feed": request(b"A: b\nc\r\n"),
    "value_nul": request(b"A: b\0c\r\n"),
    "value_folded": request(b"A: b\r\n c\r\n"),
    "value_latin": request(b"A: \xe9\t\xff \r\n"),
    "headers_many": request(b"A: b\r\n" * 70),
    "head_large": request(b"A: " + b"b" * 5000 + b"\r\n"),
    "upgrade": request(b"Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"),
    "connection_two": request(b"Connection: Upgrade\r\nConnection: close\r\n"),
    "expect": post(b"Content-Length: 10\r\nExpect: 100-continue\r\n"),
    "expect_other": post(b"Expect: coffee\r\n"),
    "conditions": request(b"If-None-Match: W/\"a\", \"x\"\r\nIf-Modified-Since: " + DATE +
                          b"\r\nIf-Match: *\r\nRange: bytes=0-9\r\nIf-Range: \"x\"\r\n"),
    "range_if_date": request(b"Range: bytes=-5\r\nIf-Range: " + DATE + b"\r\n"),
    # Framing.
    "length": post(b"Content-Length: 5\r\n", b"helloGET / HTTP/1.1\r\n"),
    "length_empty": post(b"Content-Length:\r\n"),
    "length_twice": post(b"Content-Length: 0\r\nContent-Length: 38\r\n"),
    "length_list": post(b"Content-Length: 5,5\r\n"),
    "length_negative": post(b"Content-Length: -48\r\n"),
    "length_plus": post(b"Content-Length: +5\r\n"),
    "length_hex": post(b"Content-Length: 0x5\r\n"),
    "length_digits": post(b"Content-Length: 12345678901234567890\r\n"),
    "length_folded": post(b"Content-Length: \r\n 6\r\n"),
    "length_and_chunked": post(b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
                               b"0\r\n\r\n"),
    "chunked_tab_and_length": post(b"Transfer-Encoding: chunked\t\r\nContent-Length: 60\r\n"),
    "chunked": post(b"Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n0\r\nA: b\r\n\r\nGET"),
    "chunked_twice": post(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
    "chunked_identity": post(b"Transfer-Encoding: chunked, identity\r\n"),
    "identity_chunked": post(b"Transfer-Encoding: identity, chunked\r\n"),
    "gzip_chunked": post(b"Transfer-Encoding: gzip, chunked\r\n"),
    # Chunks.
    "chunks": b"C5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n",
    "chunk_extension": b"C5 ; a=b;c=\"d\\\"e\";f\r\nhello\r\n0\r\n\r\n",
    "chunk_trailer": b"C0\r\nA: b\r\nC: d\r\n\r\n",
    "chunk_0x": b"C0x5\r\nhello\r\n",
    "chunk_plus": b"C+5\r\nhello\r\n",
    "chunk_minus": b"C-1\r\nhello\r\n",
    "chunk_underscore": b"C0_2e\r\n",
    "chunk_space_before": b"C 5\r\nhello\r\n",
    "chunk_space_behind": b"C5 \r\nhello\r\n",
    "chunk_letter": b"C1Z\r\n",
    "chunk_empty": b"C\r\n",
    "chunk_digits_17": b"C00000000000000005\r\n",
    "chunk_digits_16": b"Cffffffffffffffff\r\n",
    "chunk_carriage_returns": b"C2\r\r;a\r\n",
    "chunk_end_wrong": b"C5\r\nhelloX\r\n",
    "chunk_quote_open": b"C5;a=\"b\r\nhello\r\n",
    "trailer_folded": b"C0\r\nA: b\r\n c\r\n\r\n",
    # Paths, ranges, tags, dates, headers out.
    "path": b"P/a/b%20c/./d//e/",
    "path_parent": b"P/%2e%2e/%2e%2e/etc/passwd",
    "path_slash": b"P/a/%2e%2e%2f",
    "path_twice": b"P/.%252e/.%252e/etc/passwd",
    "path_backslash": b"P/%2e%2e%5c",
    "path_nul": b"P/secret.db%00.html",
    "path_escape_cut": b"P/a%2",
    "range_first": b"Gbytes=0-9",
    "range_beyond": b"Gbytes=5-99999999999999999999999",
    "range_suffix": b"Gbytes=-5",
    "range_several": b"Gbytes=0-1,3-4,6-",
    "range_colon": b"Gbytes: 0-22",
    "tags": b"E\"a\", W/\"x\" ,\"b\"",
    "tags_any": b"E*",
    "tags_open": b"E\"a,\"x",
    "date_preferred": b"D" + DATE,
    "date_rfc850": b"DSunday, 06-Nov-94 08:49:37 GMT",
    "date_asctime": b"DSun Nov  6 08:49:37 1994",
    "date_no_day": b"DSun, 31 Feb 1994 08:49:37 GMT",
    "out": b"Wvalue",
    "out_split": b"Wvalue\r\nSet-Cookie: a=b",
}


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, content in CASES.items():
        (FOLDER / name).write_bytes(content)
    print(f"{len(CASES)} inputs in {FOLDER}")


if __name__ == "__main__":
    main()
