// CurlFetcher against a loopback server: what works, and every way in which a network fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <thread>

#include "common/base/file.h"
#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "scheduler-service/feeds/http_fetcher.h"
#include "tests/integration/kube/certificates.h"
#include "tests/integration/scheduler/replay_server.h"

namespace medley::sched {
namespace {

using absl::StatusCode;
using base::IsOk;
using base::StatusIs;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using Fault = ReplayReply::Fault;

std::string Gzip(const std::string& text) {
  z_stream stream{};
  MEDLEY_CHECK(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK, "deflateInit2");
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  MEDLEY_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END, "deflate");
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

class PriceFetcherTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = *base::MakeTempDir("price-fetcher"); }
  void TearDown() override { base::RemoveTempDir(folder_); }

  absl::StatusOr<FetchReply> Get(const std::string& url, HttpOptions options = {}) {
    CurlFetcher fetcher(std::move(options), clock_);
    return fetcher.Fetch({.url = url}, {});
  }
  std::string File(const std::string& name, const std::string& text) {
    EXPECT_THAT(base::WriteFileAtomic(folder_ / name, text), IsOk());
    return folder_ / name;
  }

  std::filesystem::path folder_;
  base::FakeClock clock_{*base::ParseTime("2026-08-01T00:00:00Z") - base::seconds(1000)};  // it begins 1000 s later
};

TEST_F(PriceFetcherTest, RequestsCarryWhatTheyWereGiven) {
  const ReplayServer server([](const ReplayRequest&) {
    return ReplayReply{.headers = {{"ETag", "\"v1\""}, {"Last-Modified", "Sat, 01 Aug 2026 00:00:00 GMT"}},
                       .body = "x"};
  });
  CurlFetcher fetcher({.bearer_token_file = File("token", "first\n")}, clock_);
  const auto reply = fetcher.Fetch(
      {.url = server.url() + "/a?b=c", .headers = {{"X-Other", "1"}}, .etag = "\"v0\"", .last_modified = "Fri"}, {});
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->body, "x");
  EXPECT_EQ(reply->etag, "\"v1\"");
  EXPECT_EQ(reply->last_modified, "Sat, 01 Aug 2026 00:00:00 GMT");
  File("token", "second");
  ASSERT_THAT(fetcher.Fetch({.url = server.url(), .form = "a=b"}, {}), IsOk());
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].method, "GET");
  EXPECT_EQ(requests[0].target, "/a?b=c");
  EXPECT_EQ(requests[0].headers.at("x-other"), "1");
  EXPECT_EQ(requests[0].headers.at("if-none-match"), "\"v0\"");
  EXPECT_EQ(requests[0].headers.at("if-modified-since"), "Fri");
  EXPECT_EQ(requests[0].headers.at("user-agent"), "medley-scheduler");
  EXPECT_EQ(requests[0].headers.at("authorization"), "Bearer first");
  EXPECT_EQ(requests[1].headers.at("authorization"), "Bearer second");  // read again
  EXPECT_EQ(requests[1].method, "POST");
  EXPECT_EQ(requests[1].body, "a=b");
  EXPECT_EQ(requests[1].headers.at("content-type"), "application/x-www-form-urlencoded");
}

TEST_F(PriceFetcherTest, RefusesInvalidTokenFiles) {
  const auto with = [&](const std::string& file) { return Get("http://127.0.0.1:1", {.bearer_token_file = file}); };
  EXPECT_THAT(with(folder_ / "absent"), StatusIs(StatusCode::kFailedPrecondition, HasSubstr("absent")));
  EXPECT_THAT(with(File("empty", " \n")), StatusIs(StatusCode::kFailedPrecondition, HasSubstr("is empty")));
  EXPECT_THAT(with(File("two", "a\r\nX-Evil: b")), StatusIs(StatusCode::kFailedPrecondition, HasSubstr("one line")));
}

TEST_F(PriceFetcherTest, GzipIsTakenApartAndBounded) {
  const std::string text(10'000, 'a');
  std::string body = Gzip(text);
  const ReplayServer server([&](const ReplayRequest&) {
    return ReplayReply{.headers = {{"Content-Encoding", "gzip"}}, .body = body};
  });
  const auto reply = Get(server.url());
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->body, text);
  EXPECT_EQ(server.requests()[0].headers.at("accept-encoding"), "gzip");
  body = Gzip(std::string(size_t{65} << 20, '\0'));  // 65 KB on the wire
  EXPECT_LT(body.size(), size_t{1} << 17);
  EXPECT_THAT(Get(server.url()), StatusIs(StatusCode::kResourceExhausted, HasSubstr("larger than 67108864 bytes")));
  body = "this is not gzip";
  EXPECT_THAT(Get(server.url()), StatusIs(StatusCode::kUnavailable));
}

