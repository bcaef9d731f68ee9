#include "localcluster/apiserver/log_access.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "common/base/testing/status_matchers.h"

namespace medley::localcluster::apiserver {
namespace {

// Reads until `stop` is requested.
class Endless final : public LogReader {
 public:
  absl::Status ReadLog(const kube::Key&, const LogOptions&, std::stop_token stop,
                       const std::function<bool(std::string_view)>& sink) override {
    sink("begun");
    base::MutexLock lock(mutex_);
    changed_.Wait(mutex_, std::move(stop), [] { return false; });
    ended = true;
    return absl::OkStatus();
  }
  std::atomic<bool> ended = false;

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
};

TEST(LogAccessTest, WithoutAReaderReadsFail) {
  LogAccess access;
  EXPECT_FALSE(access.serving());
  EXPECT_THAT(access.Read({"ns", "p"}, {}, {}, [](std::string_view) { return true; }),
              base::StatusIs(absl::StatusCode::kUnavailable, testing::HasSubstr("ns/p")));
}

TEST(LogAccessTest, SetWaitsUntilReadsOfTheOldReaderEnd) {
  LogAccess access;
  auto reader = std::make_unique<Endless>();
  access.Set(reader.get());
  EXPECT_TRUE(access.serving());
  std::atomic<bool> begun = false;
  std::jthread caller([&] {
    EXPECT_THAT(access.Read({"ns", "p"}, {}, {},
                            [&](std::string_view) {
                              begun = true;
                              begun.notify_all();
                              return true;
                            }),
                base::IsOk());
  });
  begun.wait(false);
  access.Set(nullptr);
  EXPECT_TRUE(reader->ended);
  reader.reset();  // no thread reads from it now
  EXPECT_FALSE(access.serving());
}

TEST(LogAccessTest, TheCallersStopEndsARead) {
  LogAccess access;
  Endless reader;
  access.Set(&reader);
  std::stop_source stop;
  EXPECT_THAT(access.Read({"ns", "p"}, {}, stop.get_token(),
                          [&](std::string_view) {
                            stop.request_stop();
                            return true;
                          }),
              base::IsOk());
  EXPECT_TRUE(reader.ended);
}

}  // namespace
}  // namespace medley::localcluster::apiserver
