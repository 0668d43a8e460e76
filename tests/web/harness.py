# SPDX-License-Identifier: MIT
"""What the tests of `gori serve` stand on: the server as a process, and a client that believes
nothing: it reads responses byte by byte as the framing says, and knows when a stream went wrong."""

import functools
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

PATIENCE = 20  # seconds until a hang counts as one; nothing depends on how many

PROGRAM = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else None
ENGINE = sys.argv[2] if len(sys.argv) > 2 else "auto"

# Runs a program as a supervisor does: the socket is descriptor 3, and the environment says so.
SUPERVISED = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", LISTEN_FDNAMES="web")
os.execv(sys.argv[2], sys.argv[2:])
"""


class Server:
    """`gori serve` on a port of the system's choice, or on a socket that is given to it."""

    def __init__(self, root, *options, limit=None, listen="127.0.0.1:0", workers=1, given=None):
        self.errors = tempfile.TemporaryFile(mode="w+")
        command = [str(PROGRAM), "serve", str(root), "--engine", ENGINE,
                   "--workers", str(workers), *map(str, options)]
        if given is None:
            command += ["--listen", listen]
        else:
            command = [sys.executable, "-c", SUPERVISED, str(given.fileno()), *command]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.errors,
                                        text=True, preexec_fn=limit,
                                        pass_fds=() if given is None else (given.fileno(),))
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            raise AssertionError(f"the server does not listen: {line!r} {self.complaints()}")
        port = line.rsplit(":", 1)[1].strip()
        self.port = int(port) if port.isdigit() else None

    def complaints(self):
        """What it wrote to standard error so far."""
        self.errors.seek(0)
        return self.errors.read()

    def signal(self, number=signal.SIGTERM):
        # Wine ends a process that gets SIGTERM; of SIGINT it makes the Ctrl+C of Windows.
        self.process.send_signal(signal.SIGINT if ENGINE == "iocp" else number)

    def wait(self):
        status = self.process.wait(timeout=PATIENCE)
        self.process.stdout.close()
        return status

    def stop(self):
        """Ends it, whatever it does; the exit status."""
        if self.process.returncode is not None:
            return self.process.returncode
        self.signal()
        try:
            return self.process.wait(timeout=PATIENCE)
        finally:
            self.process.kill()
            self.process.stdout.close()
            self.errors.close()

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


class Response:
    """One response: its status, its headers by lower-case name, its body."""

    def __init__(self, head):
        lines = head.decode("latin-1").split("\r\n")
        version, status, self.reason = lines[0].split(" ", 2)
        if version != "HTTP/1.1":
            raise AssertionError(f"no status line: {lines[0]!r}")
        self.status = int(status)
        self.headers = {}
        for line in lines[1:]:
            name, value = line.split(": ", 1)
            if name.lower() in self.headers:
                raise AssertionError(f"header {name} twice")
            self.headers[name.lower()] = value
        self.body = b""

    def __getitem__(self, name):
        return self.headers.get(name.lower())


class Closed(Exception):
    """The server ended the connection where a response, or the rest of one, was due."""


class Client:
    """A connection.  Everything that arrives is read in order; nothing may be left over."""

    def __init__(self, port=None, family=socket.AF_INET, address=None):
        self.socket = socket.socket(family)
        self.socket.settimeout(PATIENCE)
        if family != socket.AF_UNIX:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.connect(address or ("127.0.0.1", port))
        self.data = bytearray()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def fill(self):
        try:
            data = self.socket.recv(1 << 18)
        except ConnectionResetError as error:
            raise Closed("reset") from error
        if not data:
            raise Closed(f"end after {bytes(self.data[:200])!r}")
        self.data += data

    def take(self, size):
        while len(self.data) < size:
            self.fill()
        taken = bytes(self.data[:size])
        del self.data[:size]
        return taken

    def response(self, method="GET"):
        while b"\r\n\r\n" not in self.data:
            self.fill()
        response = Response(self.take(self.data.index(b"\r\n\r\n") + 4)[:-4])
        if method != "HEAD" and response.status not in (204, 304):
            response.body = self.take(int(response["Content-Length"]))
        return response

    def get(self, path="/", method="GET", version="1.1", **headers):
        self.send(request(path, method, version, **headers))
        return self.response(method)

    def is_open(self):
        """Whether the connection answers another request."""
        return self.get("/").status == 200

    def rest(self):
        """Everything up to the end of the stream."""
        try:
            while True:
                self.fill()
        except Closed:
            return self.take(len(self.data))


def request(path="/", method="GET", version="1.1", **headers):
    """A request head; Range_ and the like become headers, an underscore being a dash."""
    lines = [f"{method} {path} HTTP/{version}", "Host: test"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


@functools.lru_cache
def pattern(size):
    """Bytes of which each eight say where they are."""
    return b"".join(number.to_bytes(8, "big") for number in range((size + 7) // 8))[:size]


class Case(unittest.TestCase):
    """Tests that share one server and one folder."""

    options = ()
    server = None

    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="gori-web-"))
        cls.addClassCleanup(shutil.rmtree, cls.root, ignore_errors=True)
        cls.build()
        cls.server = Server(cls.root, *cls.options)
        cls.addClassCleanup(cls.ended)

    @classmethod
    def ended(cls):
        status = cls.server.stop()
        if status != 0:
            raise AssertionError(f"the server ended with status {status}")

    @classmethod
    def build(cls):
        cls.write("index.html", b"<!doctype html><title>index</title>")

    @classmethod
    def write(cls, name, data):
        path = cls.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def client(self):
        client = Client(self.server.port)
        self.addCleanup(client.socket.close)
        return client

    def ask(self, data, method="GET"):
        """The response to `data` on a connection of its own, and whether that was closed."""
        with Client(self.server.port) as client:
            client.send(data)
            response = client.response(method)
            closed = response["Connection"] == "close"
            if closed:
                self.assertEqual(client.rest(), b"", "bytes after the last response")
            else:
                self.assertTrue(client.is_open())
            return response, closed
