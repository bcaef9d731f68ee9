// Programs are shell scripts here, and many of them are bad ones.
#include "worker/agent/program_run.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "common/tf_record/tf_record.h"
#include "medley/tensorboard/v1/event.pb.h"
#include "worker/agent/measure_program.h"

namespace medley::worker {
namespace {

using base::IsOk;
using base::StatusIs;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ProgramRunTest : public testing::Test {
 protected:
  ProgramRunTest() : folder_(*base::MakeTempDir("program-run")) {
    program_.samples_per_step = 8;
    program_.steps = 5;
    program_.progress_log = R"(step (?P<step>\d+)( loss (?P<loss>\S+))?)";
  }
  ~ProgramRunTest() override { base::RemoveTempDir(folder_); }

  absl::StatusOr<std::unique_ptr<ProgramRun>> Start(const std::string& script, int processes = 1) {
    program_.command = {"sh", "-c", script};
    return ProgramRun::Start(program_, {.processes = processes},
                             {"PATH=/usr/bin:/bin", "FOLDER=" + folder_.string(), "MEDLEY_TOKEN=secret"}, clock_);
  }
  absl::Status WaitFor(ProgramRun& run, int64_t step) {
    return run.WaitFor(step, false, [] { return false; });
  }
  // What the script writes into a file, once it is whole.
  std::string Written(const std::string& name) {
    std::string text;
    for (int i = 0; i < 500 && !text.ends_with("\n"); ++i) {
      clock_.SleepFor(base::milliseconds(10), {});
      text = base::ReadFile(folder_ / name).value_or("");
    }
    return text;
  }
  static bool Lives(pid_t pid) { return kill(pid, 0) == 0; }

  const std::filesystem::path folder_;
  base::SystemClock clock_;
  model::ProgramSpec program_;
};

constexpr char kFiveSteps[] = "for i in 1 2 3 4 5; do echo step $i loss 0.$i; sleep 0.02; done";

TEST_F(ProgramRunTest, AProgramIsFollowedToItsEnd) {
  auto run = Start(kFiveSteps);
  ASSERT_THAT(run, IsOk());
  for (int step = 1; step <= 5; ++step) {
    ASSERT_THAT(WaitFor(**run, step), IsOk());
    EXPECT_THAT((*run)->TakeLoss(step), testing::Optional(testing::DoubleEq(step * 0.1)));
  }
  EXPECT_EQ((*run)->reached(), 5);
}

TEST_F(ProgramRunTest, ACommandThatDoesNotExistIsNamed) {
  program_.command = {"no-such-program"};
  const auto run = ProgramRun::Start(program_, {}, {}, clock_);
  EXPECT_THAT(run.status(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("'no-such-program' cannot be started")));
  program_.command = {folder_ / "file"};
  std::ofstream(folder_ / "file") << "no program";
  EXPECT_THAT(ProgramRun::Start(program_, {}, {}, clock_).status(), StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST_F(ProgramRunTest, EndingTooEarlyIsAnErrorAlsoWithZero) {
  auto silent = Start("exit 0");
  ASSERT_THAT(silent, IsOk());
  EXPECT_THAT(WaitFor(**silent, 1), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("reported no step")));
  auto short_one = Start("echo step 1; sleep 0.1; echo step 2");
  ASSERT_THAT(short_one, IsOk());
  EXPECT_THAT(WaitFor(**short_one, 5), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("after step 2;")));
}

TEST_F(ProgramRunTest, TheFirstFailureIsReportedWithItsTraceback) {
  auto run = Start(
      "if [ $RANK = 1 ]; then echo 'Traceback (most recent call last):'; echo 'ValueError: bad'; exit 3; fi; "
      "sleep 100",
      2);
  ASSERT_THAT(run, IsOk());
  EXPECT_THAT(WaitFor(**run, 1),
              StatusIs(absl::StatusCode::kInternal,
                       "rank 1 exited with 3:\nTraceback (most recent call last):\nValueError: bad"));
}

TEST_F(ProgramRunTest, WhatIgnoresSigtermIsKilled) {
  auto run = Start("trap '' TERM; echo $$ > $FOLDER/pid; while true; do sleep 0.05; done");
  ASSERT_THAT(run, IsOk());
  const pid_t pid = std::atoi(Written("pid").c_str());
  ASSERT_GT(pid, 0);
  (*run)->Stop(base::milliseconds(100));
  EXPECT_FALSE(Lives(pid));
}

TEST_F(ProgramRunTest, NoGrandchildIsLeft) {
  // One in the group of its parent, and one that leaves it.
  auto run = Start(
      "sleep 1000 & echo $! > $FOLDER/near; setsid sh -c 'echo $$ > $FOLDER/far; exec sleep 1000' & sleep 0.1; wait");
  ASSERT_THAT(run, IsOk());
  const pid_t near = std::atoi(Written("near").c_str()), far = std::atoi(Written("far").c_str());
  ASSERT_GT(near, 0);
  ASSERT_GT(far, 0);
  (*run)->Stop(base::seconds(1));
  EXPECT_FALSE(Lives(near));
  EXPECT_FALSE(Lives(far));
}

TEST_F(ProgramRunTest, AProgramThatNeverReportsHangs) {
  program_.hang_seconds = 0.3;
  auto run = Start("while true; do echo epoch 1; sleep 0.05; done");
  ASSERT_THAT(run, IsOk());
  EXPECT_THAT(WaitFor(**run, 1), StatusIs(absl::StatusCode::kInternal, HasSubstr("has reported no step for")));
}

// With a py-spy that only says how it was called.
TEST_F(ProgramRunTest, TheStacksOfAProgramThatHangsArePrinted) {
  program_.hang_seconds = 0.3;
  std::ofstream(folder_ / "py-spy") << "#!/bin/sh\necho \"Thread 1: $1 $2\"\necho \"main (train.py:3)\"\n";
  std::filesystem::permissions(folder_ / "py-spy", std::filesystem::perms::owner_all);
  program_.command = {"sh", "-c", "sleep 100"};
  testing::internal::CaptureStdout();
  auto run =
      ProgramRun::Start(program_, {.unit = 0, .processes = 2}, {"PATH=" + folder_.string() + ":/usr/bin:/bin"}, clock_);
  const absl::Status waited = run.ok() ? WaitFor(**run, 1) : run.status();
  const std::string printed = testing::internal::GetCapturedStdout();
  EXPECT_THAT(waited, StatusIs(absl::StatusCode::kInternal, HasSubstr("has reported no step for")));
  for (const char* rank : {"[0]", "[1]"}) {
    EXPECT_THAT(printed,
                HasSubstr(std::string(rank) + " hangs: Thread 1: dump --pid\n" + rank + " hangs: main (train.py:3)\n"));
  }
}

TEST_F(ProgramRunTest, ReportsBackwardsDoNotCount) {
  auto run = Start("for i in 1 2 1 2 3 4 5; do echo step $i; done");
  ASSERT_THAT(run, IsOk());
  EXPECT_THAT(WaitFor(**run, 5), IsOk());
  EXPECT_EQ((*run)->reached(), 5);
}

TEST_F(ProgramRunTest, AnEndlessLineHoldsNothingUp) {
  auto run = Start("head -c 30000000 /dev/zero | tr '\\0' x; echo; " + std::string(kFiveSteps));
  ASSERT_THAT(run, IsOk());
  EXPECT_THAT(WaitFor(**run, 5), IsOk());
}

TEST_F(ProgramRunTest, AProgramFindsNoSecretOfTheAgent) {
  auto run = Start("env > $FOLDER/env; echo end >> $FOLDER/env; sleep 100");
  ASSERT_THAT(run, IsOk());
  std::string text;
  for (int i = 0; i < 100 && text.find("end\n") == std::string::npos; ++i) text = Written("env");
  EXPECT_THAT(text, AllOf(HasSubstr("WORLD_SIZE=1"), Not(HasSubstr("MEDLEY_TOKEN")), Not(HasSubstr("secret"))));
}

TEST_F(ProgramRunTest, AProgramSavesAtASignal) {
  program_.save_signal = "SIGUSR1";
  program_.save_seconds = 5;
  program_.saved_file = folder_ / "saved";
  const auto never = [] { return false; };
  auto run = Start("trap 'echo state > $FOLDER/saved' USR1; echo step 1; while true; do sleep 0.02; done");
  ASSERT_THAT(run, IsOk());
  ASSERT_THAT(WaitFor(**run, 1), IsOk());
  EXPECT_THAT((*run)->Save(false, never), IsOk());
  EXPECT_THAT((*run)->Save(false, never), IsOk());  // again, into the same file
  EXPECT_THAT(base::ReadFile(folder_ / "saved"), IsOk());

  auto deaf = Start("echo step 1; while true; do sleep 0.02; done");
  ASSERT_THAT(deaf, IsOk());
  ASSERT_THAT(WaitFor(**deaf, 1), IsOk());
  EXPECT_THAT((*deaf)->Save(false, never),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("handles SIGUSR1")));
  program_.save_seconds = 0.2;
  auto slow = Start("trap 'true' USR1; echo step 1; while true; do sleep 0.02; done");
  ASSERT_THAT(slow, IsOk());
  ASSERT_THAT(WaitFor(**slow, 1), IsOk());
  EXPECT_THAT((*slow)->Save(false, never), StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("did not write")));
}

