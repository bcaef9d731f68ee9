#include "worker/agent/program_run.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/model/progress_pattern.h"
#include "worker/agent/event_files.h"
#include "worker/agent/exit_words.h"
#include "worker/agent/processes.h"
#include "worker/agent/progress_port.h"
#include "worker/agent/run_progress.h"
#include "worker/agent/stacks.h"

namespace medley::worker {
namespace {

constexpr base::milliseconds kSaveLook{20};
constexpr base::milliseconds kRunLook{1000};  // for hangs: all else wakes who waits
constexpr base::milliseconds kEventLook{500};
constexpr double kOldestEvent = 3600;  // seconds; an older one is of a clock that differs

// What changes when a file is replaced or written to.
struct FileState {
  bool exists = false;
  ino_t inode = 0;
  off_t size = 0;
  int64_t seconds = 0, nanos = 0;
  bool operator==(const FileState&) const = default;
};

FileState StateOf(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) return {};
  return {true, found.st_ino, found.st_size, found.st_mtim.tv_sec, found.st_mtim.tv_nsec};
}

int SignalNamed(const std::string& name) { return name == "SIGUSR2" ? SIGUSR2 : SIGUSR1; }

}  // namespace

class ProgramRun::Rep {
 public:
  Rep(const model::ProgramSpec& program, base::Clock& clock, std::function<void(const absl::Status&)> failed)
      : program_(program),
        clock_(clock),
        failed_(std::move(failed)),
        progress_(program.hang_seconds,
                  program.progress_tensor_board.empty() ? RunProgress::kLeastPatience : RunProgress::kBufferedPatience,
                  clock.Steady()) {}

  ~Rep() { stopping_ = true; }

