# SPDX-License-Identifier: MIT
"""Goal: the server lives through bad clients, lacks of the machine, and signals, and ends as it
should.  Method: short limits given as options, clients that stop in the middle, limits of the
system set for the process.  Nothing waits for a fixed time; each step waits for what it causes."""

import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

from harness import ENGINE, PATIENCE, PROGRAM, Case, Client, Server, request

LARGE = 16 << 20


class Silence(Case):
    """Clients that do not go on.  The limits are short, and the test only waits for them."""

    options = ("--header-timeout", "0.3", "--idle-timeout", "0.6")

    @classmethod
    def build(cls):
        super().build()
        cls.write("large.bin", bytes(LARGE))

    def test_half_a_request(self):
        client = self.client()
        client.send(request()[:-2])
        response = client.response()
        self.assertEqual((response.status, response["Connection"]), (408, "close"))
        self.assertEqual(client.rest(), b"")

    def test_half_a_body(self):
        client = self.client()
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345")
        self.assertEqual(client.response().status, 408)

    def test_h27_single_bytes_do_not_move_the_deadline(self):
        client = self.client()
        client.socket.settimeout(0.05)
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\nX: ")
        started = time.monotonic()
        while not client.data:
            client.send(b"y")
            try:
                client.fill()
            except TimeoutError:
                pass
            self.assertLess(time.monotonic() - started, PATIENCE)
        self.assertEqual(client.response().status, 408)

    def test_half_a_request_after_a_whole_one(self):
        client = self.client()
        client.send(request() + request()[:20])
        self.assertEqual(client.response().status, 200)
        self.assertEqual(client.response().status, 408)

    def test_nothing_at_all(self):
        self.assertEqual(self.client().rest(), b"")

    def test_blank_lines_only(self):
        client = self.client()
        client.send(b"\r\n\r\n")
        self.assertEqual(client.rest(), b"")

    def test_idle_after_a_request(self):
        client = self.client()
        client.get()
        self.assertEqual(client.rest(), b"")

    def test_a_reader_that_stops(self):
        client = self.client()
        client.send(request("/large.bin") * 3)
        client.fill()
        deadline = time.monotonic() + PATIENCE
        while self.is_connected(client):
            self.assertLess(time.monotonic(), deadline)
        self.assertLess(len(client.rest()), LARGE)

    def is_connected(self, client):
        """Whether the server still has the other end of the connection."""
        local = client.socket.getsockname()[1]
        with open("/proc/net/tcp", encoding="ascii") as table:
            for line in table.readlines()[1:]:
                fields = line.split()
                if fields[2].endswith(f":{local:04X}") and fields[3] == "01":
                    return True
        return False


class Clients(Case):

    @classmethod
    def build(cls):
        super().build()
        cls.write("large.bin", bytes(LARGE))

    def test_killed_in_the_middle(self):
        before = None
        for _ in range(20):
            with Client(self.server.port) as client:
                client.send(request("/large.bin") * 4)
                client.fill()
                client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                         struct.pack("ii", 1, 0))
            with Client(self.server.port) as client:
                self.assertTrue(client.is_open())
            before = before or self.server.descriptors()
        deadline = time.monotonic() + PATIENCE
        while self.server.descriptors() > before + 1:
            self.assertLess(time.monotonic(), deadline, "descriptors are lost")

    def test_many_at_once(self):
        clients = [self.client() for _ in range(200)]
        for client in clients:
            client.send(request())
        for client in clients:
            self.assertEqual(client.response().status, 200)