TEST_F(ProgramRunTest, ReportsMayBePosted) {
  program_.progress_log.clear();
  program_.progress_endpoint = true;
  program_.command = {"/usr/bin/python3", "-c", R"(
import json, os, urllib.request
for step in range(1, 6):
    data = json.dumps({"step": step, "loss": 0.5}).encode()
    urllib.request.urlopen("http://127.0.0.1:%s/v1/progress" % os.environ["MEDLEY_PROGRESS_PORT"], data=data)
)"};
  auto run = ProgramRun::Start(program_, {}, {"PATH=/usr/bin:/bin"}, clock_);
  ASSERT_THAT(run, IsOk());
  EXPECT_THAT(WaitFor(**run, 5), IsOk());
  EXPECT_EQ((*run)->TakeLoss(5), 0.5);
}

// The writer of the program buffers, so all of it comes at the end.
TEST_F(ProgramRunTest, ReportsMayBeInEventFilesOfTensorBoard) {
  program_.progress_log.clear();
  program_.progress_tensor_board = folder_ / "board";
  std::string events;
  for (int step = 1; step <= 5; ++step) {
    tensorboard::v1::Event event;
    event.set_step(step);
    tensorboard::v1::Value& scalar = *event.mutable_summary()->add_values();
    scalar.set_tag("train/loss");
    scalar.set_simple_value(0.5F);
    events += tf_record::TfRecord(event.SerializeAsString());
  }
  ASSERT_THAT(base::WriteFileAtomic(folder_ / "events", events), IsOk());
  auto run = Start("mkdir -p $FOLDER/board/run && cp $FOLDER/events $FOLDER/board/run/events.out.tfevents.1");
  ASSERT_THAT(run, IsOk());
  EXPECT_THAT(WaitFor(**run, 5), IsOk());
  EXPECT_EQ((*run)->reached(), 5);
  EXPECT_EQ((*run)->TakeLoss(5), 0.5);
}