  absl::Status Start(ProgramPlace place, const std::vector<std::string>& own) {
    if (!program_.progress_log.empty()) {
      MEDLEY_ASSIGN_OR_RETURN(pattern_, model::ProgressPattern::Make(program_.progress_log));
    }
    if (!program_.progress_tensor_board.empty()) {
      base::MutexLock reading(reading_);
      events_.emplace(program_.progress_tensor_board);
    }
    if (program_.progress_endpoint) {
      MEDLEY_ASSIGN_OR_RETURN(port_, ProgressPort::Open([this](const model::StepReport& report) { OnReport(report); }));
      place.progress_port = port_->port();
    }
    own_ = ChildEnvironment(own, place, 0);
    for (const std::string& variable : own_) {
      if (variable.starts_with("PATH=")) path_ = variable.substr(5);
    }
    ProcessesOptions options;
    options.command = program_.command;
    for (int rank = 0; rank < place.processes; ++rank)
      options.environments.push_back(ChildEnvironment(own, place, rank));
    options.first_rank = place.unit * place.processes;
    options.see = [this](int, std::string_view line) {
      if (!pattern_) return;
      if (const auto report = pattern_->Read(line)) OnReport(*report);
    };
    options.show = [](int rank, std::string_view line) {
      // As the program printed it, for `kubectl logs`; one write, so that lines stay whole.
      const std::string text = fmt::format("[{}] {}\n", rank, line);
      std::fwrite(text.data(), 1, text.size(), stdout);
      std::fflush(stdout);
    };
    options.changed = [this] {
      Wake();
      // What fails before that, the first WaitFor finds.
      if (!started_ || stopping_ || !failed_) return;
      if (const auto failure = processes_->failure()) failed_(Failed(*failure));
    };
    MEDLEY_ASSIGN_OR_RETURN(processes_, ProgramProcesses::Start(std::move(options), clock_));
    started_ = true;
    if (program_.progress_tensor_board.empty()) return absl::OkStatus();
    follower_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        ReadEvents(false);
        clock_.SleepFor(kEventLook, stop);
      }
    });
    return absl::OkStatus();
  }

  void Began() {
    base::MutexLock lock(mutex_);
    progress_.Began(clock_.Steady());
  }

  void Wake() {
    base::MutexLock lock(mutex_);
    ++wakes_;
    changed_.NotifyAll();
  }

  absl::Status WaitFor(int64_t step, bool follows, const std::function<bool()>& cancelled) {
    const bool last = step >= program_.steps;
    while (true) {
      const int64_t wakes = Wakes();  // before the look at what it is about
      if (cancelled()) return base::Cancelled("the run was ended");
      if (const auto failure = processes_->failure()) return Failed(*failure);
      if (processes_->ended()) {
        ReadEvents(true);
        return Ended(follows);
      }
      // A program that has reported its last step may take long to end.
      if (const std::string hang = follows ? "" : Hang(step, last); !hang.empty()) {
        PrintStacks(processes_->PidOfRank(), path_, own_, clock_);
        return base::Internal("{}", hang);
      }
      base::MutexLock lock(mutex_);
      if (!last && (follows || progress_.reached() >= step)) return absl::OkStatus();
      const int64_t reached = progress_.reached();
      changed_.WaitFor(mutex_, {}, kRunLook, [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
        return progress_.reached() != reached || wakes_ != wakes;
      });
    }
  }

  absl::Status Save(bool follows, const std::function<bool()>& cancelled) {
    const FileState before = StateOf(program_.saved_file);
    const int signalled = processes_->SignalHandlers(SignalNamed(program_.save_signal));
    if (follows) return absl::OkStatus();
    if (signalled == 0) {
      return base::FailedPrecondition("no process of the program handles {}, at which it is to save its state",
                                      program_.save_signal);
    }
    const base::SteadyTime deadline = clock_.Steady() + base::FromSeconds(program_.save_seconds);
    while (true) {
      const FileState now = StateOf(program_.saved_file);
      if (now.exists && now != before) return absl::OkStatus();
      if (processes_->ended() || processes_->failure() || cancelled()) return base::Cancelled("the program has ended");
      if (clock_.Steady() >= deadline) {
        return base::DeadlineExceeded("the program got {} and did not write {} within {:.0f} s", program_.save_signal,
                                      program_.saved_file, program_.save_seconds);
      }
      clock_.SleepFor(kSaveLook, {});
    }
  }

  void Freeze() {
    frozen_ = true;
    processes_->Freeze();
  }
  bool frozen() const { return frozen_; }

  void Stop(base::nanoseconds grace) {
    stopping_ = true;
    processes_->Stop(grace);
  }

  int64_t reached() const {
    base::MutexLock lock(mutex_);
    return progress_.reached();
  }
  int64_t widest() const {
    base::MutexLock lock(mutex_);
    return progress_.widest();
  }
  std::optional<int64_t> ResumedFrom(int64_t widest) const {
    base::MutexLock lock(mutex_);
    return progress_.ResumedFrom(widest);
  }
  std::optional<double> TakeLoss(int64_t step) {
    base::MutexLock lock(mutex_);
    return progress_.TakeLoss(step);
  }
  RunMeasure Measure() const {
    base::MutexLock lock(mutex_);
    return {progress_.measured(), progress_.MedianSeconds(), progress_.Spread()};
  }

 private:
  std::string Hang(int64_t step, bool last) const {
    base::MutexLock lock(mutex_);
    return !last && progress_.reached() >= step ? "" : progress_.Hang(clock_.Steady());
  }

  int64_t Wakes() const {
    base::MutexLock lock(mutex_);
    return wakes_;
  }

  // A report in an event file is about an earlier time, because the program's writer buffers them.
  void ReadEvents(bool last) {
    base::MutexLock reading(reading_);
    if (!events_) return;
    for (const EventReport& event : events_->Read(clock_.Steady(), last)) {
      const double now = base::ToSeconds(clock_.Now().time_since_epoch());
      OnReport(event.report, clock_.Steady() - base::FromSeconds(std::clamp(now - event.wall_time, 0.0, kOldestEvent)));
    }
  }

  void OnReport(const model::StepReport& report) { OnReport(report, clock_.Steady()); }

  void OnReport(const model::StepReport& report, base::SteadyTime at) {
    base::MutexLock lock(mutex_);
    const int64_t backwards = progress_.backwards();
    progress_.Report(report, at);
    if (backwards == 0 && progress_.backwards() > 0) {
      base::log::Warn("the program reports steps that it has reported before: they do not count",
                      {{"step", std::to_string(report.step)}, {"reached", std::to_string(progress_.reached())}});
    }
    changed_.NotifyAll();
  }

  absl::Status Failed(const ProcessFailure& failure) const {
    return base::Internal("rank {} {}{}{}", failure.rank, HowItEnded(failure.wait_status),
                          failure.words.empty() ? "" : ":\n", failure.words);
  }

  // All processes have ended with 0.
  absl::Status Ended(bool follows) {
    base::MutexLock lock(mutex_);
    if (follows || progress_.MayHaveFinished(program_.steps)) return absl::OkStatus();
    if (progress_.reached() == 0) {
      return base::InvalidArgument(
          "the program ended with 0 and reported no step; spec.program.steps says that it has {}", program_.steps);
    }
    return base::InvalidArgument("the program ended with 0 after step {}; spec.program.steps says that it has {}",
                                 progress_.reached(), program_.steps);
  }

  const model::ProgramSpec program_;
  base::Clock& clock_;
  const std::function<void(const absl::Status&)> failed_;
  std::atomic<bool> started_ = false;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> frozen_ = false;
  std::vector<std::string> own_;  // as of rank 0 of the unit, for what looks at it
  std::string path_;
  std::optional<model::ProgressPattern> pattern_;
  mutable base::Mutex mutex_;
  base::CondVar changed_;
  int64_t wakes_ ABSL_GUARDED_BY(mutex_) = 0;
  RunProgress progress_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<ProgressPort> port_;
  base::Mutex reading_;  // before mutex_
  std::optional<EventFiles> events_ ABSL_GUARDED_BY(reading_);
  std::unique_ptr<ProgramProcesses> processes_;  // its reader calls the others
  std::jthread follower_;                        // last member: it calls the others
};

