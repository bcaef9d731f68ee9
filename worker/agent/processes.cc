#include "worker/agent/processes.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <deque>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>

#include "common/base/file.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "worker/agent/exit_words.h"
#include "worker/agent/log_lines.h"
#include "worker/agent/spawn_process.h"

namespace medley::worker {
namespace {

constexpr int kPollMilliseconds = 1000;   // what is waited for makes a file readable
constexpr int kOldPollMilliseconds = 50;  // where the end of a process does not
constexpr size_t kTailLines = 60;
constexpr int kMostReads = 64;  // of one process in a row, so that each is looked at
constexpr base::milliseconds kLook{20};
constexpr base::seconds kKillWait{2};

// The children of this process, of which some were adopted.
std::vector<pid_t> Children() {
  std::vector<pid_t> children;
  DIR* const processes = opendir("/proc");
  if (processes == nullptr) return children;
  const std::string self = std::to_string(getpid());
  while (const dirent* entry = readdir(processes)) {
    const std::string_view name = entry->d_name;
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    const auto stat = base::ReadFile("/proc/" + std::string(name) + "/stat");
    if (!stat.ok()) continue;
    // "PID (NAME) STATE PARENT ..."; the name may have anything in it.
    const size_t close = stat->rfind(") ");
    if (close == std::string::npos) continue;
    const size_t parent = close + 4;
    if (stat->compare(parent, self.size() + 1, self + " ") == 0) children.push_back(pid);
  }
  closedir(processes);
  return children;
}

bool Handles(pid_t pid, int signal) {
  const auto status = base::ReadFile("/proc/" + std::to_string(pid) + "/status");
  constexpr std::string_view kCaught = "\nSigCgt:\t";
  const size_t at = status.ok() ? status->find(kCaught) : std::string::npos;
  if (at == std::string::npos) return false;
  uint64_t mask = 0;
  const char* const digits = status->c_str() + at + kCaught.size();
  std::from_chars(digits, digits + 16, mask, 16);
  return (mask >> (signal - 1) & 1) != 0;
}

}  // namespace

class ProgramProcesses::Rep {
 public:
  Rep(ProcessesOptions options, base::Clock& clock) : options_(std::move(options)), clock_(clock) {}
  ~Rep() {
    Stop(base::nanoseconds(0));
    reader_ = {};
    for (Child& child : children_) {
      if (child.output >= 0) close(child.output);
      if (child.end >= 0) close(child.end);
    }
  }

  absl::Status Start() {
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return base::Internal("PR_SET_CHILD_SUBREAPER is not available");
    std::string path = "/usr/bin:/bin";
    for (const std::string& variable : options_.environments.front()) {
      if (variable.starts_with("PATH=")) path = variable.substr(5);
    }
    MEDLEY_ASSIGN_OR_RETURN(const std::string program, FindCommand(options_.command.front(), path));
    int rank = options_.first_rank;
    for (const std::vector<std::string>& environment : options_.environments) {
      MEDLEY_ASSIGN_OR_RETURN(const SpawnedProcess spawned, SpawnProcess(program, options_.command, environment));
      Child& child = children_.emplace_back();
      child.rank = rank++;
      child.pid = spawned.pid;
      child.output = spawned.output;
      child.end = static_cast<int>(syscall(SYS_pidfd_open, spawned.pid, 0));
      child.lines = std::make_unique<LogLines>([this, &child](std::string_view line) { See(child, line); },
                                               [this, &child](std::string_view line) {
                                                 if (options_.show) options_.show(child.rank, line);
                                               });
    }
    reader_ = std::jthread([this](const std::stop_token& stop) { Read(stop); });
    return absl::OkStatus();
  }

  bool ended() const {
    base::MutexLock lock(mutex_);
    return running_ended_;
  }

  std::optional<ProcessFailure> failure() const {
    base::MutexLock lock(mutex_);
    return failure_;
  }

  std::vector<std::pair<int, int>> PidOfRank() const {
    std::vector<std::pair<int, int>> pids;
    base::MutexLock lock(mutex_);
    for (const Child& child : children_) {
      if (!child.ended) pids.emplace_back(child.rank, child.pid);
    }
    return pids;
  }

  int SignalHandlers(int signal) const {
    int sent = 0;
    base::MutexLock lock(mutex_);
    for (const Child& child : children_) {
      if (!child.ended && Handles(child.pid, signal) && kill(child.pid, signal) == 0) ++sent;
    }
    return sent;
  }

  void Freeze() {
    frozen_ = true;
    SignalGroups(SIGSTOP);
  }

