// The client against a server in another process, over TLS, that checks signatures and fails on demand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "tests/integration/object_store/server_process.h"

namespace medley::object_store {
namespace {

using base::IsOk;
using base::StatusIs;
using testing::HasSubstr;

const Limits kQuick{.attempts = 6,
                    .total = base::seconds(120),
                    .silence = base::seconds(1),
                    .first_wait = base::milliseconds(5),
                    .most_wait = base::milliseconds(50),
                    .piece = 100'000};

class ObjectStoreServerTest : public testing::Test {
 protected:
  ObjectStoreServerTest() {
    // The machine's own proxy, if it has one, does not know this server.
    setenv("no_proxy", "localhost,127.0.0.1", 1);
  }
  Location At(const std::string& key) const { return *ParseLocation("s3://bucket/" + key); }
  absl::Status Write(const Location& at, const std::string& content) {
    return store_.Upload(at, static_cast<int64_t>(content.size()),
                         [&](int64_t offset, int64_t bytes) -> absl::StatusOr<std::string> {
                           return content.substr(static_cast<size_t>(offset), static_cast<size_t>(bytes));
                         },
                         {});
  }
  absl::StatusOr<std::string> ReadWhole(const Location& at) {
    MEDLEY_ASSIGN_OR_RETURN(const ObjectInfo info, store_.Stat(at, {}));
    std::string content;
    for (int64_t offset = 0; offset < info.bytes; offset += kQuick.piece) {
      MEDLEY_ASSIGN_OR_RETURN(const std::string piece,
                              store_.Read(at, info, offset, std::min(kQuick.piece, info.bytes - offset), {}));
      content += piece;
    }
    return content;
  }

  ServerProcess server_;
  base::SystemClock clock_;
  ObjectStore store_{server_.settings(), clock_, 1, kQuick};
};

std::string Content(size_t bytes) {
  std::string content(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) content[i] = static_cast<char>(i * 31 + i / 251);
  return content;
}

TEST_F(ObjectStoreServerTest, WhatIsWrittenIsReadWhateverItsName) {
  for (const std::string key : {"a", "dir/a b+c%d.csv", "\xc3\xbcml\xc3\xa4ut/*?[x]", "q?a=b&c", "~-_.!'()"}) {
    const std::string content = Content(250'001) + key;
    ASSERT_THAT(Write(At(key), content), IsOk()) << key;
    EXPECT_EQ(ReadWhole(At(key)).value_or("?"), content) << key;
  }
  const auto listing = store_.List(At(""), false, {});
  ASSERT_THAT(listing, IsOk());
  EXPECT_EQ(listing->objects.size(), 5U) << "in pages of three";
  ASSERT_THAT(store_.Copy(At("a"), At("dir/a b+c%d.csv"), {}), IsOk());
  EXPECT_EQ(ReadWhole(At("dir/a b+c%d.csv")).value_or("?"), Content(250'001) + "a");
  ASSERT_THAT(store_.Remove(At("a"), {}), IsOk());
  EXPECT_THAT(store_.Remove(At("a"), {}), IsOk()) << "it was removed before";
  EXPECT_THAT(store_.Stat(At("a"), {}), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(ObjectStoreServerTest, StormsHalfBodiesAndSilenceAreWaitedOut) {
  const std::string content = Content(300'000);
  for (const std::string fault : {"storm", "lost"}) {
    server_.Fail(fault, 3);
    ASSERT_THAT(Write(At("x"), content), IsOk()) << fault;
  }
  for (const std::string fault : {"storm", "half", "long", "silent"}) {
    server_.Fail(fault, 2);
    EXPECT_EQ(ReadWhole(At("x")).value_or("?"), content) << fault;
  }
}

TEST_F(ObjectStoreServerTest, AStormWithoutAnEndIsASentence) {
  ASSERT_THAT(Write(At("x"), "content"), IsOk());
  server_.Fail("storm", 1'000'000);
  const int before = server_.seen();
  const absl::Status status = ReadWhole(At("x")).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(base::Message(status), HasSubstr("after 6 attempts"));
  EXPECT_EQ(server_.seen() - before, 6);
}

TEST_F(ObjectStoreServerTest, WrongKeysAreASentenceAtOnce) {
  ASSERT_THAT(Write(At("x"), "content"), IsOk());
  const auto refused = [&](Settings settings, const std::string& why) {
    ObjectStore other(std::move(settings), clock_, 1, kQuick);
    const int before = server_.seen();
    const absl::Status status = other.Stat(At("x"), {}).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kPermissionDenied)) << why;
    EXPECT_THAT(base::Message(status), HasSubstr("s3://bucket/x: access denied: check AWS_ACCESS_KEY_ID"));
    EXPECT_THAT(base::Message(status), HasSubstr(why));
    EXPECT_LE(server_.seen() - before, 2);
  };
  Settings wrong = server_.settings();
  wrong.keys.secret_access_key = "another";
  refused(wrong, "SignatureDoesNotMatch");
  wrong = server_.settings();
  wrong.keys = {};
  refused(wrong, "AccessDenied");
}

TEST_F(ObjectStoreServerTest, MissingBucketsAndObjectsHaveDifferentSentences) {
  ASSERT_THAT(Write(At("x"), "content"), IsOk());
  EXPECT_THAT(base::Message(store_.Stat(At("y"), {}).status()), HasSubstr("s3://bucket/y: it does not exist"));
  EXPECT_THAT(base::Message(store_.Stat(*ParseLocation("s3://nowhere/y"), {}).status()),
              HasSubstr("the bucket does not exist"));
}

TEST_F(ObjectStoreServerTest, ARedirectIsNotFollowed) {
  ASSERT_THAT(Write(At("x"), "content"), IsOk());
  server_.Fail("redirect", 2);
  const int before = server_.seen();
  EXPECT_THAT(store_.Stat(At("x"), {}), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_EQ(server_.seen() - before, 2) << "one to know that it exists, one to know why not; none elsewhere";
}

TEST_F(ObjectStoreServerTest, AServerThatIsNotTrustedGetsNoRequest) {
  Settings settings = server_.settings();
  settings.authorities.clear();
  ObjectStore other(settings, clock_, 1, kQuick);
  const int before = server_.seen();
  EXPECT_THAT(other.Stat(At("x"), {}), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(server_.seen(), before);
}

TEST_F(ObjectStoreServerTest, HostileListingsAreErrors) {
  server_.Fail("xml", 1);
  EXPECT_THAT(store_.List(At(""), false, {}), StatusIs(absl::StatusCode::kInvalidArgument));
  server_.Fail("endless", 300);
  const int before = server_.seen();
  EXPECT_THAT(store_.List(At(""), false, {}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_LE(server_.seen() - before, 101);
}

TEST_F(ObjectStoreServerTest, AnObjectThatIsReplacedMeanwhileIsAnError) {
  ASSERT_THAT(Write(At("x"), Content(300'000)), IsOk());
  const ObjectInfo info = *store_.Stat(At("x"), {});
  ASSERT_THAT(store_.Read(At("x"), info, 0, 100'000, {}), IsOk());
  ASSERT_THAT(Write(At("x"), Content(300'001)), IsOk());
  EXPECT_THAT(store_.Read(At("x"), info, 100'000, 100'000, {}), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(ObjectStoreServerTest, AnUploadThatIsKilledAnywhereLeavesNoObject) {
  for (int last = 0; last < 4; ++last) {
    const pid_t child = fork();
    if (child == 0) {
      ObjectStore own(server_.settings(), clock_, 2, kQuick);
      int parts = 0;
      const std::string part = Content(100'000);
      (void)own.Upload(At("killed"), 400'000,
                       [&](int64_t, int64_t) -> absl::StatusOr<std::string> {
                         if (parts++ == last) kill(getpid(), SIGKILL);
                         return part;
                       },
                       {});
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status)) << last;
    EXPECT_THAT(store_.Stat(At("killed"), {}), StatusIs(absl::StatusCode::kNotFound)) << last;
  }
}

}  // namespace
}  // namespace medley::object_store
