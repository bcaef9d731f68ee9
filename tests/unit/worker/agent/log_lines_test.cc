#include "worker/agent/log_lines.h"

#include <gmock/gmock.h>

#include <vector>

namespace medley::worker {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::SizeIs;

class LogLinesTest : public testing::Test {
 protected:
  std::vector<std::string> seen_, shown_;
  LogLines lines_{[this](std::string_view line) { seen_.emplace_back(line); },
                  [this](std::string_view line) { shown_.emplace_back(line); }};
  const base::SteadyTime start_ = base::SteadyTime() + base::seconds(100);
};

TEST_F(LogLinesTest, PiecesAreJoinedToLines) {
  for (const char* piece : {"st", "ep 1\nstep", " 2\r\nprogress 10%\rprogress 20%\r", "last"})
    lines_.Add(piece, start_);
  EXPECT_THAT(seen_, ElementsAre("step 1", "step 2", "progress 10%", "progress 20%"));
  lines_.End(start_);
  EXPECT_THAT(seen_, SizeIs(5));
  EXPECT_EQ(seen_, shown_);
}

// 100 MB without a line end cost no memory, and what follows the line end is seen.
TEST_F(LogLinesTest, AnEndlessLineIsCut) {
  const std::string piece(1 << 20, 'x');
  for (int i = 0; i < 100; ++i) lines_.Add(piece, start_);
  EXPECT_THAT(seen_, SizeIs(0));
  lines_.Add("\nstep 3\n", start_);
  ASSERT_THAT(seen_, SizeIs(2));
  EXPECT_THAT(seen_[0], EndsWith(" (cut)"));
  EXPECT_EQ(seen_[0].size(), LogLines::kMostBytes + 6);
  EXPECT_EQ(seen_[1], "step 3");
}

TEST_F(LogLinesTest, InvalidBytesAreEscaped) {
  lines_.Add("a\xff\xfe z\n", start_);
  EXPECT_THAT(shown_, ElementsAre("a\\xff\\xfe z"));
}

TEST_F(LogLinesTest, ManyLinesAreSeenAndFewAreShown) {
  for (int i = 0; i < 1000; ++i) lines_.Add("line\n", start_);
  EXPECT_THAT(seen_, SizeIs(1000));
  EXPECT_THAT(shown_, SizeIs(LogLines::kMostLines));
  lines_.Add("later\n", start_ + base::seconds(2));
  ASSERT_THAT(shown_, SizeIs(LogLines::kMostLines + 2));
  EXPECT_EQ(shown_[LogLines::kMostLines], "(800 lines are not shown, because the program prints too many)");
  EXPECT_EQ(shown_.back(), "later");
}

TEST_F(LogLinesTest, LongLinesAreShownUpToABound) {
  const std::string line = std::string(LogLines::kMostBytes, 'x') + "\n";
  for (int i = 0; i < 100; ++i) lines_.Add(line, start_);
  EXPECT_THAT(shown_, SizeIs(LogLines::kMostText / static_cast<int64_t>(LogLines::kMostBytes)));
}

}  // namespace
}  // namespace medley::worker
