#include "localcluster/node/supervisor.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <deque>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/log.h"
#include "common/base/status.h"
#include "localcluster/node/log_files.h"

namespace medley::localcluster {

std::optional<ProcessExit> Process::exit() const {
  base::MutexLock lock(mutex_);
  return exit_;
}

void Process::Signal(int number) {
  base::MutexLock lock(mutex_);
  if (!exit_) kill(-pid_, number);
}

void Process::Reap(int pidfd, base::WallTime now) {
  base::MutexLock lock(mutex_);
  kill(-pid_, SIGKILL);  // the leader is a zombie until waitid, so its number is not reused yet
  siginfo_t info = {};
  while (waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED) != 0 && errno == EINTR) {
  }
  const bool killed = info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED;
  exit_ = ProcessExit{killed ? 128 + info.si_status : info.si_status, killed ? info.si_status : 0, now};
}

class Supervisor::Loop {
 public:
  Loop(base::Clock& clock, UniqueFd wake) : clock_(clock), wake_(std::move(wake)) {
    thread_ = std::jthread([this](std::stop_token stop) { Main(stop); });
  }
  ~Loop() { Stop(); }

  void Stop() {
    {
      base::MutexLock lock(mutex_);
      closed_ = true;
    }
    thread_.request_stop();
    Wake();
    if (thread_.joinable()) thread_.join();
  }

  absl::StatusOr<std::shared_ptr<Process>> Run(Launch launch) {
    Request request{std::move(launch), {}};
    auto answer = request.answer.get_future();
    {
      base::MutexLock lock(mutex_);
      if (closed_) return base::Unavailable("the process node is stopping");
      requests_.push_back(std::move(request));
    }
    Wake();
    return answer.get();  // the loop answers every request that it has taken, even while it stops
  }

 private:
  using Answer = absl::StatusOr<std::shared_ptr<Process>>;
  struct Request {
    Launch launch;
    std::promise<Answer> answer;
  };
  struct Child {
    std::shared_ptr<Process> process;
    UniqueFd pidfd;
    UniqueFd output;
    LogWriter log;
    std::function<void()> on_exit;
  };

  void Wake() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
  }

  void Main(std::stop_token stop) {
    while (!stop.stop_requested()) {
      Poll();
      TakeRequests();
    }
    for (Child& child : children_) child.process->Signal(SIGKILL);
    for (Child& child : children_) Finish(child);
    children_.clear();
    TakeRequests();
  }

  void Poll() {
    std::vector<pollfd> fds = {{wake_.get(), POLLIN, 0}};
    for (const Child& child : children_) {
      fds.push_back({child.pidfd.get(), POLLIN, 0});
      fds.push_back({child.output.get(), POLLIN, 0});  // -1 after its end, which poll ignores
    }
    if (poll(fds.data(), fds.size(), -1) < 0) return;
    if (fds[0].revents != 0) {
      uint64_t count = 0;
      [[maybe_unused]] const ssize_t got = read(wake_.get(), &count, sizeof(count));
    }
    std::vector<Child> living;
    for (size_t i = 0; i < children_.size(); ++i) {
      Child& child = children_[i];
      if (fds[2 + 2 * i].revents != 0) Drain(child, 16);
      if (fds[1 + 2 * i].revents != 0) {
        Finish(child);
      } else {
        living.push_back(std::move(child));
      }
    }
    children_ = std::move(living);
  }

  // Reads at most `rounds` buffers, so that a child with much output does not delay the others.
  void Drain(Child& child, int rounds) {
    std::array<char, 64 << 10> buffer;
    while (child.output.valid() && rounds-- > 0) {
      const ssize_t got = read(child.output.get(), buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return;
      if (got == 0) child.output.Reset();
      if (got > 0) child.log.Write(std::string_view(buffer.data(), static_cast<size_t>(got)));
    }
  }

  void Finish(Child& child) {
    siginfo_t info = {};  // if the child was just killed, waitid waits for its end
    while (waitid(P_PIDFD, static_cast<id_t>(child.pidfd.get()), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
    constexpr int kPipeBuffers = 64;  // more than a pipe holds
    Drain(child, kPipeBuffers);
    child.process->Reap(child.pidfd.get(), clock_.Now());
    if (child.log.lost_bytes() > 0) {
      base::log::Warn(
          "some output could not be written to a log",
          {{"pid", std::to_string(child.process->pid())}, {"lost_bytes", std::to_string(child.log.lost_bytes())}});
    }
    if (child.on_exit) child.on_exit();
  }

  void TakeRequests() {
    std::deque<Request> requests;
    bool closed = false;
    {
      base::MutexLock lock(mutex_);
      requests.swap(requests_);
      closed = closed_;
    }
    for (Request& request : requests) {
      request.answer.set_value(closed ? Answer(base::Unavailable("the process node is stopping"))
                                      : Begin(std::move(request.launch)));
    }
  }

  Answer Begin(Launch launch) {
    MEDLEY_ASSIGN_OR_RETURN(LogWriter log, LogWriter::Open(launch.log, launch.log_bytes, clock_));
    MEDLEY_ASSIGN_OR_RETURN(Spawned spawned, Spawn(launch.spec));
    if (launch.spec.confined && !spawned.user_namespace && !std::exchange(said_, true)) {
      base::log::Info("programs share the user namespace of this process, because the machine allows no other");
    }
    auto process = std::make_shared<Process>(spawned.pid, clock_.Now());
    children_.push_back(
        {process, std::move(spawned.pidfd), std::move(spawned.output), std::move(log), std::move(launch.on_exit)});
    return process;
  }

  base::Clock& clock_;
  const UniqueFd wake_;
  std::vector<Child> children_;  // used only by the loop's thread
  bool said_ = false;            // as children_
  base::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Request> requests_ ABSL_GUARDED_BY(mutex_);  // at most one per thread that calls Run
  std::jthread thread_;
};

namespace {
UniqueFd MakeEventFd() { return UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }
}  // namespace

Supervisor::Supervisor(base::Clock& clock) : clock_(clock) {}
Supervisor::~Supervisor() = default;

absl::Status Supervisor::Start() {
  UniqueFd wake = MakeEventFd();
  if (!wake.valid()) return base::ErrnoStatus(errno, "eventfd");
  loop_ = std::make_unique<Loop>(clock_, std::move(wake));
  return absl::OkStatus();
}

void Supervisor::Stop() {
  if (loop_ != nullptr) loop_->Stop();
}

absl::StatusOr<std::shared_ptr<Process>> Supervisor::Run(Launch launch) {
  if (loop_ == nullptr) return base::Unavailable("the supervisor was not started");
  return loop_->Run(std::move(launch));
}

}  // namespace medley::localcluster
