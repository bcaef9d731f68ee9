#include "operator/api/cause.h"

#include <gtest/gtest.h>

namespace medley::ops {
namespace {

struct Case {
  const char* line;
  const char* cause;
};

TEST(CauseTest, TheProgramAndTheRoleAreNotTheCause) {
  const Case cases[] = {
      {"medley-worker: profiler: /data/a.csv:17: expected 3 columns, found 4",
       "/data/a.csv:17: expected 3 columns, found 4"},
      {"medley-worker: coordinator: no checkpoint\n", "no checkpoint"},
      {"medley-worker: --role is required", "--role is required"},
      {"medley-worker: /data/a.csv: no such file", "/data/a.csv: no such file"},
      {"Segmentation fault", "Segmentation fault"},
      {"trainer: is a word of the cause", "trainer: is a word of the cause"},
      {R"({"level":"error","msg":"the job failed","why":"the loss is not a number"})",
       "the job failed: the loss is not a number"},
      {"{not a line of JSON", "{not a line of JSON"},
      {R"({"level":"info"})", R"({"level":"info"})"},
      {R"({"msg":7})", R"({"msg":7})"},
      {"  ", ""},
      {"", ""},
  };
  for (const Case& each : cases) EXPECT_EQ(CauseIn(each.line), each.cause) << each.line;
}

TEST(CauseTest, TheCauseComesFirstAndEachSentenceHasOneDot) {
  EXPECT_EQ(CauseFirst("no such column", "Profiler pod p failed"), "no such column. Profiler pod p failed.");
  EXPECT_EQ(CauseFirst("no such column.", "Profiler pod p failed."), "no such column. Profiler pod p failed.");
  EXPECT_EQ(CauseFirst("", "Profiler pod p failed"), "Profiler pod p failed.");
  EXPECT_EQ(CauseFirst("why?\n", ""), "why?");
  EXPECT_EQ(CauseFirst("", ""), "");
}

}  // namespace
}  // namespace medley::ops
