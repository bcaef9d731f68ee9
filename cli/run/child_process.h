// A program that `medley run` starts: the operator or the scheduler.
//
// Its output is written to a file. The kernel kills it when the thread that started it ends (PR_SET_PDEATHSIG), so it
// never outlives `medley run`. Not thread-safe: one owner.
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "localcluster/node/spawn.h"

namespace medley::cli {

class ChildProcess {
 public:
  struct Options {
    std::filesystem::path program;
    std::vector<std::string> arguments;  // without argv[0]
    std::filesystem::path log;
  };

  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const Options& options);
  ~ChildProcess();  // Stop with two seconds of grace

  pid_t pid() const { return spawned_.pid; }
  // Returns how the program ended ("exit code 1", "signal 9") once all its output is in the log; nullopt while it runs.
  std::optional<std::string> Ended();
  // Sends SIGTERM, and SIGKILL after `grace`. Idempotent.
  void Stop(base::nanoseconds grace);
  // Peak resident memory (VmHWM) in bytes; 0 after the program has ended.
  int64_t PeakMemory() const;

 private:
  ChildProcess(localcluster::Spawned spawned, std::filesystem::path log);
  bool WaitFor(int timeout_ms);

  localcluster::Spawned spawned_;
  std::optional<std::string> ended_;
  std::jthread pump_;  // pipe -> log
};

}  // namespace medley::cli
