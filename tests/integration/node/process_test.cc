// Small real processes, without an API server: the supervisor, limits and records.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sstream>
#include <thread>

#include "common/base/file.h"
#include "common/base/mutex.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "localcluster/node/enforcer.h"
#include "localcluster/node/log_files.h"
#include "localcluster/node/proc_stat.h"
#include "localcluster/node/process_records.h"
#include "localcluster/node/supervisor.h"

namespace medley::kube {
namespace {

namespace fs = std::filesystem;
using base::IsOk;
using base::StatusIs;
using testing::HasSubstr;

constexpr base::seconds kPatience{60};

class ProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = base::MakeTempDir("process_test");
    ASSERT_THAT(folder, IsOk());
    folder_ = *folder;
    ASSERT_THAT(supervisor_.Start(), IsOk());
  }
  void TearDown() override {
    supervisor_.Stop();
    base::RemoveTempDir(folder_);
  }

  localcluster::SpawnSpec Shell(const std::string& script) {
    return {"/bin/sh", {"sh", "-c", script}, {"PATH=/usr/bin:/bin", "MEDLEY_CONTAINER_ID=c1"}, folder_.string()};
  }
  absl::StatusOr<std::shared_ptr<localcluster::Process>> Run(localcluster::SpawnSpec spec) {
    return supervisor_.Run({std::move(spec), folder_ / "c" / "0.log", 1 << 20, [this] {
                              base::MutexLock lock(mutex_);
                              ++exits_;
                              changed_.NotifyAll();
                            }});
  }
  localcluster::ProcessExit Await(const localcluster::Process& process) {
    base::MutexLock lock(mutex_);
    EXPECT_TRUE(changed_.WaitFor(mutex_, {}, kPatience, [&] { return process.exit().has_value(); }));
    return process.exit().value_or(localcluster::ProcessExit{-1, -1, {}});
  }
  std::string Log() { return ReadAll(folder_ / "c" / "0.log"); }
  std::string ReadAll(const fs::path& path) {
    std::string text;
    const absl::Status read = localcluster::ReadLogFiles(
        path, {}, clock_, {}, [] { return true; },
        [&](std::string_view bytes) {
          text += bytes;
          return true;
        });
    return read.ok() ? text : "(none)";
  }
  // Waits until `holds` returns true, for at most kPatience.
  template <typename Predicate>
  bool Eventually(Predicate holds) {
    const base::SteadyTime deadline = clock_.Steady() + kPatience;
    while (!holds()) {
      if (clock_.Steady() > deadline) return false;
      clock_.SleepFor(base::milliseconds(5), {});
    }
    return true;
  }

  base::SystemClock clock_;
  fs::path folder_;
  base::Mutex mutex_;
  base::CondVar changed_;
  int exits_ = 0;
  localcluster::Supervisor supervisor_{clock_};
};

TEST_F(ProcessTest, ExitCodeAndOutputOfBothStreams) {
  auto process = Run(Shell("echo out; echo err >&2; exit 7"));
  ASSERT_THAT(process, IsOk());
  const localcluster::ProcessExit exit = Await(**process);
  EXPECT_EQ(exit.exit_code, 7);
  EXPECT_EQ(exit.signal, 0);
  EXPECT_EQ(Log(), "out\nerr\n");
}

TEST_F(ProcessTest, LotsOfOutputArrivesWhole) {
  auto process =
      Run(Shell("i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890123456789; "
                "i=$((i+1)); done"));
  ASSERT_THAT(process, IsOk());
  EXPECT_EQ(Await(**process).exit_code, 0);
  EXPECT_EQ(Log().size(), 3000u * 41);
}

