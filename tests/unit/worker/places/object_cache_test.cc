#include "worker/places/object_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "tests/unit/worker/places/fake_store.h"
#include "worker/places/cache_room.h"
#include "worker/places/file_lock.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;
using base::IsOk;
using base::StatusIs;
using object_store::ParseLocation;
using testing::AllOf;
using testing::HasSubstr;

object_store::Settings PathStyle() {
  object_store::Settings settings;
  settings.path_style = true;
  return settings;
}

class ObjectCacheTest : public testing::Test {
 protected:
  ObjectCacheTest() : root_(*base::MakeTempDir("object-cache-test")) {}
  ~ObjectCacheTest() override { base::RemoveTempDir(root_); }

  ObjectCache Cache(int64_t most = int64_t{1} << 30) {
    return ObjectCache({.folder = root_ / "cache", .most_bytes = most, .threads = 3}, store_, clock_);
  }
  absl::StatusOr<HeldView> Fetch(const std::string& uri, int64_t most = int64_t{1} << 30) {
    return Cache(most).Fetch(uri, {}, {});
  }
  std::string Content(const HeldView& view, const std::string& uri) const {
    return base::ReadFile(view.PathOf(*ParseLocation(uri))).value_or("absent");
  }
  // Bytes of the objects that the cache has, also unfinished ones.
  int64_t Bytes() const {
    int64_t bytes = 0;
    for (const auto& entry : fs::directory_iterator(root_ / "cache" / "objects")) {
      if (entry.path().extension() != ".lock") bytes += static_cast<int64_t>(entry.file_size());
    }
    return bytes;
  }

  const fs::path root_;
  base::SystemClock clock_;
  FakeStore server_;
  object_store::ObjectStore store_{PathStyle(), clock_, 1, {.attempts = 1, .piece = 4}, server_.exchange()};
};

TEST_F(ObjectCacheTest, AnObjectIsCopiedOnceAndHasItsName) {
  server_.Put("bucket/train/part-1.csv", "0123456789");
  const auto first = Fetch("s3://bucket/train/part-1.csv");
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(Content(*first, "s3://bucket/train/part-1.csv"), "0123456789");
  EXPECT_THAT(first->PathOf(*ParseLocation("s3://bucket/train/part-1.csv")).string(),
              HasSubstr("/s3:/bucket/train/part-1.csv"));
  EXPECT_EQ(server_.reads(), 3);
  ASSERT_THAT(Fetch("s3://bucket/train/part-1.csv"), IsOk());
  EXPECT_EQ(server_.reads(), 3) << "it was not read again";
}