TEST_F(PriceFetcherTest, BodyOverTheLimit) {
  const std::string body(size_t{65} << 20, 'a');
  const ReplayServer server([&](const ReplayRequest&) { return ReplayReply{.body = body}; });
  EXPECT_THAT(Get(server.url()), StatusIs(StatusCode::kResourceExhausted, HasSubstr("larger than 67108864 bytes")));
  EXPECT_THAT(Get(server.url(), {.max_body_bytes = body.size()}), IsOk());
  EXPECT_THAT(Get(server.url(), {.max_body_bytes = body.size() - 1}), StatusIs(StatusCode::kResourceExhausted));
}

TEST_F(PriceFetcherTest, ABodyThatIsCutOffIsAnError) {
  Fault fault = Fault::kTruncate;
  const ReplayServer server([&](const ReplayRequest&) { return ReplayReply{.body = "half of it", .fault = fault}; });
  EXPECT_THAT(Get(server.url()), StatusIs(StatusCode::kUnavailable));
  fault = Fault::kReset;
  EXPECT_THAT(Get(server.url()), StatusIs(StatusCode::kUnavailable));
}

TEST_F(PriceFetcherTest, HangEndsAtTheDeadlineAndAtStop) {
  const ReplayServer server([](const ReplayRequest&) { return ReplayReply{.fault = Fault::kHang}; });
  EXPECT_THAT(Get(server.url(), {.total_timeout = std::chrono::milliseconds(200)}),
              StatusIs(StatusCode::kDeadlineExceeded, HasSubstr(server.url())));
  CurlFetcher fetcher({}, clock_);  // 60 s
  std::stop_source stop;
  absl::StatusOr<FetchReply> reply;
  const size_t before = server.requests().size();  // 0 if the first request's deadline passed before it was sent
  {
    const std::jthread asking([&] { reply = fetcher.Fetch({.url = server.url()}, stop.get_token()); });
    ASSERT_TRUE(server.WaitForRequests(before + 1));
    stop.request_stop();
  }
  EXPECT_THAT(reply, StatusIs(StatusCode::kCancelled));
}

TEST_F(PriceFetcherTest, NobodyThere) {
  const RefusingPort nobody;
  EXPECT_THAT(Get(fmt::format("http://127.0.0.1:{}/?key=secret", nobody.port())),
              StatusIs(StatusCode::kUnavailable, AllOf(HasSubstr("onnect"), Not(HasSubstr("secret")))));
  // RFC 6761: .invalid has no address, ever.
  const auto nowhere = Get("http://prices.invalid/", {.connect_timeout = std::chrono::seconds(2)});
  EXPECT_THAT(nowhere.status().code(), AnyOf(StatusCode::kUnavailable, StatusCode::kDeadlineExceeded));
  EXPECT_THAT(base::Message(nowhere.status()), HasSubstr("prices.invalid"));
}

TEST_F(PriceFetcherTest, NoUrl) {
  for (const char* url : {"", "prices", "ftp://127.0.0.1/", "file:///etc/passwd", "http://", "http://a b/"}) {
    EXPECT_THAT(Get(url), StatusIs(StatusCode::kInvalidArgument)) << url;
  }
}

TEST_F(PriceFetcherTest, RedirectsWithinLimits) {
  const ReplayServer other([](const ReplayRequest&) { return ReplayReply{.body = "other"}; });
  const ReplayServer server([&](const ReplayRequest& request) {
    if (request.target == "/there") return ReplayReply{.body = "there"};
    std::string to = "/there";
    if (request.target == "/loop") to = "/loop";
    if (request.target == "/file") to = "file:///etc/passwd";
    if (request.target == "/other") to = other.url();
    return ReplayReply{.code = 302, .headers = {{"Location", to}}, .body = "moved"};
  });
  const auto moved = Get(server.url() + "/here");
  ASSERT_THAT(moved, IsOk());
  EXPECT_EQ(moved->code, 200);
  EXPECT_EQ(moved->body, "there");
  EXPECT_THAT(Get(server.url() + "/loop"), StatusIs(StatusCode::kPermissionDenied, HasSubstr("more than 3 redirects")));
  EXPECT_THAT(Get(server.url() + "/file"), StatusIs(StatusCode::kPermissionDenied, HasSubstr("another scheme")));
  // A token is for the host that it was meant for.
  EXPECT_EQ(Get(server.url() + "/other", {.bearer_token_file = File("token", "t")})->body, "other");
  EXPECT_EQ(other.requests().at(0).headers.count("authorization"), 0u);
  // What is signed is not sent elsewhere: a POST is not redirected.
  CurlFetcher fetcher({}, clock_);
  const auto posted = fetcher.Fetch({.url = server.url() + "/here", .form = "a=b"}, {});
  ASSERT_THAT(posted, IsOk());
  EXPECT_EQ(posted->code, 302);
  EXPECT_THAT(StatusOfReply(*posted, "x"), StatusIs(StatusCode::kPermissionDenied));
}