  void Stop(base::nanoseconds grace) {
    SignalGroups(SIGTERM);
    if (frozen_) SignalGroups(SIGCONT);  // it gets SIGTERM before it runs on
    const base::SteadyTime deadline = clock_.Steady() + grace;
    while (!ended() && clock_.Steady() < deadline) clock_.SleepFor(kLook, {});
    SignalGroups(SIGKILL);
    const base::SteadyTime last = clock_.Steady() + kKillWait;
    while (!ended() && clock_.Steady() < last) clock_.SleepFor(kLook, {});
    // What has left its group, and what that leaves behind when it ends.
    while (clock_.Steady() < last) {
      const std::vector<pid_t> left = Children();
      if (left.empty()) return;
      for (const pid_t pid : left) {
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, WNOHANG);
      }
      clock_.SleepFor(base::milliseconds(2), {});
    }
  }

 private:
  struct Child {
    int rank = 0;
    pid_t pid = -1;
    int output = -1;  // -1: closed
    int end = -1;     // readable when it has ended; -1: this kernel has no such files, and it is looked at
    bool ended = false;
    std::unique_ptr<LogLines> lines;
    std::deque<std::string> tail;
  };

  void SignalGroups(int signal) const {
    base::MutexLock lock(mutex_);
    // What one that has ended has left in its group is a child of this process now, or of such a one.
    for (const Child& child : children_) {
      if (!child.ended) kill(-child.pid, signal);
    }
  }

  void See(Child& child, std::string_view line) {
    child.tail.emplace_back(line);
    if (child.tail.size() > kTailLines) child.tail.pop_front();
    if (options_.see) options_.see(child.rank, line);
  }

  void Read(const std::stop_token& stop) {
    while (!stop.stop_requested() && !LookAtEnds()) {
      std::vector<pollfd> open;
      bool old = false;
      for (const Child& child : children_) {
        old = old || (child.end < 0 && !child.ended);
        if (child.output >= 0) open.push_back({child.output, POLLIN, 0});
        // At once: of several ranks that fail, the first is the cause.
        if (child.end >= 0 && !child.ended) open.push_back({child.end, POLLIN, 0});
      }
      poll(open.data(), open.size(), old ? kOldPollMilliseconds : kPollMilliseconds);
      for (Child& child : children_) Drain(child);
    }
  }

  void Drain(Child& child) {
    std::array<char, 16384> bytes{};
    for (int reads = 0; child.output >= 0 && reads < kMostReads; ++reads) {
      const ssize_t got = read(child.output, bytes.data(), bytes.size());
      if (got < 0) return;
      if (got > 0) {
        child.lines->Add({bytes.data(), static_cast<size_t>(got)}, clock_.Steady());
        continue;
      }
      close(child.output);
      child.output = -1;
    }
  }

  // Returns true when all processes have ended.
  bool LookAtEnds() {
    bool all = true, news = false;
    for (Child& child : children_) {
      if (child.ended) continue;
      int status = 0;
      if (waitpid(child.pid, &status, WNOHANG) == 0) {
        all = false;
        continue;
      }
      Drain(child);  // its last words; what it has left behind may go on printing
      child.lines->End(clock_.Steady());
      news = true;
      base::MutexLock lock(mutex_);
      child.ended = true;
      if (status != 0 && !failure_) failure_ = ProcessFailure{child.rank, status, LastWords(child.tail)};
    }
    if (all) {
      base::MutexLock lock(mutex_);
      running_ended_ = true;
    }
    if (news && options_.changed) options_.changed();
    return all;
  }

  const ProcessesOptions options_;
  base::Clock& clock_;
  std::deque<Child> children_;  // does not change after Start, but for what the reader alone uses, and `ended`
  std::atomic<bool> frozen_ = false;
  mutable base::Mutex mutex_;  // for Child::ended too, which the reader sets
  bool running_ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<ProcessFailure> failure_ ABSL_GUARDED_BY(mutex_);
  std::jthread reader_;
};

ProgramProcesses::ProgramProcesses(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
ProgramProcesses::~ProgramProcesses() = default;

absl::StatusOr<std::unique_ptr<ProgramProcesses>> ProgramProcesses::Start(ProcessesOptions options,
                                                                          base::Clock& clock) {
  auto rep = std::make_unique<Rep>(std::move(options), clock);
  MEDLEY_RETURN_IF_ERROR(rep->Start());
  return std::unique_ptr<ProgramProcesses>(new ProgramProcesses(std::move(rep)));
}

bool ProgramProcesses::ended() const { return rep_->ended(); }
std::optional<ProcessFailure> ProgramProcesses::failure() const { return rep_->failure(); }
std::vector<std::pair<int, int>> ProgramProcesses::PidOfRank() const { return rep_->PidOfRank(); }
int ProgramProcesses::SignalHandlers(int signal) const { return rep_->SignalHandlers(signal); }
void ProgramProcesses::Freeze() { rep_->Freeze(); }
void ProgramProcesses::Stop(base::nanoseconds grace) { rep_->Stop(grace); }

}  // namespace medley::worker
