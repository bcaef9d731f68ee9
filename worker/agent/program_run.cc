#include "worker/agent/program_run.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <utility>
#include <vector>

#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/model/progress_pattern.h"
#include "worker/agent/exit_words.h"
#include "worker/agent/processes.h"
#include "worker/agent/progress_port.h"
#include "worker/agent/run_progress.h"

namespace medley::worker {
namespace {

constexpr base::milliseconds kSaveLook{20};
constexpr base::milliseconds kRunLook{100};

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
      : program_(program), clock_(clock), failed_(std::move(failed)), progress_(program.hang_seconds, clock.Steady()) {}

  ~Rep() { stopping_ = true; }

  absl::Status Start(ProgramPlace place, const std::vector<std::string>& own) {
    if (!program_.progress_log.empty()) {
      MEDLEY_ASSIGN_OR_RETURN(pattern_, model::ProgressPattern::Make(program_.progress_log));
    }
    if (program_.progress_endpoint) {
      MEDLEY_ASSIGN_OR_RETURN(port_, ProgressPort::Open([this](const model::StepReport& report) { OnReport(report); }));
      place.progress_port = port_->port();
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
    return absl::OkStatus();
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
      if (processes_->ended()) return Ended(follows);
      base::MutexLock lock(mutex_);
      if (!last && (follows || progress_.reached() >= step)) return absl::OkStatus();
      if (!follows) {
        // A program that has reported its last step may take long to end.
        const std::string hang = progress_.Hang(clock_.Steady());
        if (!hang.empty()) return base::Internal("{}", hang);
      }
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
  int64_t Wakes() const {
    base::MutexLock lock(mutex_);
    return wakes_;
  }

  void OnReport(const model::StepReport& report) {
    base::MutexLock lock(mutex_);
    const int64_t backwards = progress_.backwards();
    progress_.Report(report, clock_.Steady());
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
  std::optional<model::ProgressPattern> pattern_;
  mutable base::Mutex mutex_;
  base::CondVar changed_;
  int64_t wakes_ ABSL_GUARDED_BY(mutex_) = 0;
  RunProgress progress_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<ProgressPort> port_;
  std::unique_ptr<ProgramProcesses> processes_;  // last member: its reader calls the others
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
void ProgramRun::Wake() { rep_->Wake(); }
absl::Status ProgramRun::Save(bool follows, const std::function<bool()>& cancelled) {
  return rep_->Save(follows, cancelled);
}
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