class Lacks(unittest.TestCase):

    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="gori-web-")
        self.addCleanup(shutil.rmtree, self.root)
        for name, size in (("index.html", 5), ("large.bin", 1 << 20)):
            with open(os.path.join(self.root, name), "wb") as file:
                file.write(bytes(size))

    def start(self, *options, **keywords):
        server = Server(self.root, *options, **keywords)
        self.addCleanup(server.stop)
        return server

    def test_out_of_descriptors(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))

        server = self.start(limit=limit)
        clients = [Client(server.port)]
        self.assertEqual(clients[0].get().status, 200)
        clients += [Client(server.port) for _ in range(60)]
        for client in clients[:10]:
            self.assertEqual(client.get().status, 200)
        self.assertIn(clients[0].get("/large.bin").status, (200, 503))
        for client in clients:
            client.socket.close()
        with Client(server.port) as client:
            self.assertEqual(client.get("/large.bin").status, 200)
            self.assertEqual(client.get("/index.html").status, 200)
        self.assertEqual(server.stop(), 0)

    def test_full_disk_for_the_access_log(self):
        server = self.start("--access-log", "/dev/full")
        with Client(server.port) as client:
            for _ in range(2000):
                self.assertEqual(client.get().status, 200)
        server.signal()
        server.process.wait(timeout=PATIENCE)
        self.assertEqual(server.process.returncode, 0)
        complaint = server.complaints()
        self.assertEqual(complaint.count("\n"), 1, complaint)
        self.assertIn("access log", complaint)

    def test_a_line_that_was_cut_off_does_not_swallow_the_next(self):
        name = os.path.join(self.root, "access.log")

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

        server = self.start("--access-log", name, limit=limit)
        with Client(server.port) as client:
            for _ in range(4):
                self.assertEqual(client.get().status, 200)
            deadline = time.monotonic() + PATIENCE
            while "access log" not in server.complaints():
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.01)
            os.truncate(name, 0)
            self.assertEqual(client.get("/missing").status, 404)
        self.assertEqual(server.stop(), 0)
        with open(name, encoding="ascii") as file:
            self.assertRegex(file.read(), r'^\n127\.0\.0\.1 .*/missing HTTP/1\.1" 404 .*"-"\n$')

    def test_zero_is_no_limit_and_no_cache(self):
        options = ("--idle-timeout", "--header-timeout", "--cache-bytes", "--cache-file-bytes")
        server = self.start(*(word for name in options for word in (name, "0")))
        with Client(server.port) as client:
            for name, size in (("/index.html", 5), ("/large.bin", 1 << 20), ("/index.html", 5)):
                self.assertEqual(len(client.get(name).body), size)
        self.assertEqual(server.stop(), 0)

    def test_closed_standard_descriptors_are_not_taken_for_sockets(self):
        server = self.start(limit=lambda: (os.close(0), os.close(2)))
        for descriptor in ("0", "2"):
            self.assertEqual(os.readlink(f"/proc/{server.process.pid}/fd/{descriptor}"),
                             "/dev/null")

    def test_access_log(self):
        name = os.path.join(self.root, "access.log")
        server = self.start("--access-log", name)
        with Client(server.port) as client:
            client.get("/index.html?q", Referer="http://x/", User_Agent='a"b\\c')
            client.get("/missing")
            client.send(b"GET / HTTP/1.1\r\n\r\n")
            client.response()
        self.assertEqual(server.stop(), 0)
        with open(name, encoding="ascii") as file:
            lines = file.read().splitlines()
        self.assertEqual(len(lines), 3)
        self.assertRegex(lines[0], r'^127\.0\.0\.1 - - \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d \+0000\] '
                                   r'"GET /index\.html\?q HTTP/1\.1" 200 5 "http://x/" '
                                   r'"a\\x22b\\x5cc"$')
        self.assertRegex(lines[1], r'"GET /missing HTTP/1\.1" 404 \d+ "-" "-"$')
        self.assertRegex(lines[2], r'"GET / HTTP/1\.1" 400 ')


class Addresses(Case):

    def start(self, **keywords):
        log = self.root / f"{self.id()}.log"
        server = Server(self.root, "--access-log", log, **keywords)
        self.addCleanup(server.stop)
        return server, log

    def test_a_unix_path(self):
        path = str(self.root / "socket")
        server, log = self.start(listen=f"unix:{path}")
        with Client(family=socket.AF_UNIX, address=path) as client:
            self.assertEqual(client.get().status, 200)
        self.assertEqual(server.stop(), 0)
        self.assertTrue(log.read_text().startswith("- - - ["))
        self.assertFalse(os.path.exists(path))

    def test_ipv6(self):
        try:
            socket.socket(socket.AF_INET6).bind(("::1", 0))
        except OSError:
            self.skipTest("no IPv6 here")
        server, log = self.start(listen="[::1]:0")
        with Client(family=socket.AF_INET6, address=("::1", server.port)) as client:
            self.assertEqual(client.get().status, 200)
        self.assertEqual(server.stop(), 0)
        self.assertTrue(log.read_text().startswith("::1 - - ["))

    def test_two_workers(self):
        server, log = self.start(workers=2)
        clients = [Client(server.port) for _ in range(40)]
        for client in clients:
            self.assertEqual(client.get().status, 200)
        server.signal()
        for client in clients:
            self.assertEqual(client.rest(), b"")
            client.socket.close()
        self.assertEqual(server.stop(), 0)
        self.assertEqual(len(log.read_text().splitlines()), 40)


