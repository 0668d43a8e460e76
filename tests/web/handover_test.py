# SPDX-License-Identifier: MIT
"""Goal: a server that is given its socket by a supervisor (LISTEN_FDS) is replaced by another, and
no client notices.  Method: this test is the supervisor, and the clients never stop asking."""

import os
import socket
import subprocess
import sys
import threading
import unittest

from harness import PATIENCE, PROGRAM, SUPERVISED, Case, Client, Server

CHANGES = 5
CLIENTS = 2


class Supervised(Case):

    def setUp(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.addCleanup(self.listener.close)
        self.port = self.listener.getsockname()[1]

    def start(self, *options, **keywords):
        server = Server(self.root, *options, given=self.listener, **keywords)
        self.addCleanup(server.stop)
        return server

    def ask(self):
        with Client(self.port) as client:
            return client.get("/", Connection="close").status

    def test_it_listens_where_it_is_told(self):
        server = self.start(workers=2)
        self.assertEqual(server.port, self.port)
        self.assertEqual(self.ask(), 200)
        self.assertEqual(server.stop(), 0)

    def test_who_comes_while_there_is_no_server_waits_for_the_next(self):
        server = self.start()
        self.assertEqual(server.stop(), 0)
        with Client(self.port) as client:
            server = self.start()
            self.assertEqual(client.get().status, 200)

    def test_one_server_after_the_other_refuses_nobody(self):
        over = threading.Event()
        answers = [[] for _ in range(CLIENTS)]

        def ask_on(results):
            while not over.is_set():
                try:
                    results.append(self.ask())
                except Exception as error:  # whatever it is, it is what must not be
                    results.append(error)

        threads = [threading.Thread(target=ask_on, args=(results,)) for results in answers]
        server = self.start(workers=2)
        for thread in threads:
            thread.start()
        for number in range(CHANGES):
            seen = [len(results) for results in answers]
            following = self.start(workers=2)
            self.assertEqual(server.stop(), 0, number)
            server = following
            while any(len(results) < count + 10 for results, count in zip(answers, seen)):
                over.wait(0.01)
        over.set()
        for thread in threads:
            thread.join(PATIENCE)
        for results in answers:
            self.assertEqual(set(results), {200})

    def test_one_worker_accepts_for_all(self):
        server = self.start("--accept-policy", "least-connections", workers=3)
        self.assertEqual([self.ask() for _ in range(20)], [200] * 20)
        self.assertEqual(server.stop(), 0)


class Refused(unittest.TestCase):

    def run_with(self, given, *options, **environment):
        program = SUPERVISED.replace("os.execv", f"os.environ.update({environment!r}); os.execv")
        return subprocess.run([sys.executable, "-c", program, str(given.fileno()), str(PROGRAM),
                               "serve", ".", *options], capture_output=True, text=True,
                              timeout=PATIENCE, check=False, pass_fds=(given.fileno(),))

    def check_refused(self, result, code, *words):
        self.assertEqual((result.returncode, result.stdout), (code, ""))
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    def test_an_address_and_a_socket(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.check_refused(self.run_with(listener, "--listen", "127.0.0.1:0"), 2, "--listen")

    def test_a_socket_that_does_not_listen(self):
        with socket.socket() as stream:
            self.check_refused(self.run_with(stream), 1, "descriptor 3", "listen")

    def test_a_file(self):
        with open(os.devnull, "rb") as file:
            self.check_refused(self.run_with(file), 1, "descriptor 3", "listen")

    def test_numbers_that_are_none(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            for text in ("-1", "x", "", "1x", "99999999999999999999", "900"):
                with self.subTest(text):
                    self.check_refused(self.run_with(listener, LISTEN_FDS=text), 2, "LISTEN_FDS")

    def test_what_is_meant_for_another_process_is_not_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            result = self.run_with(listener, "--listen", "192.0.2.1:80", LISTEN_PID="1")
            self.check_refused(result, 1, "192.0.2.1:80")


if __name__ == "__main__":
    unittest.main(argv=["handover_test"])
