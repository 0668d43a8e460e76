# SPDX-License-Identifier: MIT
"""Goal: a request gets the bytes of the file that it names, the right part of them, and nothing
outside the root; a change on the disk is seen.  Method: a folder with every shape of file, raw
requests on real connections.  S-numbers are those of the notes on what went wrong elsewhere."""

import email.utils
import os
import pathlib
import time
import unittest

from harness import Case, Closed, Server, pattern, request

LARGE = 1 << 20


def eventually(condition):
    """Waits for the server to see what the test did to the disk."""
    deadline = time.monotonic() + 20
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("the change is not seen")


class Files(Case):

    @classmethod
    def build(cls):
        cls.write("index.html", b"<!doctype html><title>index</title>")
        cls.write("536.bin", pattern(536))
        cls.write("large.bin", pattern(LARGE))
        cls.write("edge.bin", pattern(65536))
        cls.write("empty.txt", b"")
        cls.write("a b%41.txt", b"odd name")
        cls.write("gr\u00fc\u00dfe.txt", b"umlauts")
        cls.write("folder/index.html", b"in the folder")
        cls.write("folder/deep/page.html", b"deep")
        cls.write("bare/file.txt", b"no index here")
        cls.write(".secret", b"secret")
        cls.write("folder/.git/config", b"secret")
        cls.write(".well-known/acme/token", b"token")
        cls.write(".well-known/.hidden", b"secret")
        (cls.root / "link.txt").symlink_to("536.bin")
        (cls.root / "up.txt").symlink_to("folder/../empty.txt")
        (cls.root / "passwd").symlink_to("/etc/passwd")
        (cls.root / "outside").symlink_to("..")
        (cls.root / "loop").symlink_to("loop")
        os.mkfifo(cls.root / "fifo")
        (cls.root / "index").mkdir()
        (cls.root / "index/index.html").mkdir()
        cls.write("unreadable.txt", b"secret").chmod(0)

    def status(self, path, **headers):
        return self.ask(request(path, **headers))[0].status

    def body(self, path):
        response = self.ask(request(path))[0]
        self.assertEqual(response.status, 200)
        return response.body

    def test_bytes(self):
        self.assertEqual(self.body("/536.bin"), pattern(536))
        self.assertEqual(self.body("/edge.bin"), pattern(65536))
        self.assertEqual(self.body("/large.bin"), pattern(LARGE))
        self.assertEqual(self.body("/empty.txt"), b"")

    def test_names(self):
        self.assertEqual(self.body("/a%20b%2541.txt"), b"odd name")
        self.assertEqual(self.body("/gr%C3%BC%C3%9Fe.txt"), b"umlauts")
        self.assertEqual(self.body("/%65mpty.txt?query=%2f"), b"")
        self.assertEqual(self.body("//folder/./deep//page.html"), b"deep")
        self.assertEqual(self.body("/link.txt"), pattern(536))
        self.assertEqual(self.body("/up.txt"), b"")

    def test_folders(self):
        self.assertIn(b"index", self.body("/"))
        self.assertEqual(self.body("/folder/"), b"in the folder")
        for path, location in (("/folder", "/folder/"), ("/folder?a=b", "/folder/?a=b"),
                               ("//folder", "/folder/"), ("/folder/deep", "/folder/deep/"),
                               ("/bare", "/bare/")):
            response = self.ask(request(path))[0]
            self.assertEqual((response.status, response["Location"]), (301, location))
        for path in ("/bare/", "/index/", "/folder/deep/", "/536.bin/"):
            self.assertEqual(self.status(path), 404)

    def test_nothing_escapes(self):
        for path in ("/../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/a/%2e%2e%2f", "/folder/../..",
                     "/.%2e/etc/passwd", "/%2e./etc/passwd", "/..%2fetc%2fpasswd",
                     "/.%252e/.%252e/etc/passwd", "/%2e%2e%5cetc", "/..\\etc", "/secret.db%00.html",
                     "/passwd", "/outside/", "/outside/x", "/etc/passwd", "//etc/passwd", "/loop",
                     "/%", "/%4", "/%zz", "/a%0ab"):
            with self.subTest(path):
                response = self.ask(request(path))[0]
                self.assertIn(response.status, (400, 404))
                self.assertNotIn(b"root:", response.body)

    def test_hidden(self):
        for path in ("/.secret", "/%2esecret", "/folder/.git/config", "/.well-known/.hidden",
                     "/.git/", "/.well-known"):
            self.assertEqual(self.status(path), 404, path)
        self.assertEqual(self.body("/.well-known/acme/token"), b"token")

    def test_special_files(self):
        self.assertEqual(self.status("/fifo"), 403)

    @unittest.skipIf(os.geteuid() == 0, "root reads everything")
    def test_unreadable(self):
        self.assertEqual(self.status("/unreadable.txt"), 403)

    def test_headers(self):
        response = self.ask(request())[0]
        self.assertEqual(response["Content-Type"], "text/html; charset=utf-8")
        self.assertEqual(response["Accept-Ranges"], "bytes")
        self.assertEqual(response["Server"], "gori")
        date = email.utils.parsedate_to_datetime(response["Date"]).timestamp()
        self.assertLess(abs(date - time.time()), 3)
        modified = email.utils.parsedate_to_datetime(response["Last-Modified"]).timestamp()
        self.assertEqual(modified, int((self.root / "index.html").stat().st_mtime))
        self.assertRegex(response["ETag"], r'^"[!#-~]+"$')


