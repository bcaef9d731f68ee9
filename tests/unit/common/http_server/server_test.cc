// The limits of the server, against clients that keep to none.
#include "common/http_server/server.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <list>
#include <optional>
#include <thread>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "tests/unit/common/http_server/raw_client.h"

namespace medley::http_server {
namespace {

using base::IsOk;
using base::StatusIs;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr uint64_t kSeed = 20261122;

// Waits until no thread of this process runs but the caller's.
bool OtherThreadsSleep() {
  const auto one_runs = [] {
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
      if (thread.path().filename() == std::to_string(::gettid())) continue;
      std::ifstream file(thread.path() / "stat");  // "pid (name) state ...", where the name may hold anything
      const std::string stat(std::istreambuf_iterator<char>(file), {});
      const size_t name_end = stat.rfind(')');
      if (name_end != std::string::npos && stat.compare(name_end, 3, ") R") == 0) return true;
    }
    return false;
  };
  base::SystemClock clock;
  const base::SteadyTime deadline = clock.Steady() + base::seconds(60);
  while (one_runs()) {
    if (clock.Steady() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

class ServerTest : public testing::Test {
 protected:
  // Answers with the method, the path and the body; /hold waits until Release.
  HttpServer& Start(HttpServer::Options options = {}) {
    server_ = std::make_unique<HttpServer>(std::move(options), [this](const HttpRequest& request) {
      if (request.path == "/throw") throw std::runtime_error("out of luck");
      if (request.path == "/hold") Hold();
      if (request.path == "/stream") {
        return HttpResponse{.stream = [](BodySink& sink, std::stop_token) { sink.Write("a") && sink.Write("bc"); }};
      }
      return HttpResponse{.content_type = "text/plain",
                          .body = request.method + " " + request.path + " " + request.body};
    });
    EXPECT_THAT(server_->Start(), IsOk());
    return *server_;
  }
  RawClient Client() { return RawClient(server_->port()); }
  // What the server answers on a connection of its own.
  std::string Ask(const std::string& request) {
    RawClient client = Client();
    client.Send(request);
    return client.Response();
  }
  void Hold() {
    base::MutexLock lock(mutex_);
    ++held_;
    changed_.NotifyAll();
    changed_.WaitFor(mutex_, {}, base::seconds(60), [&] { return released_; });
  }
  void WaitForHeld(int count) {
    base::MutexLock lock(mutex_);
    EXPECT_TRUE(changed_.WaitFor(mutex_, {}, base::seconds(60), [&] { return held_ == count; }));
  }
  void Release() {
    base::MutexLock lock(mutex_);
    released_ = true;
    changed_.NotifyAll();
  }

  base::Mutex mutex_;
  base::CondVar changed_;
  int held_ = 0;
  bool released_ = false;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(ServerTest, AnswersManyRequestsOnOneConnection) {
  Start();
  RawClient client = Client();
  for (const char* path : {"/a", "/b%20c"}) {
    ASSERT_TRUE(client.Send(Get(path)));
    EXPECT_THAT(client.Response(), StartsWith("HTTP/1.1 200 OK\r\n"));
  }
  ASSERT_TRUE(client.Send("POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"));
  EXPECT_THAT(client.Response(), EndsWith("\r\n\r\nPOST /p abc"));
  ASSERT_TRUE(client.Send("HEAD /h HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  EXPECT_THAT(client.Rest(), EndsWith("\r\n\r\n"));
  EXPECT_EQ(server_->connections(), 1);
}

TEST_F(ServerTest, AnswersPipelinedRequestsInTheirOrder) {
  Start();
  RawClient client = Client();
  std::string requests;
  for (int i = 0; i < 20; ++i) {
    requests += i % 3 == 2 ? fmt::format("POST /{} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nxy", i)
                           : Get("/" + std::to_string(i));
  }
  ASSERT_TRUE(client.Send(requests));
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(client.Response(), EndsWith(i % 3 == 2 ? fmt::format("POST /{} xy", i) : fmt::format("GET /{} ", i)))
        << i;
  }
}

TEST_F(ServerTest, StreamsInChunks) {
  Start();
  RawClient client = Client();
  ASSERT_TRUE(client.Send("GET /stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  EXPECT_THAT(client.Rest(), EndsWith("\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"));
}

TEST_F(ServerTest, HeadersAreBounded) {
  Start();
  EXPECT_THAT(Ask(Get("/ok", kMaxHeaderLines - 4)), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Ask(Get("/many", kMaxHeaderLines)), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(Ask(Get("/long", 60, 1000)), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Ask(Get("/long", 70, 1000)), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(Ask("GET /" + std::string(100'000, 'a')), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(Ask("GET /" + std::string(10'000, '\n')), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(Ask("nonsense\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Ask("GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n"), StartsWith("HTTP/1.1 400"));
}

TEST_F(ServerTest, BodiesAreBounded) {
  Start({.max_body = 1000});
  const auto with = [](size_t size) {
    return fmt::format("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", size, std::string(size, 'x'));
  };
  EXPECT_THAT(Ask(with(1000)), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Ask(with(1001)), StartsWith("HTTP/1.1 413"));
  std::string chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 3; ++i) chunked += "200\r\n" + std::string(512, 'x') + "\r\n";
  EXPECT_THAT(Ask(chunked + "0\r\n\r\n"), StartsWith("HTTP/1.1 413"));
}

TEST_F(ServerTest, TheHandlersExceptionIsAResponse) {
  Start({.refuse = [](int code, const std::string& message) {
    return HttpResponse{.code = code, .body = "refused: " + message};
  }});
  EXPECT_THAT(Ask(Get("/throw")), HasSubstr("HTTP/1.1 500"));
  EXPECT_THAT(Ask(Get("/throw")), EndsWith("refused: the server met an unexpected value"));
}

TEST_F(ServerTest, SilentConnectionsBlockNobody) {
  Start({.max_connections = 8});
  std::list<RawClient> silent;
  for (int i = 0; i < 100; ++i) silent.emplace_back(server_->port());
  for (int i = 0; i < 20; ++i) silent.emplace_back(server_->port()).Send("GET / HTTP/1.1\r\nHo");
  EXPECT_THAT(Ask(Get("/served")), EndsWith("GET /served "));
  EXPECT_TRUE(silent.front().Closed());
}

TEST_F(ServerTest, TheConnectionThatHasWaitedLongestMakesRoom) {
  Start({.max_connections = 2});
  RawClient first = Client(), second = Client();
  // The first waits longer than the second. A connection waits from a moment after its answer was sent: when its thread
  // sleeps, that moment has passed.
  for (RawClient* client : {&first, &second}) {
    ASSERT_TRUE(client->Send(Get("/x")));
    ASSERT_THAT(client->Response(), StartsWith("HTTP/1.1 200"));
    ASSERT_TRUE(OtherThreadsSleep());
  }
  EXPECT_THAT(Ask(Get("/third")), StartsWith("HTTP/1.1 200"));
  EXPECT_TRUE(first.Closed());
  ASSERT_TRUE(second.Send(Get("/y")));
  EXPECT_THAT(second.Response(), StartsWith("HTTP/1.1 200"));
}

TEST_F(ServerTest, WorkIsNeverEvicted) {
  Start({.max_connections = 2});
  RawClient first = Client(), second = Client();
  ASSERT_TRUE(first.Send(Get("/hold")));
  ASSERT_TRUE(second.Send(Get("/hold")));
  WaitForHeld(2);
  EXPECT_THAT(Client().Rest(), StartsWith("HTTP/1.1 429 Too Many Requests\r\n"));
  Release();
  EXPECT_THAT(first.Response(), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(second.Response(), StartsWith("HTTP/1.1 200"));
}

TEST_F(ServerTest, EveryPhaseHasADeadline) {
  Start({.header_timeout = std::chrono::milliseconds(100),
         .idle_timeout = std::chrono::milliseconds(100),
         .transfer_timeout = std::chrono::milliseconds(100)});
  RawClient idle = Client(), header = Client(), body = Client();
  header.Send("GET / HT");
  body.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_TRUE(idle.Closed());
  EXPECT_TRUE(header.Closed());
  EXPECT_TRUE(body.Closed());
}

TEST_F(ServerTest, RequestsShareTheirMemory) {
  Start({.max_request_memory = kMaxHeaderBytes + 3'000});
  RawClient slow = Client();
  // The server asks for the body once it has set the memory for it aside: nearly everything, until the answer is sent.
  slow.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2000\r\nExpect: 100-continue\r\n\r\n");
  ASSERT_THAT(slow.Response(), StartsWith("HTTP/1.1 100"));
  std::string answer = Ask(Get("/x", 100, 60));
  EXPECT_THAT(answer, HasSubstr("the server is reading too many requests"));
  ASSERT_TRUE(slow.Send(std::string(2000, 'x')));
  EXPECT_THAT(slow.Response(), StartsWith("HTTP/1.1 200"));
  // The memory is free a moment after the answer was sent.
  for (int i = 0; i < 1000 && !answer.starts_with("HTTP/1.1 200"); ++i) answer = Ask(Get("/x", 100, 60));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
}

TEST_F(ServerTest, ARequestIsRefusedBeforeItsBody) {
  Start({.admit = [](const HttpRequest& header) -> std::optional<HttpResponse> {
    if (header.authorization == "Bearer secret") return std::nullopt;
    return HttpResponse{.code = 401, .body = fmt::format("{} bytes unread", header.content_length.value_or(0))};
  }});
  const std::string head = "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n";
  EXPECT_THAT(Ask(head + "\r\n"), EndsWith("1000 bytes unread"));  // the body is never sent
  RawClient client = Client();
  ASSERT_TRUE(client.Send(Get("/x")));
  EXPECT_THAT(client.Response(), StartsWith("HTTP/1.1 401"));  // and without a body the connection stays
  ASSERT_TRUE(client.Send(head + "Authorization: Bearer secret\r\n\r\n" + std::string(1000, 'x')));
  EXPECT_THAT(client.Response(), StartsWith("HTTP/1.1 200"));
}

TEST_F(ServerTest, TheHandlerLearnsThatItsClientHasLeft) {
  base::CondVar left;
  bool stopped = false;
  server_ = std::make_unique<HttpServer>(HttpServer::Options(), [&](const HttpRequest& request) {
    base::MutexLock lock(mutex_);
    ++held_;
    changed_.NotifyAll();
    left.WaitFor(mutex_, request.stop, base::seconds(60), [] { return false; });
    stopped = request.stop.stop_requested();
    released_ = true;
    changed_.NotifyAll();
    return HttpResponse();
  });
  ASSERT_THAT(server_->Start(), IsOk());
  {
    RawClient client = Client();
    ASSERT_TRUE(client.Send(Get("/work")));
    WaitForHeld(1);
  }
  base::MutexLock lock(mutex_);
  EXPECT_TRUE(changed_.WaitFor(mutex_, {}, base::seconds(60), [&] { return released_; }));
  EXPECT_TRUE(stopped);
}

TEST_F(ServerTest, BrokenUploadsAreCountedOnce) {
  std::atomic<int> broken = 0, other = 0;
  Start({.ended = [&](const char* reason) { ++(std::string_view(reason) == "broken" ? broken : other); }});
  for (int i = 0; i < 200; ++i) {
    Client().Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{");
    Client().Send("GET / HT");
  }
  EXPECT_THAT(Ask(Get("/served")), EndsWith("GET /served "));
  base::SystemClock clock;
  const base::SteadyTime deadline = clock.Steady() + base::seconds(60);
  while ((broken < 400 || server_->open() > 1) && clock.Steady() < deadline) std::this_thread::yield();
  EXPECT_EQ(broken, 400);
  EXPECT_LE(server_->open(), 1);
  EXPECT_EQ(other, 0);
}

TEST_F(ServerTest, SlowBodiesMakeRoom) {
  Start({.max_connections = 4});
  std::list<RawClient> slow;
  for (int i = 0; i < 4; ++i) {
    RawClient& client = slow.emplace_back(server_->port());
    client.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n");
    ASSERT_THAT(client.Response(), StartsWith("HTTP/1.1 100"));
  }
  // A body is waited for from a moment after the server asked for it.
  ASSERT_TRUE(OtherThreadsSleep());
  EXPECT_THAT(Ask(Get("/served")), EndsWith("GET /served "));
}

TEST_F(ServerTest, APortInUseIsNamed) {
  Start();
  HttpServer other({.port = server_->port()}, {});
  EXPECT_THAT(other.Start(), StatusIs(absl::StatusCode::kUnavailable,
                                      HasSubstr(fmt::format("127.0.0.1:{} is in use", server_->port()))));
  HttpServer named({.address = "localhost"}, {});
  EXPECT_THAT(named.Start(), IsOk());
  HttpServer nowhere({.address = "x"}, {});
  EXPECT_THAT(nowhere.Start(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("address 'x'")));
}

// Mutated requests: an answer or the end of the connection each time, and the server still serves.
TEST_F(ServerTest, MutatedRequestsNeverStopTheServer) {
  Start({.max_connections = 16,
         .max_body = 2000,
         .header_timeout = std::chrono::milliseconds(100),
         .idle_timeout = std::chrono::milliseconds(100),
         .transfer_timeout = std::chrono::milliseconds(100)});
  const std::string bases[] = {
      Get("/a?b=c", 3), Get("/stream"),
      "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello" + Get("/next"),
      "PUT /q HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: v\r\n\r\n"};
  const std::string alphabet = "\r\n :;,/%=0123456789abcdefGETHP\t\x01\xff";
  base::Rng rng(kSeed);
  int answered = 0;
  std::list<RawClient> open;  // some stay, half done
  for (int round = 0; round < 250; ++round) {
    std::string text = bases[rng.Below(std::size(bases))];
    for (uint64_t n = rng.Below(5); n > 0; --n) {
      const size_t at = rng.Below(text.size());
      if (rng.Below(4) == 0) {
        text.insert(at, text.substr(rng.Below(text.size()), rng.Below(60)));
      } else if (rng.Below(3) == 0) {
        text.erase(at, 1 + rng.Below(10));
      } else {
        text[at] = alphabet[rng.Below(alphabet.size())];
      }
      if (text.empty()) text = "x";
    }
    RawClient& client = open.emplace_back(server_->port());
    client.Send(text);
    if (open.size() > 8) {
      // Whoever has answered is done; whoever has not was evicted or timed out, or is answered now.
      answered += open.front().Response().starts_with("HTTP/1.1 ") ? 1 : 0;
      open.pop_front();
    }
  }
  EXPECT_GT(answered, 100) << "seed " << kSeed;
  EXPECT_THAT(Ask(Get("/alive")), EndsWith("GET /alive ")) << "seed " << kSeed;
}

}  // namespace
}  // namespace medley::http_server
