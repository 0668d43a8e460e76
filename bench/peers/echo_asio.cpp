/* SPDX-License-Identifier: MIT */
/*
 * Echo on asio as a good user of it writes it: one io_context per thread, told that it is used by
 * one thread, callbacks rather than coroutines, a session object that keeps itself alive, asio's
 * own recycling of handler memory.  Built three times: on epoll; with WITHOUT_LOCKS, as those do
 * who know that asio can leave out its locks altogether; and on io_uring, with ASIO_HAS_IO_URING
 * and ASIO_DISABLE_EPOLL.  Reading: think-async.com, the concurrency hints of io_context.
 */
#include "server.h"

#include <array>
#include <asio.hpp>
#include <memory>
#include <utility>

namespace {

#ifdef WITHOUT_LOCKS
constexpr int concurrency = ASIO_CONCURRENCY_HINT_UNSAFE;
#else
constexpr int concurrency = 1;
#endif

class session : public std::enable_shared_from_this<session> {
  public:
    explicit session(asio::ip::tcp::socket socket) : socket_(std::move(socket))
    {
    }

    void read()
    {
        socket_.async_read_some(asio::buffer(buffer_),
                                [self = shared_from_this()](std::error_code error, size_t size) {
                                    if (!error) {
                                        self->write(size);
                                    }
                                });
    }

  private:
    void write(size_t size)
    {
        asio::async_write(socket_, asio::buffer(buffer_, size),
                          [self = shared_from_this()](std::error_code error, size_t) {
                              if (!error) {
                                  self->read();
                              }
                          });
    }

    asio::ip::tcp::socket socket_;
    std::array<char, 4096> buffer_;
};

void accept(asio::ip::tcp::acceptor &acceptor)
{
    acceptor.async_accept([&acceptor](std::error_code error, asio::ip::tcp::socket socket) {
        if (error) {
            bench_die("accept", error.value());
        }
        std::make_shared<session>(std::move(socket))->read();
        accept(acceptor);
    });
}

void serve(int listener)
{
    asio::io_context context(concurrency);
    asio::ip::tcp::acceptor acceptor(context, asio::ip::tcp::v4(), listener);
    accept(acceptor);
    context.run();
}

} /* namespace */

int main(int argc, char **argv)
{
    return bench_server_main(argc, argv, serve);
}
