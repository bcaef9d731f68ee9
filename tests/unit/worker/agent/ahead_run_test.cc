// Scripts of Python that are started before their turn.
#include "worker/agent/ahead_run.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;
using base::IsOk;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(HeldCommandTest, OnlyScriptsOfPythonAreHeld) {
  EXPECT_THAT(HeldCommand({"python3", "-u", "./train.py", "--steps", "5"}, "/tmp/go"),
              ElementsAre("python3", "-u", "-c", HasSubstr("hold()"), "/tmp/go", "./train.py", "--steps", "5"));
  EXPECT_THAT(HeldCommand({"/usr/bin/python3.11", "train.py"}, "go"), testing::SizeIs(5));
  for (const std::vector<std::string>& other : {std::vector<std::string>{"sh", "-c", "python3 train.py"},
                                                {"python3", "-m", "train"},
                                                {"python3"},
                                                {},
                                                {"python3", "-c", "x.py"},
                                                {"pythonic", "train.py"},
                                                {"python3", "train"},
                                                {"./train.py"}}) {
    EXPECT_THAT(HeldCommand(other, "go"), IsEmpty());
  }
}

class AheadRunTest : public testing::Test {
 protected:
  AheadRunTest() : folder_(*base::MakeTempDir("ahead-run")) {
    fs::create_directories(folder_ / "lib");
    fs::create_directories(folder_ / "job");
    program_.samples_per_step = 8;
    program_.steps = 2;
    program_.progress_log = R"(step (?P<step>\d+))";
    program_.command = {"python3", (folder_ / "job/train.py").string(), "--rate", "0.5"};
    Write("lib/slow_library.py",
          "import os\nopen(os.environ['FOLDER'] + '/imported-' + os.environ['RANK'], 'w').close()\n");
    Write("job/beside.py", "import os\nopen(os.environ['FOLDER'] + '/went-on', 'w').close()\n");
  }
  ~AheadRunTest() override { base::RemoveTempDir(folder_); }
  void Write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  std::unique_ptr<AheadRun> Start(int processes = 1) {
    return AheadRun::Start(
        program_, {.processes = processes},
        {"PATH=/usr/bin:/bin", "FOLDER=" + folder_.string(), "PYTHONPATH=" + (folder_ / "lib").string()}, clock_,
        [this](const absl::Status& why) { why_ = why; });
  }

  const fs::path folder_;
  base::SystemClock clock_;
  model::ProgramSpec program_;
  absl::Status why_;
};

TEST_F(AheadRunTest, TheScriptIsHeldAfterTheImportsOfLibraries) {
  Write("job/train.py", R"(#!/usr/bin/env python3
"""Trains."""
from __future__ import annotations
import os, sys
from slow_library import os as same
import beside

def later(x: NoSuchType): pass  # the import from the future holds to the end

assert __name__ == "__main__" and __doc__ == "Trains.", (__name__, __doc__)
assert sys.argv == [__file__, "--rate", "0.5"] and "hold" not in globals()
assert sys.path[0] == os.path.dirname(__file__)
print("step 1", flush=True)
print("step 2", flush=True)
)");
  auto ahead = Start(2);
  ASSERT_NE(ahead, nullptr);
  ahead->WaitUntilReady({});
  for (const char* rank : {"0", "1"}) EXPECT_TRUE(fs::exists(folder_ / (std::string("imported-") + rank))) << rank;
  EXPECT_FALSE(fs::exists(folder_ / "went-on"));
  const auto run = ahead->Go();
  ASSERT_NE(run, nullptr);
  EXPECT_THAT(run->WaitFor(2, false, [] { return false; }), IsOk());
  EXPECT_TRUE(fs::exists(folder_ / "went-on"));
}

TEST_F(AheadRunTest, AScriptThatFailsIsReportedAtOnce) {
  Write("job/train.py", "import slow_library\nimport no_such_library\n");
  Write("lib/slow_library.py", "raise RuntimeError('too old')\n");
  auto ahead = Start();
  ASSERT_NE(ahead, nullptr);
  ahead->WaitUntilReady({});
  EXPECT_THAT(base::Message(why_), testing::AllOf(HasSubstr("rank 0 exited with 1"), HasSubstr("too old")));
}

TEST_F(AheadRunTest, NothingIsLeftOfOneThatIsNotNeeded) {
  Write("job/train.py", "import os\nopen(os.environ['FOLDER'] + '/went-on', 'w').close()\n");
  Write("lib/sitecustomize.py", "import os\nopen(os.environ['FOLDER'] + '/pid', 'w').write(str(os.getpid()))\n");
  auto ahead = Start();
  ASSERT_NE(ahead, nullptr);
  ahead->WaitUntilReady({});
  const pid_t pid = std::atoi(base::ReadFile(folder_ / "pid").value_or("0").c_str());
  ASSERT_GT(pid, 0);
  ahead = nullptr;
  EXPECT_NE(kill(pid, 0), 0);
  EXPECT_FALSE(fs::exists(folder_ / "went-on"));
}

}  // namespace
}  // namespace medley::worker