TEST_F(ProgramRunTest, OtherUnitsOnlyFail) {
  auto run = Start("sleep 0.3");
  ASSERT_THAT(run, IsOk());
  const auto never = [] { return false; };
  EXPECT_THAT((*run)->WaitFor(4, true, never), IsOk());
  EXPECT_THAT((*run)->WaitFor(5, true, never), IsOk());  // when it has ended
  auto bad = Start("sleep 0.1; exit 1");
  ASSERT_THAT(bad, IsOk());
  EXPECT_THAT((*bad)->WaitFor(5, true, never), StatusIs(absl::StatusCode::kInternal));
}

TEST_F(ProgramRunTest, AProgramIsMeasuredWithoutTouchingWhatTheJobSaved) {
  MeasureOptions options;
  options.program = program_;
  options.program.steps = 100;
  options.program.command = {
      "sh", "-c", R"(echo "$1" > $FOLDER/argument; for i in $(seq 1 100); do echo step $i; sleep 0.02; done)", "sh",
      "/checkpoints/run"};
  options.checkpoint_folder = "/checkpoints";
  options.scratch = folder_ / "scratch";
  options.profile_id = "p";
  options.pool = "small";
  options.environment = {"PATH=/usr/bin:/bin", "FOLDER=" + folder_.string()};
  options.clock = &clock_;
  const auto profile = MeasureProgram(options);
  ASSERT_THAT(profile, IsOk());
  EXPECT_EQ(Written("argument"), (folder_ / "scratch/run").string() + "\n");
  ASSERT_EQ(profile->model.layers.size(), 1u);
  const model::LayerProfile& numbers = profile->model.layers[0].profiles.at(0);
  EXPECT_EQ(numbers.resource_type, "small");
  EXPECT_GE(numbers.compute_seconds, 0.02);
  EXPECT_LT(numbers.compute_seconds, 2);
  EXPECT_EQ(profile->profile_batch_size, 8);
  EXPECT_EQ(profile->samples_per_epoch, 800);
}

// Four processes share the processors of the unit, so a step takes four times as long here as on four units.
TEST_F(ProgramRunTest, TheProcessesOfSeveralUnitsAreMeasuredOnOne) {
  MeasureOptions options;
  options.program = program_;
  options.program.steps = 1000000;
  // Each rank computes its share of a step and a part that all repeat, and waits for the others.
  options.program.command = {"python3", "-c", R"(
import os, socket, sys, time
world, rank = int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])
address = "127.0.0.1", int(os.environ["MASTER_PORT"])
open(os.environ["FOLDER"] + f"/rank-{rank}-of-{world}-{os.path.basename(sys.argv[1])}", "w")
def connect():
    while True:
        try: return socket.create_connection(address)
        except OSError: time.sleep(0.01)