TEST_F(ProcessTest, SignalEndsTheWholeGroup) {
  auto process = Run(Shell("sleep 1000 & echo $!; wait"));
  ASSERT_THAT(process, IsOk());
  ASSERT_TRUE(Eventually([&] { return Log().find('\n') != std::string::npos; }));
  const pid_t child = std::stoi(Log());
  (*process)->Signal(SIGTERM);
  const localcluster::ProcessExit exit = Await(**process);
  EXPECT_EQ(exit.exit_code, 143);
  EXPECT_EQ(exit.signal, SIGTERM);
  EXPECT_TRUE(Eventually([&] {
    const auto stat = localcluster::ReadProcStat(child);
    return !stat || stat->state == 'Z';
  }));
  (*process)->Signal(SIGKILL);  // a signal after the end has no effect
}

TEST_F(ProcessTest, ChildrenThatOutliveTheProcessAreKilled) {
  auto process = Run(Shell("trap '' TERM HUP; sleep 1000 & echo $!; exit 0"));
  ASSERT_THAT(process, IsOk());
  EXPECT_EQ(Await(**process).exit_code, 0);
  const pid_t child = std::stoi(Log());
  EXPECT_TRUE(Eventually([&] {
    const auto stat = localcluster::ReadProcStat(child);
    return !stat || stat->state == 'Z';
  }));
}

TEST_F(ProcessTest, AFileThatCannotBeExecutedIsAnError) {
  localcluster::SpawnSpec spec = Shell("");
  spec.program = (folder_ / "no-such-program").string();
  EXPECT_THAT(Run(spec), StatusIs(absl::StatusCode::kNotFound, HasSubstr("execute")));
  spec = Shell("");
  spec.working_folder = "/no/such/folder";
  EXPECT_THAT(Run(spec), StatusIs(absl::StatusCode::kNotFound, HasSubstr("working folder")));
  ASSERT_THAT(base::WriteFileAtomic(folder_ / "text", "x"), IsOk());
  spec = Shell("");
  spec.program = (folder_ / "text").string();
  EXPECT_THAT(Run(spec), StatusIs(absl::StatusCode::kPermissionDenied));
}