class Stop(Case):

    @classmethod
    def build(cls):
        super().build()
        cls.write("large.bin", bytes(LARGE))

    def start(self, *options):
        server = Server(self.root, *options)
        self.addCleanup(server.stop)
        return server

    def begin_download(self, server):
        client = Client(server.port)
        self.addCleanup(client.socket.close)
        client.send(request("/large.bin"))
        client.fill()
        return client

    def test_idle_connections_close(self):
        server = self.start()
        clients = [Client(server.port) for _ in range(10)]
        for client in clients:
            client.get()
        server.signal()
        for client in clients:
            self.assertEqual(client.rest(), b"")
            client.socket.close()
        self.assertEqual(server.wait(), 0)

    def test_a_download_is_finished(self):
        server = self.start()
        client = self.begin_download(server)
        server.signal()
        self.assertEqual(client.response().body, bytes(LARGE))
        self.assertEqual(client.rest(), b"")
        client.socket.close()
        self.assertEqual(server.wait(), 0)

    def test_the_rest_of_a_request_is_answered(self):
        server = self.start()
        client = Client(server.port)
        client.get()
        client.send(request()[:-2])
        with Client(server.port) as other:
            other.get()
            server.signal()
            self.assertEqual(other.rest(), b"")
        client.send(b"\r\n")
        response = client.response()
        self.assertEqual((response.status, response["Connection"]), (200, "close"))
        self.assertEqual(client.rest(), b"")
        client.socket.close()
        self.assertEqual(server.wait(), 0)

    def test_signals_without_end_are_an_orderly_end(self):
        if ENGINE == "iocp":
            self.skipTest("Windows starts a thread for each of them")
        for _ in range(20):
            server = Server(self.root)
            while server.process.poll() is None:
                server.signal()
            self.assertEqual(server.stop(), 0)
            server.errors.close()
            server.process.stdout.close()

    def test_a_second_signal_ends_it_at_once(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            server = self.start("--drain-timeout", "3600")
            self.begin_download(server)
            server.signal(number)
            with self.assertRaises(OSError):
                while True:
                    Client(server.port).socket.close()
                    time.sleep(0.005)  # a flood would be another test
            server.signal(number)
            self.assertEqual(server.wait(), 0)

    def test_the_drain_has_an_end(self):
        server = self.start("--drain-timeout", "0.2")
        self.begin_download(server)
        server.signal()
        self.assertEqual(server.wait(), 0)


class Usage(unittest.TestCase):

    def run_with(self, *arguments):
        return subprocess.run([PROGRAM, "serve", *arguments], capture_output=True, text=True,
                              timeout=PATIENCE, check=False)

    def test_wrong_usage_is_one_line(self):
        for arguments in ((), ("/nowhere",), ("/etc/passwd",), (".", "--nonsense"),
                          (".", "--cache-bytes", "many"), (".", "--header-timeout"),
                          (".", "--cache-file-bytes", "1g"), (".", "--engine", "steam")):
            with self.subTest(arguments):
                result = self.run_with(*arguments)
                self.assertEqual(result.returncode, 2)
                self.assertEqual(result.stderr.count("\n"), 1)
                self.assertTrue(result.stderr.startswith("gori serve: "))

    def test_an_engine_that_does_not_work_here(self):
        environment = dict(os.environ, GORI_URING_DISABLE="all")
        result = subprocess.run([PROGRAM, "serve", ".", "--engine", "io_uring"], text=True,
                                capture_output=True, env=environment, timeout=PATIENCE,
                                check=False)
        self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (1, "", 1))
        for word in ("io_uring", "gori doctor", "auto"):
            self.assertIn(word, result.stderr)

    def test_an_engine_of_another_system(self):
        engine = "epoll" if ENGINE == "iocp" else "iocp"
        result = self.run_with(".", "--engine", engine)
        self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (1, "", 1))
        for word in (engine, "gori doctor", "auto"):
            self.assertIn(word, result.stderr)

    def test_a_port_that_is_taken(self):
        root = tempfile.mkdtemp(prefix="gori-web-")
        self.addCleanup(shutil.rmtree, root)
        server = Server(root, workers=2)
        self.addCleanup(server.stop)
        result = self.run_with(root, "--workers", "2", "--listen", f"127.0.0.1:{server.port}")
        self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1))
        for word in (f"127.0.0.1:{server.port}", "already in use", "--listen"):
            self.assertIn(word, result.stderr)

    def test_help(self):
        result = self.run_with("--help")
        self.assertEqual(result.returncode, 0)
        for word in ("DIR", "--listen", "--workers", "--access-log", "examples"):
            self.assertIn(word, result.stdout)

    def test_an_access_log_that_cannot_be(self):
        result = self.run_with(".", "--access-log", "/nowhere/log")
        self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1))

    def test_an_access_log_that_nobody_reads(self):
        folder = tempfile.mkdtemp(prefix="gori-web-")
        self.addCleanup(shutil.rmtree, folder)
        name = os.path.join(folder, "log")
        os.mkfifo(name)
        result = self.run_with(".", "--access-log", name)
        self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1))
        self.assertIn("nobody reads", result.stderr)

    def test_seconds_are_decimal(self):
        for text in ("0x10", "1e3", "inf", "nan", "1.2.3", "-1", ""):
            with self.subTest(text):
                result = self.run_with(".", "--idle-timeout", text)
                self.assertEqual((result.returncode, result.stderr.count("\n")), (2, 1))

    def test_a_start_that_fails_is_not_announced(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (14, 14))

        result = subprocess.run([PROGRAM, "serve", ".", "--workers", "4", "--engine", "auto",
                                 "--listen", "127.0.0.1:0"], capture_output=True, text=True,
                                timeout=PATIENCE, check=False, preexec_fn=limit)
        self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (1, "", 1))
        self.assertIn("too many open files", result.stderr)

    def test_what_cannot_be_printed_is_a_failure(self):
        for arguments in (("--help",), ("--version",), ("serve", "--help"), ("doctor", "--json")):
            with self.subTest(arguments), open("/dev/full", "w", encoding="ascii") as full:
                result = subprocess.run([PROGRAM, *arguments], stdout=full, text=True,
                                        stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
                self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1))
                self.assertIn("standard output", result.stderr)


if __name__ == "__main__":
    unittest.main(argv=["life_test"])