class Ranges(Files):

    test_bytes = test_names = test_folders = test_nothing_escapes = None
    test_hidden = test_special_files = test_unreadable = test_headers = None

    def part(self, path, value, **headers):
        return self.ask(request(path, Range=value, **headers))[0]

    def test_single(self):
        for path, size in (("/536.bin", 536), ("/large.bin", LARGE), ("/edge.bin", 65536)):
            for value, first, last in (("bytes=0-9", 0, 9), ("bytes=50-99999999", 50, size - 1),
                                       ("bytes=-7", size - 7, size - 1), ("bytes=5-", 5, size - 1),
                                       ("bytes=0-0", 0, 0), ("bytes=-99999999", 0, size - 1),
                                       (f"bytes={size - 1}-", size - 1, size - 1)):
                with self.subTest(path, value=value):
                    response = self.part(path, value)
                    self.assertEqual(response.status, 206)
                    self.assertEqual(response["Content-Range"], f"bytes {first}-{last}/{size}")
                    self.assertEqual(response.body, pattern(size)[first:last + 1])

    def test_unsatisfiable(self):
        for value in ("bytes=536-", "bytes=9999-10000", "bytes=-0"):
            response = self.part("/536.bin", value)
            self.assertEqual((response.status, response["Content-Range"]), (416, "bytes */536"))
        self.assertEqual(self.part("/empty.txt", "bytes=0-").status, 416)

    def test_whole_instead(self):
        for value in ("bytes: 0-22", "bytes=a-b", "bytes=9-1", "lines=0-1", "bytes=", "0-9",
                      "bytes=0-1,3-4,6-7", "bytes=" + ",".join(["0-9"] * 1000)):
            response = self.part("/536.bin", value)
            self.assertEqual((response.status, response.body), (200, pattern(536)))

    def test_head_has_no_range(self):
        response = self.ask(request("/536.bin", "HEAD", Range="bytes=0-9"), "HEAD")[0]
        self.assertEqual((response.status, response["Content-Length"]), (200, "536"))

    def test_if_range(self):
        whole = self.ask(request("/536.bin"))[0]
        tag, date = whole["ETag"], whole["Last-Modified"]
        for value, status in ((tag, 206), ("W/" + tag, 200), (tag[:-4] + '"', 200), ('"x"', 200),
                              ("Sun, 06 Nov 1994 08:49:37 GMT", 200), ("nonsense", 200)):
            response = self.part("/536.bin", "bytes=0-9", If_Range=value)
            self.assertEqual(response.status, status, value)
        os.utime(self.root / "empty.txt", (1000000000, 1000000000))
        self.assertIn(self.part("/536.bin", "bytes=0-9", If_Range=date).status, (200, 206))


class Conditions(Files):

    test_bytes = test_names = test_folders = test_nothing_escapes = None
    test_hidden = test_special_files = test_unreadable = test_headers = None

    OLD, NEW = "Sun, 06 Nov 1994 08:49:37 GMT", "Fri, 31 Dec 2100 23:59:59 GMT"

    def check(self, status, **headers):
        for path in ("/536.bin", "/large.bin"):
            tag = self.ask(request(path, "HEAD"), "HEAD")[0]["ETag"]
            filled = {name: value.replace("TAG", tag) for name, value in headers.items()}
            with self.subTest(path, **headers):
                response = self.ask(request(path, **filled))[0]
                self.assertEqual(response.status, status)
                if status == 304:
                    self.assertEqual(response["ETag"], tag)
                    self.assertIsNotNone(response["Date"])

    def test_none_match(self):
        self.check(304, If_None_Match="TAG")
        self.check(304, If_None_Match="W/TAG")
        self.check(304, If_None_Match='"x", TAG, "y"')
        self.check(304, If_None_Match="*")
        self.check(200, If_None_Match='"x"')
        self.check(200, If_None_Match='"x"', If_Modified_Since=self.NEW)

    def test_modified_since(self):
        self.check(200, If_Modified_Since=self.OLD)
        self.check(200, If_Modified_Since="yesterday")
        date = self.ask(request("/536.bin"))[0]["Last-Modified"]
        self.assertEqual(self.ask(request("/536.bin", If_Modified_Since=date))[0].status, 304)

    def test_match(self):
        self.check(200, If_Match="TAG")
        self.check(200, If_Match="*")
        self.check(412, If_Match='"x"')
        self.check(412, If_Match="W/TAG")
        self.check(412, If_Unmodified_Since=self.OLD)
        self.check(200, If_Match="TAG", If_Unmodified_Since=self.OLD)

    def test_conditions_before_ranges(self):
        self.check(304, If_None_Match="TAG", Range="bytes=0-9")
        self.check(206, If_None_Match='"x"', Range="bytes=0-9")

    def test_head(self):
        tag = self.ask(request("/536.bin"))[0]["ETag"]
        response = self.ask(request("/536.bin", "HEAD", If_None_Match=tag), "HEAD")[0]
        self.assertEqual(response.status, 304)


