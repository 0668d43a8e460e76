# SPDX-License-Identifier: MIT
"""Goal: the load generators count every answer that is not exactly right.  Method: tiny servers in
this process that are right, or wrong in one way each."""

import json
import os
import re
import select
import socket
import subprocess
import threading
import unittest
from pathlib import Path

BUILD = Path(os.environ.get("BENCH_BUILD", "build/dev/bench"))
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
GOOD = HEAD + b"0123456789"


class TinyServer:
    """Answers each request, or each piece of an echo, by what `answer` makes of it; None closes."""

    def __init__(self, answer, http=True):
        self.answer, self.http = answer, http
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.accepted = 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        rest = b""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection:
            try:
                while received := connection.recv(65536):
                    requests = [received]
                    if self.http:
                        *requests, rest = (rest + received).split(b"\r\n\r\n")
                    for request in requests:
                        answer = self.answer(request)
                        if answer is None:
                            return
                        for piece in answer if isinstance(answer, list) else [answer]:
                            connection.sendall(piece)
            except OSError:
                return

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


def load(protocol, address, *options):
    done = subprocess.run([BUILD / "bench_load", protocol, address, "--seconds", "0.3",
                           "--timeout", "60", *options],
                          capture_output=True, text=True, timeout=90, check=True)
    return json.loads(done.stdout)


def http(answer, *options):
    with TinyServer(answer) as server:
        return load("http", server.address, *options)


class Http(unittest.TestCase):
    def wrong(self, answer, kind, *options):
        report = http(answer, *options)
        self.assertGreater(report["errors"], 0)
        self.assertIn(kind, report["error_kinds"])
        return report

    def test_right(self):
        report = http(lambda _: GOOD, "--connections", "3", "--expect-size", "10")
        self.assertEqual(report["errors"], 0)
        self.assertGreater(report["requests"], 0)
        self.assertLessEqual(report["p50_ns"], report["p99_ns"])
        self.assertLessEqual(report["p999_ns"], report["max_ns"])

    def test_right_in_pieces(self):
        pieces = [GOOD[:5], GOOD[5:40], GOOD[40:]]
        self.assertEqual(http(lambda _: pieces)["errors"], 0)

    def test_pipelined(self):
        report = http(lambda _: GOOD, "--depth", "16", "--count", "160",
                      "--seconds", "60", "--timeout", "60")
        self.assertEqual((report["errors"], report["requests"]), (0, 160))

    def test_empty_body(self):
        empty = b"HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n"
        self.assertEqual(http(lambda _: empty)["errors"], 0)

    def test_other_length(self):
        self.wrong(lambda _: GOOD, "length", "--expect-size", "11")

    def test_body_too_short(self):
        self.wrong(lambda _: HEAD + b"012345678", "timeout", "--timeout", "0.15")

    def test_body_too_long(self):
        self.wrong(lambda _: GOOD + b"!", "framing")

    def test_early_close(self):
        self.wrong(lambda _: None, "closed")

    def test_close_within_the_body(self):
        calls = iter([HEAD + b"0123"])
        self.wrong(lambda _: next(calls, None), "closed", "--depth", "2")

    def test_other_status(self):
        self.wrong(lambda _: GOOD.replace(b"200 OK", b"404 No"), "status")

    def test_no_length(self):
        self.wrong(lambda _: b"HTTP/1.1 200 OK\r\nX: y\r\n\r\n0123456789", "framing")

    def test_two_lengths(self):
        doubled = GOOD.replace(b"\r\n\r\n", b"\r\nContent-Length: 10\r\n\r\n")
        self.wrong(lambda _: doubled, "framing")

    def test_chunked(self):
        self.wrong(lambda _: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                   "framing")

    def test_head_without_end(self):
        self.wrong(lambda _: b"HTTP/1.1 200 OK\r\nX: " + b"y" * 4096, "framing")

    def test_unasked_bytes(self):
        self.wrong(lambda _: GOOD + GOOD, "framing")

    def test_failed_connections_are_opened_again(self):
        with TinyServer(lambda _: None) as server:
            report = load("http", server.address, "--connections", "2")
            self.assertGreater(server.accepted, 2)
            self.assertEqual(report["requests"], 0)

    def test_rate_is_kept(self):
        report = http(lambda _: GOOD, "--rate", "200", "--connections", "4", "--seconds", "0.5")
        self.assertEqual(report["errors"], 0)
        self.assertGreater(report["requests"], 0)
        self.assertLessEqual(report["requests"], 101)

    def test_rate_does_not_omit_what_waited(self):
        """A server that answers once and then never: everything that fell due since is counted."""
        calls = iter([GOOD])
        report = http(lambda _: next(calls, b""), "--rate", "1000", "--seconds", "0.4",
                      "--timeout", "1")
        self.assertIn("timeout", report["error_kinds"])
        self.assertGreater(report["unsent"], 300)
        self.assertGreater(report["p50_ns"], 100_000_000)


