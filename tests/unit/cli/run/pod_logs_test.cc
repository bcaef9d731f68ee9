#include "cli/run/pod_logs.h"

#include <gtest/gtest.h>

#include <fstream>

#include "common/base/file.h"
#include "common/base/testing/temp_dir.h"

namespace medley::cli {
namespace {

namespace fs = std::filesystem;

const char kReading[] = R"({"level":"info","msg":"reading the training data: 3.0 of 4.0 MB (75 %), 0 rows"})";
const char kRead[] = R"({"level":"info","msg":"read the training data","rows":"12"})";

class PodLogsTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = *base::MakeTempDir("pod-logs"); }
  void TearDown() override { base::RemoveTempDir(folder_); }

  void Write(const std::string& pod, const std::string& text, int seconds) {
    const fs::path logs = folder_ / "node" / "pods" / ("default_" + pod + "_uid") / "logs" / "worker";
    fs::create_directories(logs);
    std::ofstream(logs / "0.log", std::ios::binary) << text;
    fs::last_write_time(logs / "0.log", fs::file_time_type(std::chrono::seconds(seconds)));
  }

  fs::path folder_;
};

TEST_F(PodLogsTest, TheNewestPodThatReadsSaysHowFarItIs) {
  EXPECT_EQ(ReadingLine(folder_), "");
  Write("a", std::string(10'000, 'x') + "\n" + kReading + "\n", 10);  // the line is at the end of a long log
  Write("b", std::string(kReading) + "\n" + kRead + "\n", 30);
  EXPECT_EQ(ReadingLine(folder_), "a: reading the training data: 3.0 of 4.0 MB (75 %), 0 rows");
  Write("c", std::string(kReading) + "\n", 20);
  EXPECT_EQ(ReadingLine(folder_).substr(0, 2), "c:");
  Write("c", std::string(kReading) + "\n" + kRead + "\n", 40);
  Write("a", std::string(kReading) + "\n" + kRead + "\n", 41);
  EXPECT_EQ(ReadingLine(folder_), "");
}

TEST(ReadingMessageTest, OtherLinesSayNothing) {
  EXPECT_EQ(ReadingMessage(kReading).substr(0, 25), "reading the training data");
  for (const std::string& text : {std::string(), std::string("\n\n"), std::string("reading the training data"),
                                  std::string(R"({"msg":7})"), std::string("[1]"), std::string(kReading).substr(1)}) {
    EXPECT_EQ(ReadingMessage(text), "") << text;
  }
}

}  // namespace
}  // namespace medley::cli
