#include "common/object_store/object_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "common/base/status.h"
#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"

namespace medley::object_store {
namespace {

using base::IsOk;
using base::StatusIs;
using http_client::Request;
using http_client::Result;
using testing::AllOf;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;
using testing::Not;

// Time passes only while the code under test sleeps.
class SkippingClock final : public base::Clock {
 public:
  base::WallTime Now() const override { return clock_.Now(); }
  base::SteadyTime Steady() const override { return clock_.Steady(); }
  bool SleepUntil(base::SteadyTime deadline, std::stop_token stop) override {
    if (stop.stop_requested()) return false;
    waits.push_back(deadline - clock_.Steady());
    clock_.Advance(waits.back());
    return true;
  }
  std::vector<base::nanoseconds> waits;

 private:
  base::FakeClock clock_;
};

std::string HeaderOf(const Request& request, const std::string& name) {
  for (const auto& [key, value] : request.headers) {
    if (key == name) return value;
  }
  return "";
}

Result Respond(int code, std::string body = "", http_client::Headers headers = {}) {
  Result result;
  result.response = {code, std::move(headers), std::move(body)};
  return result;
}

class ObjectStoreTest : public testing::Test {
 protected:
  ObjectStore Store(Exchange exchange, Limits limits = {}) {
    Settings settings;
    settings.keys = {"id", "secret", ""};
    return ObjectStore(settings, clock_, 7, limits,
                       [this, exchange = std::move(exchange)](const Request& request, const std::string& what,
                                                              const std::stop_token& stop) {
                         requests_.push_back(request);
                         return exchange(request, what, stop);
                       });
  }
  // Answers requests for a range of `content`.
  static Result Range(const Request& request, const std::string& content, const std::string& etag = "\"1\"") {
    const std::string range = HeaderOf(request, "Range").substr(6);
    const size_t first = std::stoul(range), last = std::stoul(range.substr(range.find('-') + 1));
    return Respond(206, content.substr(first, last - first + 1),
                   {{"ETag", etag}, {"Content-Range", fmt::format("bytes {}-{}/{}", first, last, content.size())}});
  }

