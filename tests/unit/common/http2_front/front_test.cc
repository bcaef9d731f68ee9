// Which connection makes room for a new one.
#include "common/http2_front/front.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/testing/status_matchers.h"

namespace medley::http2_front {
namespace {

constexpr int kPatienceMillis = 30'000;

// A client that writes frames as it is asked to.
class Client {
 public:
  explicit Client(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{
        .sin_family = AF_INET, .sin_port = htons(static_cast<uint16_t>(port)), .sin_addr = {}, .sin_zero = {}};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  }
  ~Client() { close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void Introduce() const { Write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string("\0\0\0\4\0\0\0\0\0", 9)); }
  void Call() const { Write(std::string("\0\0\1\1\5\0\0\0\1\x82", 10)); }  // one field, the end of both
  bool HasEnded() const {
    pollfd wait{.fd = fd_, .events = POLLIN, .revents = 0};
    EXPECT_EQ(poll(&wait, 1, kPatienceMillis), 1) << "nothing happens";
    char byte = 0;
    return recv(fd_, &byte, 1, MSG_DONTWAIT) <= 0;
  }

 private:
  void Write(const std::string& bytes) const {
    EXPECT_EQ(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }

  const int fd_;
};

// Has the server's ends of connections, in the order in which clients introduced themselves.
class Ends {
 public:
  ~Ends() {
    for (const int fd : fds_) close(fd);
  }
  void Take(int fd) {
    base::MutexLock lock(mutex_);
    fds_.push_back(fd);
  }
  size_t count() const {
    base::MutexLock lock(mutex_);
    return fds_.size();
  }
  // Reads until there are so many bytes, or the connection has ended.
  std::string Read(size_t which, size_t bytes) const {
    int fd = -1;
    {
      base::MutexLock lock(mutex_);
      fd = fds_.at(which);
    }
    std::string all;
    while (all.size() < bytes) {
      pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
      std::array<char, 256> some{};
      if (poll(&wait, 1, kPatienceMillis) != 1) break;
      const ssize_t got = recv(fd, some.data(), some.size(), 0);
      if (got <= 0) break;
      all.append(some.data(), static_cast<size_t>(got));
    }
    return all;
  }

 private:
  mutable base::Mutex mutex_;
  std::vector<int> fds_ ABSL_GUARDED_BY(mutex_);
};

void Await(const auto& condition) {
  const base::SystemClock clock;
  const base::SteadyTime end = clock.Steady() + base::milliseconds(kPatienceMillis);
  while (!condition() && clock.Steady() < end) std::this_thread::yield();
  ASSERT_TRUE(condition());
}

// A call that has arrived, and that the front has not read, when a new client takes the last place.
TEST(FrontTest, ANewConnectionTakesThePlaceOfNoneWithACallThatWaits) {
  Ends ends;
  std::latch first_held(1), second_held(1), first_may_go(1), second_may_go(1);
  {
    Front front({.max_connections = 4, .threads = 1});
    ASSERT_THAT(front.Bind(), base::IsOk());
    front.Start([&](int fd) {
      ends.Take(fd);
      if (ends.count() == 3) {  // the front's thread waits here for what the test does meanwhile
        first_held.count_down();
        first_may_go.wait();
      } else if (ends.count() == 4) {
        second_held.count_down();
        second_may_go.wait();
      }
    });
    const Client caller(front.port());  // idle for the longest time
    caller.Introduce();
    Await([&] { return ends.count() == 1; });
    const Client idle(front.port());
    idle.Introduce();
    Await([&] { return ends.count() == 2; });
    const Client first(front.port()), second(front.port());
    Await([&] { return front.connections() == 4; });
    first.Introduce();
    first_held.wait();
    const Client late(front.port());
    second.Introduce();
    first_may_go.count_down();  // the front accepts `late`, and holds at `second` before it looks for a place
    second_held.wait();
    caller.Call();
    second_may_go.count_down();
    EXPECT_TRUE(idle.HasEnded());
    EXPECT_THAT(ends.Read(0, 24 + 9 + 10), testing::SizeIs(24 + 9 + 10)) << "the call has arrived";
  }
}

// A client that leaves something behind keeps its place no longer than others.
TEST(FrontTest, BytesThatWaitDoNotKeepAllPlaces) {
  Ends ends;
  Front front({.max_connections = 2, .threads = 1, .budget = {.max_calls = 2, .own_calls = 0}});
  ASSERT_THAT(front.Bind(), base::IsOk());
  front.Start([&](int fd) { ends.Take(fd); });
  const Client one(front.port()), two(front.port());
  one.Introduce();
  two.Introduce();
  Await([&] { return ends.count() == 2; });
  one.Call();
  ASSERT_THAT(ends.Read(0, 24 + 9 + 10), testing::SizeIs(24 + 9 + 10));
  two.Call();  // waits for the budget
  const Client three(front.port());
  EXPECT_TRUE(two.HasEnded()) << "the other one has an open call";
}

}  // namespace
}  // namespace medley::http2_front
