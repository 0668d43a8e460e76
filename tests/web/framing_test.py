# SPDX-License-Identifier: MIT
"""Goal: what a request is, where it ends and what answers it, is the same for every reader.
Method: raw bytes on real connections, whole and cut at every byte; after each answer the connection
must either end without another byte or serve the next request.  H-numbers are those of the notes
on what went wrong elsewhere."""

import socket
import unittest

from harness import Case, Client, request

HEAD = b"GET / HTTP/1.1\r\nHost: a\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def with_headers(*lines):
    return HEAD + b"".join(line + b"\r\n" for line in lines) + b"\r\n"


# name: (bytes, statuses that are right); the connection must close after all of them.
REFUSED = {
    "H01 empty length": (with_headers(b"Content-Length:"), (400,)),
    "H01 empty length before one": (with_headers(b"Content-Length:", b"Content-Length: 5"), (400,)),
    "H01 empty length after one": (with_headers(b"Content-Length: 5", b"Content-Length:"), (400,)),
    "H02 two lengths": (
        with_headers(b"Content-Length: 0", b"Content-Length: 38") + request(), (400,)),
    "H03 length and chunked": (
        with_headers(b"Content-Length: 0", b"Transfer-Encoding: chunked") + b"1\r\nx\r\n0\r\n\r\n",
        (400,)),
    "H04 chunked with a tab": (
        with_headers(b"Transfer-Encoding: chunked\t", b"Content-Length: 60"), (400,)),
    "H06 chunked twice": (
        with_headers(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"), (400,)),
    "H06 chunked first": (with_headers(b"Transfer-Encoding: chunked, identity"), (400, 501)),
    "H06 chunked last": (with_headers(b"Transfer-Encoding: identity, chunked"), (400, 501)),
    "H06 unknown coding": (with_headers(b"Transfer-Encoding: zip"), (501,)),
    "H07 folded": (with_headers(b"Transfer-Encoding:\r\n chunked"), (400,)),
    "H07 folded length": (with_headers(b"Content-Length:\r\n 6"), (400,)),
    "H07 value on a line of its own": (with_headers(b"Content-Length:\r\n6"), (400,)),
    "H12 negative length": (with_headers(b"Content-Length: -48"), (400,)),
    "H12 signed length": (with_headers(b"Content-Length: +5"), (400,)),
    "H12 hexadecimal length": (with_headers(b"Content-Length: 0x5"), (400,)),
    "H12 list of lengths": (with_headers(b"Content-Length: 5,5"), (400,)),
    "H12 letters": (with_headers(b"Content-Length: 1Z"), (400,)),
    "H12 twenty digits": (with_headers(b"Content-Length: 99999999999999999999"), (400, 413)),
    "H13 no name": (with_headers(b": x", b"X: y"), (400,)),
    "H13 colon alone": (with_headers(b":", b"X: y"), (400,)),
    "H14 no colon": (with_headers(b"Content-Length 10"), (400,)),
    "H14 space before the colon": (with_headers(b"Content-Length : 34"), (400,)),
    "H15 bare CR": (with_headers(b"X: a\rb"), (400,)),
    "H15 bare LF": (HEAD + b"X: a\nY: b\r\n\r\n", (400,)),
    "H15 NUL": (with_headers(b"X: a\0b"), (400,)),
    "H16 minor of two digits": (b"GET / HTTP/1.32\r\nHost: a\r\n\r\n", (400, 505)),
    "H16 no minor": (b"GET / HTTP/1\r\nHost: a\r\n\r\n", (400, 505)),
    "H16 space in the version": (b"GET / HTTP/ 1.1\r\nHost: a\r\n\r\n", (400,)),
    "H16 lower case": (b"GET / http/1.1\r\nHost: a\r\n\r\n", (400,)),
    "H16 version 2": (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", (505,)),
    "H16 overflow": (b"GET / HTTP/4294967297.1\r\nHost: a\r\n\r\n", (400, 505)),
    "H16 method that is none": (b'G=" / HTTP/1.1\r\nHost: a\r\n\r\n', (400,)),
    "H18 no Host": (b"GET / HTTP/1.1\r\n\r\n", (400,)),
    "H18 two Hosts": (with_headers(b"Host: b"), (400,)),
    "H18 Host with a space": (b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", (400,)),
    "HTTP/0.9": (b"GET /\r\n", (400,)),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", (400,)),
    "unknown expectation": (with_headers(b"Expect: the-inquisition"), (417,)),
    "no path": (b"GET x HTTP/1.1\r\nHost: a\r\n\r\n", (400,)),
    "body too large": (with_headers(b"Content-Length: 100000000"), (413,)),
}
for _size in (b"0x5", b"+5", b"-1", b"0_2e", b" 5", b"5 ", b"1Z", b"", b"11111111111111111",
              b"2\r\r;a"):
    REFUSED[f"H08 chunk of {_size}"] = (CHUNKED + _size + b"\r\nhello\r\n0\r\n\r\n", (400,))

# name: (bytes, status); the connection goes on.
ANSWERED = {
    "plain": (request(), 200),
    "absolute form": (b"GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", 200),
    "blank lines before": (b"\r\n\r\n" + request(), 200),
    "body of a length": (with_headers(b"Content-Length: 5") + b"hello", 200),
    "body in chunks": (CHUNKED + b"3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: x\r\n\r\n", 200),
    "H16 HTTP/1.9 is read as 1.1": (b"GET / HTTP/1.9\r\nHost: a\r\n\r\n", 200),
    "missing": (request("/missing"), 404),
    "POST": (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", 405),
    "TRACE": (request(method="TRACE"), 405),
    "OPTIONS of the server": (b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 405),
    "CONNECT": (b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", 405),
    "unknown method": (request(method="BREW"), 501),
    "H26 8 KiB cookie": (with_headers(b"Cookie: " + b"c" * 8192), 200),
    "upgrade that is not understood": (
        with_headers(b"Connection: Upgrade, keep-alive", b"Upgrade: websocket"), 200),
}

CUT = ("plain", "body of a length", "body in chunks", "missing", "blank lines before")
CUT_REFUSED = ("H03 length and chunked", "H07 folded", "H15 bare LF", "H18 two Hosts",
               "H08 chunk of b'0x5'", "unknown expectation")


class Framing(Case):

    def test_refused(self):
        for name, (data, statuses) in REFUSED.items():
            with self.subTest(name):
                response, closed = self.ask(data)
                self.assertIn(response.status, statuses)
                self.assertTrue(closed)

    def test_answered(self):
        for name, (data, status) in ANSWERED.items():
            with self.subTest(name):
                response, closed = self.ask(data)
                self.assertEqual((response.status, closed), (status, False))

    def test_allow_comes_with_405(self):
        self.assertEqual(self.ask(request(method="PUT"))[0]["Allow"], "GET, HEAD")

    def ask_in_two(self, data, cut):
        with Client(self.server.port) as client:
            client.send(data[:cut])
            client.send(data[cut:])
            return client.response()

    def test_cut_at_every_byte(self):
        wanted = [(name, ANSWERED[name][0], (ANSWERED[name][1],)) for name in CUT]
        wanted += [(name, *REFUSED[name]) for name in CUT_REFUSED]
        for name, data, statuses in wanted:
            for cut in range(1, len(data)):
                with self.subTest(name, cut=cut):
                    self.assertIn(self.ask_in_two(data, cut).status, statuses)

    def test_byte_by_byte(self):
        for name in CUT:
            data, status = ANSWERED[name]
            with self.subTest(name), Client(self.server.port) as client:
                for byte in data:
                    client.send(bytes([byte]))
                self.assertEqual(client.response().status, status)
                self.assertTrue(client.is_open())


class Pipelining(Case):

    @classmethod
    def build(cls):
        super().build()
        for number in range(16):
            cls.write(f"{number}.txt", f"file {number}".encode() * (number + 1))
        cls.write("large.bin", bytes(range(256)) * 1024)

    def test_sixteen_in_one_piece(self):
        client = self.client()
        client.send(b"".join(request(f"/{number}.txt") for number in range(16)))
        for number in range(16):
            self.assertEqual(client.response().body, f"file {number}".encode() * (number + 1))

    def test_h19_three_and_a_half(self):
        client = self.client()
        data = b"".join(request(f"/{number}.txt") for number in range(4))
        half = len(data) - 10
        client.send(data[:half])
        for number in range(3):
            self.assertEqual(client.response().body, f"file {number}".encode() * (number + 1))
        client.send(data[half:])
        self.assertEqual(client.response().body, b"file 3" * 4)

    def test_memory_and_disk_mixed(self):
        client = self.client()
        paths = ["/1.txt", "/large.bin", "/missing", "/2.txt", "/large.bin", "/3.txt"] * 4
        client.send(b"".join(request(path) for path in paths))
        for path in paths:
            response = client.response()
            self.assertEqual(response.status, 404 if path == "/missing" else 200)
            if path == "/large.bin":
                self.assertEqual(response.body, bytes(range(256)) * 1024)

    def test_more_than_anybody_reads(self):
        """The requests ask for 100 MiB, before the first byte of it is read."""
        client = self.client()
        client.socket.setblocking(False)
        data = request("/large.bin") * 400
        sent = 0
        try:
            while sent < len(data):
                sent += client.socket.send(data[sent:sent + 65536])
        except BlockingIOError:
            pass
        client.socket.settimeout(20)
        with Client(self.server.port) as other:
            self.assertTrue(other.is_open())
        client.socket.sendall(data[sent:])
        for _ in range(400):
            self.assertEqual(len(client.response().body), 256 * 1024)

    def test_a_bad_one_ends_it(self):
        client = self.client()
        client.send(request("/1.txt") + b"GET / HTTP/1.1\r\n\r\n" + request("/2.txt"))
        self.assertEqual(client.response().status, 200)
        self.assertEqual(client.response().status, 400)
        self.assertEqual(client.rest(), b"")


class KeepAlive(Case):

    def test_a_thousand_requests(self):
        client = self.client()
        for _ in range(1000):
            self.assertEqual(client.get().status, 200)

    def test_connection_close(self):
        for value in ("close", "Close", "foo, close"):
            response, closed = self.ask(request(Connection=value))
            self.assertEqual((response.status, closed), (200, True))

    def test_http_1_0(self):
        with self.client() as client:
            response = client.get(version="1.0")
            self.assertEqual(response["Connection"], "close")
            self.assertEqual(client.rest(), b"")
        with self.client() as client:
            self.assertEqual(client.get(version="1.0", Connection="keep-alive")["Connection"],
                             "keep-alive")
            self.assertTrue(client.is_open())

    def test_http_1_0_needs_no_host(self):
        self.assertEqual(self.ask(b"GET / HTTP/1.0\r\n\r\n")[0].status, 200)

    def test_half_close(self):
        client = self.client()
        client.send(request() * 3)
        client.socket.shutdown(socket.SHUT_WR)
        for _ in range(3):
            self.assertEqual(client.response().status, 200)
        self.assertEqual(client.rest(), b"")

    def test_half_close_in_a_request(self):
        client = self.client()
        client.send(request()[:-3])
        client.socket.shutdown(socket.SHUT_WR)
        self.assertEqual(client.rest(), b"")

    def test_h24_head_has_no_body(self):
        client = self.client()
        size = client.get()["Content-Length"]
        for path, status in (("/", 200), ("/missing", 404)):
            response = client.get(path, method="HEAD")
            self.assertEqual((response.status, response.body), (status, b""))
            self.assertIsNotNone(response["Content-Length"])
        self.assertEqual(client.get(method="HEAD")["Content-Length"], size)
        self.assertTrue(client.is_open())


class Bodies(Case):

    def test_h22_expectation_gets_the_final_status(self):
        client = self.client()
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n"
                    b"Expect: 100-continue\r\n\r\n")
        response = client.response()
        self.assertEqual((response.status, response["Connection"]), (405, "close"))
        self.assertEqual(client.rest(), b"")

    def test_expectation_without_a_body(self):
        response, closed = self.ask(request(Expect="100-continue"))
        self.assertEqual((response.status, closed), (200, False))

    def test_large_body_for_a_method_that_is_refused(self):
        client = self.client()
        client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n\r\n")
        response = client.response()
        self.assertEqual((response.status, response["Connection"]), (405, "close"))

    def test_chunks_beyond_the_limit(self):
        client = self.client()
        client.send(CHUNKED + (b"400\r\n" + b"x" * 1024 + b"\r\n") * 64)
        response = client.response()
        self.assertEqual((response.status, response["Connection"]), (413, "close"))
        client.socket.shutdown(socket.SHUT_WR)
        self.assertEqual(client.rest(), b"")

    def test_body_right_at_the_limit(self):
        size = 32768
        data = with_headers(b"Content-Length: %d" % size) + b"x" * size
        response, closed = self.ask(data)
        self.assertEqual((response.status, closed), (200, False))
        response, closed = self.ask(with_headers(b"Content-Length: %d" % (size + 1)))
        self.assertEqual((response.status, closed), (413, True))


class Limits(Case):

    def test_h26_long_targets(self):
        self.assertEqual(self.ask(request("/?" + "q" * 8000))[0].status, 200)
        self.assertEqual(self.ask(request("/" + "p" * 8000))[0].status, 404)
        response, closed = self.ask(request("/" + "p" * 65536))
        self.assertEqual((response.status, closed), (414, True))

    def test_h26_ten_thousand_headers(self):
        response, closed = self.ask(with_headers(*(b"X-%d: y" % n for n in range(10000))))
        self.assertEqual((response.status, closed), (431, True))

    def test_huge_head(self):
        response, closed = self.ask(with_headers(*(b"X-%d: " % n + b"y" * 4000
                                                   for n in range(20))))
        self.assertEqual((response.status, closed), (431, True))

    def test_huge_header(self):
        response, closed = self.ask(with_headers(b"X: " + b"y" * 100000))
        self.assertEqual((response.status, closed), (431, True))

    def test_many_blank_lines(self):
        response, closed = self.ask(b"\r\n" * 1000)
        self.assertEqual((response.status, closed), (400, True))


if __name__ == "__main__":
    unittest.main(argv=["framing_test"])