  SkippingClock clock_;
  std::vector<Request> requests_;
  const Location at_ = *ParseLocation("s3://bucket/dir/a b.csv");
  const ObjectInfo ten_{.bytes = 10, .etag = "\"1\"", .modified = ""};
};

TEST_F(ObjectStoreTest, ABucketIsInTheHostOrInThePath) {
  ObjectStore aws = Store([](auto&&...) { return Respond(204); });
  EXPECT_THAT(aws.Remove(at_, {}), IsOk());
  EXPECT_EQ(requests_.back().url, "https://bucket.s3.us-east-1.amazonaws.com/dir/a%20b.csv");
  EXPECT_THAT(aws.Remove(*ParseLocation("s3://buck.et/a"), {}), IsOk());
  EXPECT_EQ(requests_.back().url, "https://s3.us-east-1.amazonaws.com/buck.et/a") << "no certificate is for two labels";
  EXPECT_THAT(aws.Remove(*ParseLocation("gs://bucket/a"), {}), IsOk());
  EXPECT_EQ(requests_.back().url, "https://storage.googleapis.com/bucket/a");
  EXPECT_EQ(HeaderOf(requests_.back(), "Authorization"), "") << "the keys of s3:// are not for another place";
  EXPECT_EQ(requests_.back().max_redirects, 0);
}

TEST_F(ObjectStoreTest, AStormIsWaitedOutWithGrowingJitteredWaits) {
  int tries = 0;
  ObjectStore store = Store(
      [&](const Request& request, auto&&...) { return ++tries < 6 ? Respond(503) : Range(request, "0123456789"); });
  EXPECT_EQ(*store.Read(at_, ten_, 2, 3, {}), "234");
  ASSERT_EQ(clock_.waits.size(), 5U);
  for (size_t i = 0; i < 5; ++i) {
    const double base = 0.2 * static_cast<double>(1 << i);
    EXPECT_THAT(base::ToSeconds(clock_.waits[i]), AllOf(Ge(base * 0.5), Le(base * 1.5)));
  }
  std::set<std::string> signatures;
  for (const Request& request : requests_) signatures.insert(HeaderOf(request, "Authorization"));
  EXPECT_THAT(signatures.size(), Ge(2U)) << "each attempt is signed with its own time";
}

TEST_F(ObjectStoreTest, AStormWithoutAnEndEndsInASentence) {
  ObjectStore store = Store([](auto&&...) { return Respond(503, "<Error><Code>SlowDown</Code></Error>"); });
  const absl::Status status = store.Read(at_, ten_, 0, 10, {}).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(base::Message(status), AllOf(HasSubstr("reading s3://bucket/dir/a b.csv"), HasSubstr("SlowDown"),
                                           HasSubstr("after 8 attempts")));
  EXPECT_EQ(requests_.size(), 8U);
}

TEST_F(ObjectStoreTest, AllAttemptsTogetherHaveADeadline) {
  ObjectStore store = Store([&](const Request& request, auto&&...) {
    clock_.waits.clear();
    (void)clock_.SleepFor(request.timeout, {});  // a server that never answers
    Result silent;
    silent.status = base::DeadlineExceeded("reading: no answer");
    return silent;
  });
  const base::SteadyTime latest = clock_.Steady() + base::seconds(601);
  EXPECT_THAT(store.Read(at_, ten_, 0, 10, {}), StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_TRUE(clock_.Steady() <= latest);
}

TEST_F(ObjectStoreTest, WrongKeysAndMissingObjectsAreNotTriedAgain) {
  for (const int code : {403, 404}) {
    requests_.clear();
    ObjectStore store = Store([&](auto&&...) { return Respond(code); });
    EXPECT_FALSE(store.Read(at_, ten_, 0, 10, {}).ok());
    EXPECT_EQ(requests_.size(), 1U) << code;
  }
}

TEST_F(ObjectStoreTest, HalfABodyIsReadAgain) {
  int tries = 0;
  ObjectStore store = Store([&](const Request& request, auto&&...) {
    Result result = Range(request, "0123456789");
    if (++tries == 1) result.response.body.resize(4);
    return result;
  });
  EXPECT_EQ(*store.Read(at_, ten_, 0, 10, {}), "0123456789");
  EXPECT_EQ(tries, 2);
}

TEST_F(ObjectStoreTest, AnObjectThatChangesIsAnErrorThatNamesIt) {
  ObjectStore other = Store([&](const Request& request, auto&&...) { return Range(request, "0123456789", "\"2\""); });
  const absl::Status changed = other.Read(at_, ten_, 0, 5, {}).status();
  EXPECT_THAT(changed, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(base::Message(changed), HasSubstr("s3://bucket/dir/a b.csv: the object changed"));
  EXPECT_EQ(HeaderOf(requests_.back(), "If-Match"), "\"1\"");
  ObjectStore longer = Store([&](const Request& request, auto&&...) { return Range(request, "0123456789abc", ""); });
  EXPECT_THAT(longer.Read(at_, ten_, 0, 5, {}), StatusIs(absl::StatusCode::kFailedPrecondition));
  ObjectStore shorter = Store([&](auto&&...) { return Respond(416); });
  EXPECT_THAT(shorter.Read(at_, ten_, 5, 5, {}), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(ObjectStoreTest, OtherBytesThanThoseAskedForAreNotTaken) {
  ObjectStore store = Store([&](auto&&...) {
    return Respond(206, "56789", {{"ETag", "\"1\""}, {"Content-Range", "bytes 5-9/10"}});
  });
  EXPECT_THAT(store.Read(at_, ten_, 0, 5, {}), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(ObjectStoreTest, AWebServerWithoutRangesIsASentence) {
  const Location web = *ParseLocation("https://host/data.csv?sig=hush");
  ObjectStore whole = Store([](auto&&...) { return Respond(200, "0123456789", {{"ETag", "W/\"1\""}}); });
  const ObjectInfo info = *whole.Stat(web, {});
  EXPECT_EQ(info.bytes, 10);
  EXPECT_EQ(*whole.Read(web, info, 0, 10, {}), "0123456789") << "small files arrive whole";
  const absl::Status part = whole.Read(web, info, 0, 5, {}).status();
  EXPECT_THAT(part, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(base::Message(part), AllOf(HasSubstr("https://host/data.csv"), Not(HasSubstr("hush"))));
  for (const Request& request : requests_) {
    EXPECT_EQ(HeaderOf(request, "Authorization"), "");
    EXPECT_EQ(request.method, "GET");
  }
}

TEST_F(ObjectStoreTest, AnEmptyWebFileHasNoBytes) {
  ObjectStore store = Store([](auto&&...) { return Respond(416, "", {{"Content-Range", "bytes */0"}}); });
  EXPECT_EQ(store.Stat(*ParseLocation("https://host/empty"), {})->bytes, 0);
}

std::string Page(const std::string& keys, const std::string& next) {
  std::string body = "<ListBucketResult>";
  for (const char key : keys) {
    body += fmt::format("<Contents><Key>dir/{}</Key><Size>1</Size><ETag>\"e\"</ETag></Contents>", key);
  }
  if (!next.empty()) {
    body += "<IsTruncated>true</IsTruncated><NextContinuationToken>" + next + "</NextContinuationToken>";
  }
  return body + "</ListBucketResult>";
}

TEST_F(ObjectStoreTest, AListingHasAllPages) {
  ObjectStore store = Store([&](const Request& request, auto&&...) {
    return Respond(200,
                   request.url.find("continuation-token=t") == std::string::npos ? Page("ab", "t") : Page("c", ""));
  });
  const Listing listing = *store.List(*ParseLocation("s3://bucket/dir/"), false, {});
  EXPECT_EQ(listing.objects.size(), 3U);
  EXPECT_EQ(requests_.size(), 2U);
  EXPECT_THAT(requests_[0].url, HasSubstr(".amazonaws.com/?list-type=2&encoding-type=url&prefix=dir%2F"));
}

TEST_F(ObjectStoreTest, HostileListingsAreBounded) {
  int pages = 0;
  ObjectStore endless =
      Store([&](auto&&...) { return Respond(200, Page("ab", "t" + std::to_string(++pages))); }, {.most_listed = 100});
  EXPECT_THAT(endless.List(*ParseLocation("s3://bucket/dir/"), false, {}),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_LE(pages, 51);
  ObjectStore repeats = Store([&](auto&&...) { return Respond(200, Page("a", "t")); });
  EXPECT_THAT(repeats.List(*ParseLocation("s3://bucket/dir/"), false, {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  ObjectStore others = Store([&](auto&&...) { return Respond(200, Page("a", "")); });
  EXPECT_THAT(others.List(*ParseLocation("s3://bucket/other/"), false, {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

// A bucket with uploads in parts, whose answers can be lost.
class Uploads {
 public:
  Result Answer(const Request& request) {
    const std::string url = request.url.substr(request.url.find('?') + 1);
    if (request.method == "POST" && url == "uploads=") {
      mark_ = HeaderOf(request, "x-amz-meta-medley-upload");
      open = true;
      return Respond(200, "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>");
    }
    if (request.method == "PUT" && request.url.find('?') == std::string::npos) {
      object = *request.body;
      return Respond(200);
    }
    if (request.method == "PUT") {
      const int number = std::stoi(url.substr(url.find('=') + 1));
      parts_[number] = *request.body;
      return Respond(200, "", {{"ETag", fmt::format("\"{}\"", number)}});
    }
    if (request.method == "POST") {
      if (!open) return Respond(404, "<Error><Code>NoSuchUpload</Code></Error>");
      open = false;
      object.emplace();
      for (const auto& [number, bytes] : parts_) *object += bytes;
      if (std::exchange(lose_completion, false)) return Respond(500);
      return Respond(200, "<CompleteMultipartUploadResult/>");
    }
    if (request.method == "HEAD") return Respond(200, "", {{"x-amz-meta-medley-upload", foreign ? "other" : mark_}});
    if (request.method == "DELETE") open = false;
    return Respond(204);
  }
  std::optional<std::string> object;
  bool open = false, lose_completion = false, foreign = false;

 private:
  std::string mark_;
  std::map<int, std::string> parts_;
};

absl::Status UploadTwelve(ObjectStore& store, const Location& at) {
  const std::string content = "0123456789ab";
  return store.Upload(at, 12,
                      [&](int64_t offset, int64_t bytes) -> absl::StatusOr<std::string> {
                        return content.substr(static_cast<size_t>(offset), static_cast<size_t>(bytes));
                      },
                      {});
}

TEST_F(ObjectStoreTest, AnUploadInPartsIsWhole) {
  Uploads server;
  ObjectStore store = Store([&](const Request& request, auto&&...) { return server.Answer(request); }, {.piece = 5});
  EXPECT_THAT(UploadTwelve(store, at_), IsOk());
  EXPECT_EQ(server.object, "0123456789ab");
  EXPECT_FALSE(server.open);
}

TEST_F(ObjectStoreTest, ACompletionWhoseAnswerIsLostIsKnownAgain) {
  Uploads server;
  server.lose_completion = true;
  ObjectStore store = Store([&](const Request& request, auto&&...) { return server.Answer(request); }, {.piece = 5});
  EXPECT_THAT(UploadTwelve(store, at_), IsOk());
  EXPECT_EQ(server.object, "0123456789ab");
  Uploads taken;
  taken.lose_completion = taken.foreign = true;
  ObjectStore other = Store([&](const Request& request, auto&&...) { return taken.Answer(request); }, {.piece = 5});
  EXPECT_THAT(UploadTwelve(other, at_), StatusIs(absl::StatusCode::kUnavailable)) << "the object is of another upload";
}

TEST_F(ObjectStoreTest, AnUploadThatFailsRemovesItsParts) {
  Uploads server;
  ObjectStore store = Store(
      [&](const Request& request, auto&&...) {
        return request.url.find("partNumber=2") != std::string::npos ? Respond(403) : server.Answer(request);
      },
      {.piece = 5});
  EXPECT_THAT(UploadTwelve(store, at_), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_FALSE(server.open);
  EXPECT_EQ(server.object, std::nullopt);
}

TEST_F(ObjectStoreTest, AWebServerIsOnlyRead) {
  ObjectStore store = Store([](auto&&...) { return Respond(200); });
  EXPECT_THAT(store.Put(*ParseLocation("https://host/a"), "x", {}), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_TRUE(requests_.empty());
}

TEST_F(ObjectStoreTest, AStopEndsTheWaits) {
  std::stop_source stop;
  ObjectStore store = Store([&](auto&&...) {
    stop.request_stop();
    return Respond(503);
  });
  EXPECT_THAT(store.Stat(at_, stop.get_token()), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(requests_.size(), 1U);
}

}  // namespace
}  // namespace medley::object_store
