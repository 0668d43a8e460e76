#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Goal: what a newcomer copies works.  Method: each example is started on a port of the system's
choice, talked to, and stopped.

Usage: run.py FOLDER_OF_EXAMPLES [STOP_SIGNAL]        SIGTERM, or SIGINT as Ctrl+C is
"""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

FOLDER = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path()
STOP = signal.Signals[sys.argv[2]] if len(sys.argv) > 2 else signal.SIGTERM
needs_posix = unittest.skipIf(STOP == signal.SIGINT, "its programs are those of this machine")
PATIENCE = 20  # seconds until a hang counts as one; nothing depends on how many


class Example:
    """A running example; it has to end well when it is told to, unless it ends another way."""

    def __init__(self, test, name, *arguments, address="127.0.0.1:0"):
        command = [FOLDER / f"{name}_example", *arguments]
        if address not in arguments:
            command.append(address)
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        test.addCleanup(self.kill)
        line = self.process.stdout.readline()
        test.assertTrue(line.startswith("listening on "), line)
        self.port = int(line.rsplit(":", 1)[1])
        self.test = test

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        self.test.addCleanup(connection.close)
        return connection

    def stop(self):
        self.process.send_signal(STOP)
        return self.process.wait(timeout=PATIENCE)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def receive(connection, size):
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            break
        data += piece
    return data


def receive_all(connection):
    return receive(connection, 1 << 30)


class Examples(unittest.TestCase):

    def test_echo(self):
        example = Example(self, "echo")
        connection = example.connect()
        connection.sendall(b"hello, ring\n")
        self.assertEqual(receive(connection, 12), b"hello, ring\n")
        connection.close()
        self.assertEqual(example.stop(), 0)

    def test_relay(self):
        target = Example(self, "echo")
        relay = Example(self, "relay", f"127.0.0.1:{target.port}")
        data = bytes(range(256)) * 1000
        connection = relay.connect()
        connection.sendall(data)
        self.assertEqual(receive(connection, len(data)), data)
        connection.shutdown(socket.SHUT_WR)
        self.assertEqual(receive_all(connection), b"")
        self.assertEqual(relay.stop(), 0)

    def test_relay_without_a_target(self):
        target = Example(self, "echo")
        self.assertEqual(target.stop(), 0)
        relay = Example(self, "relay", f"127.0.0.1:{target.port}")
        with self.assertRaises(ConnectionResetError):
            relay.connect().recv(1)
        self.assertEqual(relay.stop(), 0)

    def test_chat(self):
        example = Example(self, "chat")
        first = example.connect()
        lines = first.makefile("rb")
        second = example.connect()
        self.assertEqual(lines.readline(), b"2: joined\n")
        second.sendall(b"hello\nwho is")
        self.assertEqual(lines.readline(), b"2: hello\n")
        second.sendall(b" there?\n")
        self.assertEqual(lines.readline(), b"2: who is there?\n")
        second.close()
        self.assertEqual(lines.readline(), b"2: left (peer)\n")
        lines.close()
        first.close()
        self.assertEqual(example.stop(), 0)

    def test_chat_rooms(self):
        example = Example(self, "chat_rooms")
        people = [example.connect() for _ in range(4)]
        files = [one.makefile("rb") for one in people]
        for i, one in enumerate(people):  # two in each of two rooms
            one.sendall(b"%d\n" % (i % 2))
        # A room may not have heard yet who is there: what one says to himself nobody gets, so
        # the first says a word until the other has it.
        for first, other in ((0, 2), (1, 3)):
            people[other].settimeout(0.05)
            heard = b""
            while not heard:
                people[first].sendall(b"ping %d\n" % first)
                try:
                    heard = people[other].recv(1, socket.MSG_PEEK)
                except TimeoutError:
                    continue
            people[other].settimeout(PATIENCE)
        for i in range(50):
            people[0].sendall(b"line %d\n" % i)
        expected = 0
        while expected < 50:
            line = files[2].readline()
            if line.startswith(b"line"):
                self.assertEqual(line, b"line %d\n" % expected)
                expected += 1
            else:
                self.assertEqual(line, b"ping 0\n")
        people[1].sendall(b"bye\n")
        while (line := files[3].readline()) != b"bye\n":
            self.assertEqual(line, b"ping 1\n")
        for file in files:
            file.close()
        self.assertEqual(example.stop(), 0)

    def test_worker_pool(self):
        example = Example(self, "worker_pool")
        slow = example.connect()
        slow.sendall(b"18446744073709551557\n")  # a prime: takes seconds
        quick = example.connect()
        quick.sendall(b"91\n8\n97\n")
        lines = quick.makefile("rb")
        answers = sorted(lines.readline() for _ in range(3))
        self.assertEqual(answers, [b"2\n", b"7\n", b"97\n"])
        lines.close()
        slow.close()
        quick.close()
        self.assertEqual(example.stop(), 0)

    def test_notice(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "notice"
            file.write_bytes(b"first\n")
            example = Example(self, "notice", file)

            def wait_for(text):
                while receive_all(example.connect()) != text:
                    pass

            wait_for(b"first\n")
            for i in range(3):  # as editors write: another file takes the name
                text = b"edition %d\n" % i
                new = file.with_suffix(".new")
                new.write_bytes(text)
                new.rename(file)
                wait_for(text)
            with open(file, "ab") as stream:  # in place
                stream.write(b"more\n")
            wait_for(b"edition 2\nmore\n")
            file.unlink()  # what was read stays
            wait_for(b"edition 2\nmore\n")
            file.write_bytes(b"back\n")
            wait_for(b"back\n")
            self.assertEqual(example.stop(), 0)

    def test_notice_without_a_folder(self):
        process = subprocess.run([FOLDER / "notice_example", "/none/file", "127.0.0.1:0"],
                                 capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(process.returncode, 1)
        self.assertIn("not found", process.stderr)

    @needs_posix
    def test_supervisor(self):
        with tempfile.TemporaryDirectory() as folder:
            gate = pathlib.Path(folder) / "gate"
            os.mkfifo(gate)
            example = Example(self, "supervisor", "127.0.0.1:0", "sh", "-c",
                              f"read line < {gate}; echo $line; exit 3")
            viewer = example.connect()
            for word in ("one", "two"):
                with gate.open("w") as stream:
                    stream.write(word + "\n")
                self.assertEqual(receive(viewer, 4), word.encode() + b"\n")
                self.assertEqual(example.process.stdout.readline(), "ended with 3\n")
            self.assertEqual(example.stop(), 0)
            viewer.close()

    @needs_posix
    def test_supervisor_passes_the_signal_on(self):
        example = Example(self, "supervisor", "127.0.0.1:0", "sh", "-c",
                          "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done")
        viewer = example.connect()
        example.process.send_signal(signal.SIGTERM)
        self.assertEqual(example.process.wait(timeout=PATIENCE), 0)
        self.assertIn(example.process.stdout.readline(),
                      ("ended with 7\n", "ended by signal 15\n"))  # the trap may not be set yet
        viewer.close()

    @needs_posix
    def test_supervisor_without_a_program(self):
        process = subprocess.run([FOLDER / "supervisor_example", "127.0.0.1:0", "/none/program"],
                                 capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(process.returncode, 1)
        self.assertIn("not found", process.stderr)

    def test_upload(self):
        with tempfile.TemporaryDirectory() as folder:
            example = Example(self, "upload", folder)
            data = bytes(range(256)) * 4000

            def upload(name, data):
                connection = example.connect()
                try:
                    connection.sendall(name + b"\n" + data)
                    connection.shutdown(socket.SHUT_WR)
                except BrokenPipeError:
                    pass
                return receive_all(connection)

            self.assertEqual(upload(b"first", data), b"ok\n")
            self.assertEqual((pathlib.Path(folder) / "first").read_bytes(), data)
            self.assertEqual(upload(b"first", b"shorter"), b"ok\n")
            self.assertEqual((pathlib.Path(folder) / "first").read_bytes(), b"shorter")
            self.assertEqual(upload(b"empty", b""), b"ok\n")
            self.assertEqual((pathlib.Path(folder) / "empty").read_bytes(), b"")
            self.assertIn(b"root", upload(b"../out", b"x"))
            self.assertEqual(upload(b"nowhere/file", b"x"), b"not found\n")
            many = [example.connect() for _ in range(20)]
            for i, one in enumerate(many):
                one.sendall(b"file%d\n%d" % (i, i))
            many.pop().close()  # in the middle of its upload
            for one in many:
                one.shutdown(socket.SHUT_WR)
            for i, one in enumerate(many):
                self.assertEqual(receive_all(one), b"ok\n")
                self.assertEqual((pathlib.Path(folder) / f"file{i}").read_bytes(), b"%d" % i)
            self.assertEqual(example.stop(), 0)

    def test_static_site(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "index.html").write_bytes(b"<title>here</title>")
            example = Example(self, "static_site", folder)
            connection = example.connect()
            connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            answer = receive_all(connection)
            self.assertTrue(answer.startswith(b"HTTP/1.1 200 OK\r\n"))
            self.assertTrue(answer.endswith(b"<title>here</title>"))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    unittest.main(argv=sys.argv[:1])