class Echo(unittest.TestCase):
    def run_echo(self, answer, *options):
        with TinyServer(answer, http=False) as server:
            return load("echo", server.address, *options)

    def test_right(self):
        report = self.run_echo(lambda data: data, "--connections", "5", "--size", "64")
        self.assertEqual(report["errors"], 0)
        self.assertGreater(report["requests"], 0)

    def test_large(self):
        report = self.run_echo(lambda data: data, "--size", "1000000")
        self.assertEqual(report["errors"], 0)

    def test_in_step(self):
        report = self.run_echo(lambda data: data, "--connections", "5", "--pace", "step",
                               "--count", "50", "--seconds", "60", "--timeout", "60")
        self.assertEqual((report["errors"], report["requests"] % 5), (0, 0))

    def test_slices_add_up(self):
        with TinyServer(lambda data: data, http=False) as server:
            done = subprocess.run([BUILD / "bench_load", "echo", server.address, "--slices",
                                   "stdin", "--seconds", "0.05"], input="go\ngo\ngo\n",
                                  capture_output=True, text=True, timeout=60, check=True)
        ready, *reports = done.stdout.splitlines()
        self.assertEqual(ready, "ready")
        counts = [json.loads(report)["requests"] for report in reports]
        self.assertEqual(len(counts), 3)
        self.assertEqual(counts, sorted(counts))

    def test_errors_of_the_warm_up_count(self):
        report = self.run_echo(lambda data: None, "--warmup", "0.1")
        self.assertGreater(report["errors"], 0)

    def test_changed_byte(self):
        report = self.run_echo(lambda data: data[:-1] + b"\x00")
        self.assertIn("content", report["error_kinds"])

    def test_lost_byte(self):
        report = self.run_echo(lambda data: data[:-1], "--timeout", "0.15")
        self.assertIn("timeout", report["error_kinds"])

    def test_doubled_byte(self):
        self.assertGreater(self.run_echo(lambda data: data + data[:1])["errors"], 0)

    def test_watches_run_time(self):
        report = self.run_echo(lambda data: data, "--watch", str(os.getpid()))
        self.assertGreater(report["server_run_ns"], 0)


class Usage(unittest.TestCase):
    def test_wrong_usage(self):
        for arguments in ([], ["echo"], ["echo", "nonsense"], ["ftp", "127.0.0.1:1"],
                          ["echo", "127.0.0.1:1", "--size"], ["echo", "127.0.0.1:1", "--size", "x"],
                          ["echo", "127.0.0.1:1", "--watch", "1,x"], ["echo", "127.0.0.1:99999"]):
            done = subprocess.run([BUILD / "bench_load", *arguments], check=False,
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_nobody_listens(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        done = subprocess.run([BUILD / "bench_load", "echo", f"127.0.0.1:{port}"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("refused", done.stderr)


class Idle(unittest.TestCase):
    def test_holds_until_told(self):
        with TinyServer(lambda data: data, http=False) as server:
            holder = subprocess.Popen([BUILD / "bench_idle", server.address, "40"], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.assertTrue(select.select([holder.stdout], [], [], 20)[0])
            self.assertTrue(re.match("holding 40", holder.stdout.readline()))
            self.assertIsNone(holder.poll())
            holder.communicate(timeout=20)
            self.assertEqual(holder.returncode, 0)


if __name__ == "__main__":
    unittest.main()
