#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gori echo from outside: many connections at once over several workers, both half-closes, and a
stop by Ctrl+C that drains.

Usage: echo.py PROGRAM
"""

import re
import signal
import socket
import subprocess
import sys
import threading
import unittest

PROGRAM = None
CONNECTIONS = 32
BYTES = 300_000


class Echo(unittest.TestCase):
    def setUp(self):
        self.server = subprocess.Popen(
            [PROGRAM, "echo", "--listen", "127.0.0.1:0", "--workers", "2"],
            stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.stop)
        line = self.server.stdout.readline()
        self.port = int(re.fullmatch(r"listening on 127\.0\.0\.1:(\d+)\s*", line).group(1))

    def stop(self):
        if self.server.poll() is None:
            self.server.send_signal(signal.SIGINT)  # Wine makes a Ctrl+C event of it
        try:
            self.assertEqual(self.server.wait(30), 0)
        finally:
            self.server.kill()
            self.server.stdout.close()

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def talk(self, number, results):
        data = bytes((number + i) % 251 for i in range(BYTES))
        received = bytearray()
        with self.connect() as client:
            sender = threading.Thread(target=lambda: (client.sendall(data),
                                                      client.shutdown(socket.SHUT_WR)))
            sender.start()
            while piece := client.recv(65536):
                received += piece
            sender.join()
        results[number] = bytes(received) == data

    def test_many_connections_get_their_own_bytes(self):
        results = [False] * CONNECTIONS
        threads = [threading.Thread(target=self.talk, args=(number, results))
                   for number in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertTrue(all(results))

    def test_connections_one_after_the_other(self):
        for _ in range(200):
            with self.connect() as client:
                client.sendall(b"x")
                self.assertEqual(client.recv(1), b"x")

    def test_interrupt_ends_it(self):
        with self.connect() as client:
            client.sendall(b"hello")
            self.assertEqual(client.recv(5), b"hello")
            self.server.send_signal(signal.SIGINT)
            self.assertEqual(client.recv(1), b"")
        self.assertEqual(self.server.wait(30), 0)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
