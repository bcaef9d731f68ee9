// The requests of `kubectl logs`, for logs as a node keeps them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/file.h"
#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "localcluster/node/log_files.h"
#include "tests/integration/kubectl/kubectl.h"

namespace medley::kube {
namespace {

using testing::HasSubstr;

constexpr char kBegin[] = "2026-11-21T07:15:00.000000000Z";
constexpr char kLater[] = "2026-11-21T08:15:00.250000000Z";

// The current instance wrote two lines, and a third an hour later; the previous instance wrote one.
class LogsTest : public testing::Test, public localcluster::LogReader {
 protected:
  void SetUp() override {
    Write("0.log", "before\n");
    Write("1.log", "one\ntwo\n");
    clock_.Advance(base::seconds(3600) + base::milliseconds(250));
    Write("1.log", "three\n");
    cluster_.embedded().SetLogReader(this);
    Ok("run p --image=busybox:1 --restart=Never");
  }
  void TearDown() override { cluster_.embedded().SetLogReader(nullptr); }

  void Write(const std::string& file, const std::string& text) {
    auto writer = localcluster::LogWriter::Open(cluster_.dir() / "logs" / file, 1 << 20, clock_);
    ASSERT_THAT(writer, base::IsOk());
    writer->Write(text);
  }
  absl::Status ReadLog(const Key&, const localcluster::LogOptions& options, std::stop_token stop,
                       const std::function<bool(std::string_view)>& sink) override {
    return localcluster::ReadLogFiles(
        cluster_.dir() / "logs" / (options.previous ? "0.log" : "1.log"), options, clock_, std::move(stop),
        [] { return true; }, sink);
  }
  std::string Ok(const std::string& args) {
    const Output output = cluster_.Run(args);
    EXPECT_EQ(output.code, 0) << "kubectl " << args << "\n" << output.text;
    return output.text;
  }
  std::string Refused(const std::string& query) {
    const Output output = cluster_.Run("get --raw '/api/v1/namespaces/" + cluster_.ns() + "/pods/p/log?" + query + "'");
    EXPECT_NE(output.code, 0) << output.text;
    return output.text;
  }
  // A FakeClock starts at 1000 s.
  base::FakeClock clock_{*base::ParseTime("2026-11-21T07:15:00Z") - base::seconds(1000)};
  KubectlCluster cluster_{ServerKind::kEmbedded};  // the real server of the tests has no kubelet
};

TEST_F(LogsTest, LinesCarryTheirTimesWhenAsked) {
  EXPECT_EQ(Ok("logs p"), "one\ntwo\nthree\n");
  EXPECT_EQ(Ok("logs p --timestamps"), std::string(kBegin) + " one\n" + kBegin + " two\n" + kLater + " three\n");
  EXPECT_EQ(Ok("logs p --timestamps -f --tail=1"), std::string(kLater) + " three\n");
  EXPECT_EQ(Ok("logs p --timestamps --previous"), std::string(kBegin) + " before\n");
}

TEST_F(LogsTest, TheBeginningAndTheLengthAreChosen) {
  EXPECT_EQ(Ok("logs p --tail=2"), "two\nthree\n");
  EXPECT_EQ(Ok("logs p --tail=0"), "");
  EXPECT_EQ(Ok("logs p --limit-bytes=5"), "one\nt");
  EXPECT_EQ(Ok("logs p --previous"), "before\n");
  EXPECT_EQ(Ok("logs p --since-time=2026-11-21T08:00:00Z"), "three\n");
  EXPECT_EQ(Ok("logs p --since-time=2026-11-21T09:15:00+01:00"), "three\n");
  EXPECT_EQ(Ok("logs p --since-time=2026-11-21T08:15:01Z"), "");
  EXPECT_EQ(Ok("logs p --since-time=2026-11-21T07:00:00Z --tail=2"), "two\nthree\n");
}

// sinceSeconds counts back from the server's current time.
TEST_F(LogsTest, SinceCountsBackFromNow) {
  clock_.Advance(base::SystemClock().Now() - clock_.Now());
  Write("1.log", "now\n");
  EXPECT_EQ(Ok("logs p --since=10m"), "now\n");
  EXPECT_THAT(Ok("logs p --since=876000h"), HasSubstr("one\n"));
}

TEST_F(LogsTest, TheContainerIsNamedAndChecked) {
  EXPECT_EQ(Ok("logs p -c p --tail=1"), "three\n");
  EXPECT_EQ(Ok("logs -f p --tail=2"), "two\nthree\n");
  cluster_.embedded().SetLogReader(nullptr);
  EXPECT_THAT(cluster_.Run("logs p").text, HasSubstr("no node serves the logs of this pod"));
}

// A real server answers these requests with the same messages.
TEST_F(LogsTest, OptionsThatMakeNoSenseAreRefused) {
  EXPECT_THAT(Refused("tailLines=-1"),
              HasSubstr("The PodLogOptions \"p\" is invalid: tailLines: Invalid value: -1: must be "
                        "greater than or equal to 0"));
  EXPECT_THAT(Refused("limitBytes=0"), HasSubstr("limitBytes: Invalid value: 0: must be greater than 0"));
  EXPECT_THAT(Refused("sinceSeconds=0"), HasSubstr("sinceSeconds: Invalid value: 0: must be greater than 0"));
  EXPECT_THAT(Refused("sinceSeconds=5&sinceTime=2020-01-01T00:00:00Z"),
              HasSubstr("at most one of `sinceTime` or `sinceSeconds` may be specified"));
  EXPECT_THAT(Refused("tailLines=x"), HasSubstr("strconv.ParseInt: parsing \"x\": invalid syntax"));
  EXPECT_THAT(Refused("sinceTime=yesterday"), HasSubstr("(BadRequest)"));
  EXPECT_THAT(Refused("container=nope"), HasSubstr("container nope is not valid for pod p"));
}

}  // namespace
}  // namespace medley::kube