// With a user namespace of its own where the machine allows one, and never with more privileges than it has.
TEST_F(ProcessTest, AConfinedProgramKeepsItsUserAndCannotGainPrivileges) {
  localcluster::SpawnSpec spec = Shell(
      "readlink /proc/self/ns/user; sed -n 's/NoNewPrivs:.//p' /proc/self/status; id -u; id -g; echo made > made; "
      "cat /etc/hostname > /dev/null && echo reads");
  spec.confined = true;
  auto process = Run(spec);
  ASSERT_THAT(process, IsOk());
  EXPECT_EQ(Await(**process).exit_code, 0) << Log();
  std::istringstream lines(Log());
  std::string ns, no_new_privs, uid, gid, reads;
  lines >> ns >> no_new_privs >> uid >> gid >> reads;
  EXPECT_EQ(no_new_privs, "1");
  EXPECT_EQ(uid, std::to_string(geteuid()));
  EXPECT_EQ(gid, std::to_string(getegid()));
  EXPECT_EQ(reads, "reads");
  struct stat info = {};
  ASSERT_EQ(stat((folder_ / "made").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, geteuid());
  EXPECT_EQ(info.st_gid, getegid());
  auto spawned = localcluster::Spawn(spec);
  ASSERT_THAT(spawned, IsOk());
  const std::string ours = fs::read_symlink("/proc/self/ns/user");
  EXPECT_EQ(ns != ours, spawned->user_namespace) << ns;
  int status = 0;
  ASSERT_EQ(waitpid(spawned->pid, &status, 0), spawned->pid);
  std::printf("user namespaces are %s here\n", spawned->user_namespace ? "available" : "not available");
}

TEST_F(ProcessTest, AConfinedProgramHasTheSameErrorsAndDiesWithItsParent) {
  localcluster::SpawnSpec spec = Shell("");
  spec.confined = true;
  spec.program = (folder_ / "no-such-program").string();
  EXPECT_THAT(Run(spec), StatusIs(absl::StatusCode::kNotFound, HasSubstr("execute")));
  spec = Shell("echo $$; exec sleep 1000");
  spec.confined = true;
  pid_t pid = 0;
  std::thread([&] {  // PR_SET_PDEATHSIG concerns the thread that forked
    auto spawned = localcluster::Spawn(spec);
    ASSERT_THAT(spawned, IsOk());
    pid = spawned->pid;
  })
      .join();
  ASSERT_GT(pid, 0);
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
}

TEST_F(ProcessTest, NoDescriptorButThreeIsInherited) {
  const localcluster::UniqueFd leak(fcntl(0, F_DUPFD, 100));  // not close-on-exec
  ASSERT_GE(leak.get(), 100);
  auto process =
      Run(Shell("[ -e /proc/$$/fd/" + std::to_string(leak.get()) + " ] && echo leaked; readlink /proc/$$/fd/0"));
  ASSERT_THAT(process, IsOk());
  EXPECT_EQ(Await(**process).exit_code, 0);
  EXPECT_EQ(Log(), "/dev/null\n");
}

TEST_F(ProcessTest, StopKillsWhatRuns) {
  auto process = Run(Shell("trap '' TERM; while :; do sleep 1; done"));
  ASSERT_THAT(process, IsOk());
  supervisor_.Stop();
  ASSERT_TRUE((*process)->exit().has_value());
  EXPECT_EQ((*process)->exit()->signal, SIGKILL);
  EXPECT_THAT(Run(Shell("true")), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(ProcessTest, LeftoversAreKilledAndOthersAreNot) {
  const localcluster::ProcessRecords records(folder_ / "records");
  // First a leader that has ended and left a child in its session, then a leader that still runs.
  localcluster::SpawnSpec with_child = Shell("sleep 1000 & echo $!; exec sleep 1000");
  auto first = Run(with_child);
  ASSERT_THAT(first, IsOk());
  ASSERT_TRUE(Eventually([&] { return Log().find('\n') != std::string::npos; }));
  ASSERT_THAT(records.Write("c1", (*first)->pid()), IsOk());
  localcluster::SpawnSpec foreign = Shell("exec sleep 1000");
  foreign.environment = {"PATH=/usr/bin:/bin"};
  auto other = Run(foreign);
  ASSERT_THAT(other, IsOk());
  // A record of an earlier process with the same process ID.
  ASSERT_THAT(base::WriteFileAtomic(folder_ / "records" / "old.json", "{\"pid\":" + std::to_string((*other)->pid()) +
                                                                          ",\"startTicks\":1,\"boot\":\"" +
                                                                          localcluster::BootId() + "\"}"),
              IsOk());
  ASSERT_THAT(base::WriteFileAtomic(folder_ / "records" / "bad.json", "garbage"), IsOk());
  const auto killed = records.KillLeftovers(clock_);
  ASSERT_THAT(killed, IsOk());
  EXPECT_EQ(*killed, 2);
  EXPECT_EQ(Await(**first).signal, SIGKILL);
  EXPECT_FALSE((*other)->exit().has_value());
  EXPECT_TRUE(fs::is_empty(folder_ / "records"));
}

TEST_F(ProcessTest, WhenTheNodeIsKilledItsProcessesDieAndTheNextNodeEndsTheRest) {
  localcluster::SpawnSpec life = Shell("");
  life.program = (fs::read_symlink("/proc/self/exe").parent_path() / "node_test_life").string();
  life.arguments = {"node_test_life", folder_.string()};
  auto node = Run(life);
  ASSERT_THAT(node, IsOk()) << Log();
  ASSERT_TRUE(Eventually([&] { return fs::exists(folder_ / "started"); })) << Log();
  std::istringstream pids(ReadAll(folder_ / "inner" / "0.log"));
  pid_t leader = 0, child = 0;
  ASSERT_TRUE(pids >> leader >> child);
  const auto lives = [](pid_t pid) {
    const auto stat = localcluster::ReadProcStat(pid);
    return stat && stat->state != 'Z';
  };
  ASSERT_TRUE(lives(leader) && lives(child));
  (*node)->Signal(SIGKILL);
  Await(**node);
  EXPECT_TRUE(Eventually([&] { return !lives(leader); }));  // the kernel kills it
  EXPECT_TRUE(lives(child));                                // it has a session of its own, so no signal reached it
  const auto killed = localcluster::ProcessRecords(folder_ / "records").KillLeftovers(clock_);
  ASSERT_THAT(killed, IsOk());
  EXPECT_EQ(*killed, 1);
  EXPECT_FALSE(lives(child));
}

class LimitTest : public ProcessTest, public testing::WithParamInterface<localcluster::CgroupPolicy> {
 protected:
  void SetUp() override {
    ProcessTest::SetUp();
    auto enforcer =
        localcluster::MakeEnforcer(GetParam(), "test-" + folder_.filename().string(), base::milliseconds(10), clock_);
    ASSERT_THAT(enforcer, IsOk());
    enforcer_ = *std::move(enforcer);
  }
  void TearDown() override {
    supervisor_.Stop();
    lease_.reset();
    enforcer_.reset();
    ProcessTest::TearDown();
  }
  absl::StatusOr<std::shared_ptr<localcluster::Process>> RunLimited(localcluster::SpawnSpec spec,
                                                                    const localcluster::Limits& limits) {
    MEDLEY_ASSIGN_OR_RETURN(lease_, enforcer_->Apply("limited", limits));
    lease_->Prepare(spec);
    MEDLEY_ASSIGN_OR_RETURN(auto process, Run(std::move(spec)));
    lease_->Attach(process);
    return process;
  }
  std::unique_ptr<localcluster::Enforcer> enforcer_;
  std::unique_ptr<localcluster::Enforcement> lease_;
};

TEST_P(LimitTest, CpuShareIsHeld) {
  localcluster::Limits limits;
  limits.cores = 0.25;
  auto process = RunLimited(Shell("while :; do :; done"), limits);
  ASSERT_THAT(process, IsOk());
  const base::SteadyTime start = clock_.Steady();
  ASSERT_TRUE(Eventually([&] { return clock_.Steady() - start > base::milliseconds(1500); }));
  const auto stat = localcluster::ReadProcStat((*process)->pid());
  ASSERT_TRUE(stat.has_value());
  const double share = base::ToSeconds(stat->cpu) / base::ToSeconds(clock_.Steady() - start);
  EXPECT_LT(share, 0.45) << enforcer_->name();
  EXPECT_GT(share, 0.01) << enforcer_->name();
  EXPECT_FALSE(lease_->OutOfMemory());
  (*process)->Signal(SIGKILL);
  EXPECT_EQ(Await(**process).signal, SIGKILL);
}

TEST_P(LimitTest, TooMuchMemoryKills) {
  localcluster::Limits limits;
  limits.memory_bytes = int64_t{32} << 20;
  // The size of the shell's variable doubles (1, 2, 4, ... MiB), slowly enough to be measured.
  auto process = RunLimited(Shell("x=$(head -c 1000000 /dev/zero | tr '\\0' a); "
                                  "while :; do x=$x$x; sleep 0.1; done"),
                            limits);
  ASSERT_THAT(process, IsOk());
  const localcluster::ProcessExit exit = Await(**process);
  EXPECT_EQ(exit.signal, SIGKILL) << enforcer_->name() << " " << exit.exit_code << " " << Log();
  EXPECT_TRUE(lease_->OutOfMemory()) << enforcer_->name();
}

TEST_P(LimitTest, WithoutALimitNothingIsKilled) {
  auto process = RunLimited(Shell("exit 3"), {});
  ASSERT_THAT(process, IsOk());
  EXPECT_EQ(Await(**process).exit_code, 3);
  EXPECT_FALSE(lease_->OutOfMemory());
}

// kAuto uses cgroups if they can be created, and is the same as kOff otherwise.
INSTANTIATE_TEST_SUITE_P(Policies, LimitTest,
                         testing::Values(localcluster::CgroupPolicy::kAuto, localcluster::CgroupPolicy::kOff),
                         [](const auto& policy) {
                           return policy.param == localcluster::CgroupPolicy::kOff ? "Measured" : "Auto";
                         });

}  // namespace
}  // namespace medley::kube