class Changes(Case):

    options = ("--revalidate", "0.05")

    def get(self, path):
        return self.ask(request(path))[0]

    def test_replaced(self):
        self.write("page.txt", b"before")
        before = self.get("/page.txt")
        self.assertEqual(before.body, b"before")
        other = self.write("other.txt", b"behind")
        other.replace(self.root / "page.txt")
        eventually(lambda: self.get("/page.txt").body == b"behind")
        self.assertNotEqual(self.get("/page.txt")["ETag"], before["ETag"])

    def test_rewritten_in_place(self):
        path = self.write("place.txt", b"one")
        self.assertEqual(self.get("/place.txt").body, b"one")
        path.write_bytes(b"two")
        eventually(lambda: self.get("/place.txt").body == b"two")

    def test_removed_and_made(self):
        self.assertEqual(self.get("/late.txt").status, 404)
        path = self.write("late.txt", b"late")
        self.assertEqual(self.get("/late.txt").body, b"late")
        path.unlink()
        eventually(lambda: self.get("/late.txt").status == 404)

    def test_large_replaced_while_it_is_sent(self):
        old, new = pattern(16 << 20), bytes(16 << 20)
        self.write("swap.bin", old)
        client = self.client()
        client.send(request("/swap.bin"))
        client.fill()
        self.write("swap.new", new).replace(self.root / "swap.bin")
        self.assertEqual(client.response().body, old)
        eventually(lambda: self.get("/swap.bin").body == new)

    def test_s01_truncated_while_it_is_sent(self):
        path = self.write("shrink.bin", bytes(32 << 20))
        client = self.client()
        client.send(request("/shrink.bin") + request("/"))
        client.fill()
        with path.open("r+b") as file:
            file.truncate(1 << 20)
        with self.assertRaises(Closed):
            client.response()
        self.assertLess(len(client.data), 32 << 20)
        self.assertNotIn(b"HTTP/1.1", client.data)

    def test_grown_while_it_is_sent(self):
        path = self.write("grow.bin", pattern(16 << 20))
        client = self.client()
        client.send(request("/grow.bin"))
        client.fill()
        with path.open("ab") as file:
            file.write(b"more")
        self.assertEqual(client.response().body, pattern(16 << 20))
        self.assertTrue(client.is_open())

    def test_own_page_for_what_is_missing(self):
        self.assertIn(b"404", self.get("/nothing").body)
        self.write("404.html", b"ours")
        response = self.get("/nothing")
        self.assertEqual((response.status, response.body), (404, b"ours"))
        self.assertIsNone(response["ETag"])
        (self.root / "404.html").unlink()
        eventually(lambda: self.get("/nothing").body != b"ours")


class Root(Case):

    @classmethod
    def build(cls):
        cls.write("one/page.txt", b"one")
        cls.write("two/page.txt", b"two")
        (cls.root / "current").symlink_to("one")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.linked = Server(cls.root / "current", "--revalidate", "0.05")
        cls.addClassCleanup(cls.linked.stop)

    def test_s17_switched_by_a_deploy(self):
        self.server, whole = self.linked, self.server
        try:
            self.assertEqual(self.ask_page(), b"one")
            new = pathlib.Path(self.root / "next")
            new.symlink_to("two")
            new.replace(self.root / "current")
            eventually(lambda: self.ask_page() == b"two")
        finally:
            self.server = whole

    def ask_page(self):
        client = self.client()
        return client.get("/page.txt").body


class Hidden(Case):

    options = ("--hidden",)

    @classmethod
    def build(cls):
        super().build()
        cls.write(".secret", b"not so secret")

    def test_served_when_asked_for(self):
        self.assertEqual(self.ask(request("/.secret"))[0].body, b"not so secret")


class SmallCache(Case):
    """A cache for a handful of files, and more files than that."""

    options = ("--cache-bytes", "64k", "--cache-file-bytes", "8k")

    @classmethod
    def build(cls):
        super().build()
        for number in range(40):
            cls.write(f"{number}.bin", pattern(1000 * number))

    def test_everything_comes_again_and_again(self):
        client = self.client()
        for _ in range(3):
            for number in range(40):
                self.assertEqual(client.get(f"/{number}.bin").body, pattern(1000 * number))


if __name__ == "__main__":
    unittest.main(argv=["files_test"])