TEST_F(PriceFetcherTest, TlsIsVerifiedAndNeverLeft) {
  const kube::TestAuthority authority, impostor;
  const kube::PemPair pair = authority.Issue("prices", "IP:127.0.0.1");
  const ReplayServer::Tls tls{pair.certificate, pair.key};
  const ReplayServer plain([](const ReplayRequest&) { return ReplayReply{.body = "plain"}; });
  const ReplayServer server(
      [&](const ReplayRequest& request) {
        if (request.target != "/away") return ReplayReply{.body = "secret"};
        return ReplayReply{.code = 301, .headers = {{"Location", plain.url()}}};
      },
      &tls);
  const HttpOptions trusting{.ca_file = File("ca.pem", authority.certificate())};
  EXPECT_EQ(Get(server.url(), trusting)->body, "secret");
  EXPECT_THAT(Get(server.url()), StatusIs(StatusCode::kFailedPrecondition, HasSubstr("TLS")));
  EXPECT_THAT(Get(server.url(), {.ca_file = File("other.pem", impostor.certificate())}),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("TLS")));
  EXPECT_THAT(Get(server.url(), {.ca_file = folder_ / "absent.pem"}), StatusIs(StatusCode::kFailedPrecondition));
  // Nobody speaks TLS there: an answer in clear, or none.
  EXPECT_THAT(base::Message(Get(fmt::format("https://127.0.0.1:{}/", plain.port()), trusting).status()),
              HasSubstr("TLS"));
  EXPECT_THAT(Get(server.url() + "/away", trusting), StatusIs(StatusCode::kPermissionDenied));
  EXPECT_TRUE(plain.requests().empty());
  // The right authority, another name.
  const kube::PemPair other = authority.Issue("prices", "DNS:prices.example");
  const ReplayServer::Tls other_tls{other.certificate, other.key};
  const ReplayServer misnamed([](const ReplayRequest&) { return ReplayReply{}; }, &other_tls);
  EXPECT_THAT(Get(misnamed.url(), trusting), StatusIs(StatusCode::kFailedPrecondition, HasSubstr("TLS")));
  EXPECT_TRUE(misnamed.requests().empty());
}

TEST_F(PriceFetcherTest, RetryAfterInSecondsAndAsDate) {
  std::string value;
  const ReplayServer server([&](const ReplayRequest&) {
    return ReplayReply{.code = 429, .headers = {{"Retry-After", value}}, .body = "slow down"};
  });
  const auto wait = [&](const std::string& text) {
    value = text;
    const auto reply = Get(server.url());
    EXPECT_THAT(reply, IsOk());
    EXPECT_EQ(reply->code, 429);
    return reply->retry_after;
  };
  EXPECT_EQ(wait("120"), std::chrono::seconds(120));
  EXPECT_EQ(wait("Sat, 01 Aug 2026 00:01:30 GMT"),
            std::chrono::seconds(90));  // our clock: 00:00:00
  EXPECT_EQ(wait("Fri, 31 Jul 2026 00:00:00 GMT"), std::chrono::seconds(0));
  EXPECT_EQ(wait("99999999999"), std::chrono::hours(24));
  EXPECT_EQ(wait("-5"), std::nullopt);
  EXPECT_EQ(wait("soon"), std::nullopt);
}

TEST_F(PriceFetcherTest, ProxiesOnlyWhenConfigured) {
  const ReplayServer server([](const ReplayRequest&) { return ReplayReply{.body = "direct"}; });
  const ReplayServer proxy([](const ReplayRequest&) { return ReplayReply{.body = "proxied"}; });
  setenv("http_proxy", proxy.url().c_str(), 1);
  setenv("no_proxy", "", 1);
  EXPECT_EQ(Get(server.url())->body, "direct");
  EXPECT_EQ(Get(server.url(), {.proxy_from_environment = true})->body, "proxied");
  unsetenv("http_proxy");
  unsetenv("no_proxy");
  EXPECT_EQ(Get("http://prices.invalid/x", {.proxy = proxy.url()})->body, "proxied");
  EXPECT_EQ(proxy.requests().back().target, "http://prices.invalid/x");
}

}  // namespace
}  // namespace medley::sched