if rank == 0:
    server = socket.create_server(address)
    peers = [server.accept()[0] for _ in range(world - 1)]
else:
    peers = [connect()]
for step in range(1, 1000000):
    for _ in range(400000 // world + 100000): pass
    if rank: peers[0].send(b"x")
    for peer in peers: peer.recv(1)
    if rank == 0:
        for peer in peers: peer.send(b"x")
        print(f"step {step}", flush=True)
)",
                             "/checkpoints/run"};
  options.checkpoint_folder = "/checkpoints";
  options.scratch = folder_ / "scratch";
  options.pool = "small";
  options.sizes = {2, 4};
  options.cores = 0.01;  // so that they count as waiting for it on any machine
  options.environment = {"PATH=/usr/bin:/bin", "FOLDER=" + folder_.string()};
  options.clock = &clock_;
  const auto profile = MeasureProgram(options);
  ASSERT_THAT(profile, IsOk());
  EXPECT_TRUE(std::filesystem::exists(folder_ / "rank-0-of-1-run"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "rank-3-of-4-run"));
  const model::LayerProfile& numbers = profile->model.layers[0].profiles.at(0);
  // Each of four computes a fifth of a step and its share of the rest, so 0.4 of it, and talks; 0.25 would be without
  // the part that all repeat, and 1.6 what this unit takes for all of them.
  const double on_four = numbers.compute_seconds * (1 - 0.75 * numbers.compute_parallel) + 2 * numbers.sync_seconds;
  EXPECT_GT(on_four / numbers.compute_seconds, 0.33);
  EXPECT_LT(on_four / numbers.compute_seconds, 0.6);
}

TEST_F(ProgramRunTest, ASizeThatCannotBeMeasuredIsLeftOut) {
  MeasureOptions options;
  options.program = program_;
  options.program.steps = 100000;
  options.program.command = {
      "sh", "-c", R"([ $WORLD_SIZE = 1 ] || exit 3; i=0; while :; do i=$((i+1)); echo step $i; sleep 0.01; done)"};
  options.scratch = folder_ / "scratch";
  options.pool = "small";
  options.sizes = {2};
  options.environment = {"PATH=/usr/bin:/bin"};
  options.clock = &clock_;
  auto profile = MeasureProgram(options);
  ASSERT_THAT(profile, IsOk());
  EXPECT_EQ(profile->model.layers[0].profiles.at(0).compute_parallel, 1) << "as if nothing were known of two";
  // One that would need more memory than the unit has is not even started.
  options.program.command[2] =
      R"(echo $WORLD_SIZE >> $FOLDER/sizes; i=0; while :; do i=$((i+1)); echo step $i; sleep 0.01; done)";
  options.environment.push_back("FOLDER=" + folder_.string());
  options.memory_bytes = 1 << 10;
  profile = MeasureProgram(options);
  ASSERT_THAT(profile, IsOk());
  EXPECT_EQ(Written("sizes"), "1\n");
}

TEST(SecondsOnUnitsTest, ProcessesThatWaitForTheProcessorDoNotOnUnitsOfTheirOwn) {
  const TimedRun one{.seconds = 0.4, .processor_seconds = 0.1, .cores = 0.25};
  // On a full unit of a quarter of a core: 0.14 s of processor time for all, a third of it on each of three.
  const TimedRun three{.seconds = 0.56, .processor_seconds = 0.14, .cores = 0.25};
  EXPECT_NEAR(SecondsOnUnits(one, three, 3, 0.25), 0.4 * 0.14 / 0.3, 1e-12);
  // A unit of four cores has room for three such processes, so what they wait for is one another.
  EXPECT_EQ(SecondsOnUnits(one, three, 3, 4), 0.56);
  // But for other work that takes the processors of that unit.
  const TimedRun starved{.seconds = 0.4, .processor_seconds = 0.1, .cores = 0.25, .waited = 0.7};
  EXPECT_NEAR(SecondsOnUnits(starved, three, 3, 4), 0.4 * 0.14 / 0.3, 1e-12);
  EXPECT_EQ(SecondsOnUnits({.seconds = 0.4, .cores = 0.25}, three, 3, 0.25), 0) << "nobody knows";
}

}  // namespace
}  // namespace medley::worker
