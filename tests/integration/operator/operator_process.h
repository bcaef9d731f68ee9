// medley-operator as a process, for tests of replicas: started, asked, signalled, waited for. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"

namespace medley::ops {

class OperatorProcess {
 public:
  // Runs $MEDLEY_BIN_DIR/medley-operator with `arguments`; stdout and stderr go to `log`. Dies with a sentence when it
  // cannot be started.
  OperatorProcess(const std::vector<std::string>& arguments, std::filesystem::path log);
  ~OperatorProcess();  // SIGKILL, when it runs
  OperatorProcess(const OperatorProcess&) = delete;
  OperatorProcess& operator=(const OperatorProcess&) = delete;

  // Its HTTP port, after it has reported it; its caches are filled then. 0: not reported yet.
  int HttpPort();
  // The body of a GET; empty when no answer comes, or an answer other than 200.
  std::string Get(const std::string& path);
  // The value of a metric without labels; nothing when it does not exist.
  std::optional<double> Metric(const std::string& name);
  bool Leads() { return Metric("medley_leader") == 1; }

  void Signal(int signal);
  void Pause();  // SIGSTOP; returns when every thread has stopped
  // Exit status, or minus the signal; nothing while it runs.
  std::optional<int> Ended();
  std::string Log() const;
  pid_t pid() const { return pid_; }

 private:
  const std::filesystem::path log_;
  base::SystemClock clock_;
  pid_t pid_ = 0;
  int port_ = 0;
  std::optional<int> ended_;
};

// Looks every 10 ms; false: `patience` passed.
bool WaitUntil(const std::function<bool()>& holds, base::nanoseconds patience);

}  // namespace medley::ops