ProgramRun::ProgramRun(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
ProgramRun::~ProgramRun() = default;

absl::StatusOr<std::unique_ptr<ProgramRun>> ProgramRun::Start(const model::ProgramSpec& program,
                                                              const ProgramPlace& place,
                                                              const std::vector<std::string>& own, base::Clock& clock,
                                                              std::function<void(const absl::Status&)> failed) {
  auto rep = std::make_unique<Rep>(program, clock, std::move(failed));
  MEDLEY_RETURN_IF_ERROR(rep->Start(place, own));
  return std::unique_ptr<ProgramRun>(new ProgramRun(std::move(rep)));
}

absl::Status ProgramRun::WaitFor(int64_t step, bool follows, const std::function<bool()>& cancelled) {
  return rep_->WaitFor(step, follows, cancelled);
}
void ProgramRun::Began() { rep_->Began(); }
void ProgramRun::Wake() { rep_->Wake(); }
absl::Status ProgramRun::Save(bool follows, const std::function<bool()>& cancelled) {
  return rep_->Save(follows, cancelled);
}
void ProgramRun::Freeze() { rep_->Freeze(); }
bool ProgramRun::frozen() const { return rep_->frozen(); }
void ProgramRun::Stop(base::nanoseconds grace) { rep_->Stop(grace); }
int64_t ProgramRun::reached() const { return rep_->reached(); }
int64_t ProgramRun::widest() const { return rep_->widest(); }
std::optional<int64_t> ProgramRun::ResumedFrom(int64_t widest) const { return rep_->ResumedFrom(widest); }
std::optional<double> ProgramRun::TakeLoss(int64_t step) { return rep_->TakeLoss(step); }
RunMeasure ProgramRun::Measure() const { return rep_->Measure(); }

absl::StatusOr<int> FreePort() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) return base::ResourceExhausted("no further socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const bool bound = bind(listener, any, size) == 0 && getsockname(listener, any, &size) == 0;
  close(listener);
  if (!bound) return base::ResourceExhausted("no port is free");
  return ntohs(address.sin_port);
}

}  // namespace medley::worker