TEST_F(ObjectCacheTest, APatternMeansWhatTheShellMeans) {
  for (const std::string key : {"a-1.csv", "a-2.csv", "b-1.csv", "sub/a-3.csv", ".a-4.csv", "sub/"}) {
    server_.Put("bucket/train/" + key, key);
  }
  const auto view = Fetch("s3://bucket/train/a-*.csv");
  ASSERT_THAT(view, IsOk());
  EXPECT_EQ(Content(*view, "s3://bucket/train/a-2.csv"), "a-2.csv");
  EXPECT_EQ(Content(*view, "s3://bucket/train/b-1.csv"), "absent");
  EXPECT_EQ(Content(*view, "s3://bucket/train/sub/a-3.csv"), "absent");
  const auto all = Fetch("s3://bucket/train/");
  ASSERT_THAT(all, IsOk());
  EXPECT_EQ(Content(*all, "s3://bucket/train/b-1.csv"), "b-1.csv");
  EXPECT_EQ(Content(*all, "s3://bucket/train/sub/a-3.csv"), "absent");
  const absl::Status none = Fetch("s3://bucket/train/c-*.csv").status();
  EXPECT_THAT(none, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(base::Message(none), HasSubstr("s3://bucket/train/c-*.csv matches no object"));
}

TEST_F(ObjectCacheTest, AnObjectWithJustThisNameComesFirst) {
  server_.Put("bucket/x[1].csv", "literal");
  server_.Put("bucket/x1.csv", "pattern");
  const auto view = Fetch("s3://bucket/x[1].csv");
  ASSERT_THAT(view, IsOk());
  EXPECT_EQ(Content(*view, "s3://bucket/x[1].csv"), "literal");
  EXPECT_EQ(Content(*view, "s3://bucket/x1.csv"), "absent");
}

TEST_F(ObjectCacheTest, KeysThatWouldLeaveTheFolderAreRefused) {
  server_.Put("bucket/train/../../../etc/passwd", "x");
  EXPECT_THAT(Fetch("s3://bucket/train/"), StatusIs(absl::StatusCode::kNotFound)) << "* matches no slash";
  server_.Put("bucket/train/..", "x");
  EXPECT_THAT(Fetch("s3://bucket/train/.*"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(ObjectCacheTest, AnObjectThatWasReplacedIsCopiedAgain) {
  server_.Put("bucket/a", "old");
  const auto old = Fetch("s3://bucket/a");
  server_.Put("bucket/a", "new");
  const auto fresh = Fetch("s3://bucket/a");
  ASSERT_THAT(fresh, IsOk());
  EXPECT_EQ(Content(*fresh, "s3://bucket/a"), "new");
  EXPECT_EQ(Content(*old, "s3://bucket/a"), "old") << "a reader keeps what it has";
}

TEST_F(ObjectCacheTest, AnObjectThatChangesMeanwhileIsAnError) {
  server_.Put("bucket/a", "0123456789");
  int reads = 0;
  server_.fault = [&](const http_client::Request& request) {
    return request.method == "GET" && ++reads == 2 ? 412 : 0;
  };
  const absl::Status status = Fetch("s3://bucket/a").status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(base::Message(status), HasSubstr("s3://bucket/a: the object changed"));
  EXPECT_EQ(Bytes(), 0) << "nothing of it stays";
}

TEST_F(ObjectCacheTest, TheBudgetRemovesWhatNobodyReads) {
  for (const std::string key : {"a", "b", "c"}) server_.Put("bucket/" + key, "0123456789");
  {
    const auto a = Fetch("s3://bucket/a", 25);
    ASSERT_THAT(a, IsOk());
    ASSERT_THAT(Fetch("s3://bucket/b", 25), IsOk());
    const auto c = Fetch("s3://bucket/c", 25);
    ASSERT_THAT(c, IsOk());
    EXPECT_EQ(Content(*a, "s3://bucket/a"), "0123456789") << "this process reads it";
    EXPECT_LE(Bytes(), 25);
    const absl::Status full = Fetch("s3://bucket/b", 25).status();
    EXPECT_THAT(full, StatusIs(absl::StatusCode::kResourceExhausted));
    EXPECT_THAT(base::Message(full), AllOf(HasSubstr("s3://bucket/b"), HasSubstr("MEDLEY_CACHE_BYTES")));
  }
  ASSERT_THAT(Fetch("s3://bucket/b", 25), IsOk());
  EXPECT_LE(Bytes(), 25);
  EXPECT_THAT(Fetch("s3://bucket/a", 9), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_F(ObjectCacheTest, AFileOfTheWrongLengthIsCopiedAgain) {
  server_.Put("bucket/a", "0123456789");
  { ASSERT_THAT(Fetch("s3://bucket/a"), IsOk()); }
  for (const auto& entry : fs::directory_iterator(root_ / "cache" / "objects")) fs::resize_file(entry.path(), 3);
  const auto again = Fetch("s3://bucket/a");
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(Content(*again, "s3://bucket/a"), "0123456789");
}

TEST_F(ObjectCacheTest, ProcessesThatAreKilledAnywhereLeaveNothingThatIsRead) {
  const std::string content(64, 'x');
  for (const std::string key : {"a", "b"}) server_.Put("bucket/" + key, content);
  // Each child ends before its nth request; the objects together need 32 ranges and one listing.
  for (int last = 0; last < 36; ++last) {
    const pid_t child = fork();
    if (child == 0) {
      int requests = 0;
      server_.fault = [&](const http_client::Request&) {
        if (requests++ == last) kill(getpid(), SIGKILL);
        return 0;
      };
      _exit(Fetch("s3://bucket/?", 128).ok() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) << last;
    for (const auto& entry : fs::directory_iterator(root_ / "cache" / "objects")) {
      if (!entry.path().has_extension()) {
        EXPECT_EQ(*base::ReadFile(entry.path()), content) << last;
      }
    }
  }
  const auto view = Fetch("s3://bucket/?", 128);
  ASSERT_THAT(view, IsOk());
  EXPECT_EQ(Content(*view, "s3://bucket/a") + Content(*view, "s3://bucket/b"), content + content);
  EXPECT_LE(Bytes(), 128);
}

TEST_F(ObjectCacheTest, ProcessesThatNeedTheSameCopyItOnce) {
  server_.Put("bucket/a", std::string(400, 'x'));
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { EXPECT_THAT(Cache().Fetch("s3://bucket/a", {}, {}), IsOk()); });
  }
  threads.clear();
  EXPECT_EQ(server_.reads(), 100);
}

TEST_F(ObjectCacheTest, AWaitForAnotherProcessEndsWithAStop) {
  server_.Put("bucket/a", "0123456789");
  { ASSERT_THAT(Fetch("s3://bucket/a"), IsOk()); }
  fs::path object;
  for (const auto& entry : fs::directory_iterator(root_ / "cache" / "objects")) object = entry.path();
  const auto lock = FileLock::Try(object.string() + ".lock", LockKind::kAlone);
  ASSERT_THAT(lock, IsOk());
  fs::remove(object);
  std::stop_source stop;
  int waits = 0;
  const auto fetched = Cache().Fetch("s3://bucket/a", stop.get_token(), [&](int64_t bytes) {
    EXPECT_EQ(bytes, 0);
    if (++waits == 2) stop.request_stop();
  });
  EXPECT_THAT(fetched, StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(ObjectCacheTest, AnEmptyObjectIsAnEmptyFile) {
  server_.Put("bucket/empty", "");
  const auto view = Fetch("s3://bucket/empty");
  ASSERT_THAT(view, IsOk());
  EXPECT_EQ(Content(*view, "s3://bucket/empty"), "");
}

}  // namespace
}  // namespace medley::worker
