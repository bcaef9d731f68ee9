#include "worker/trainer/member.h"

#include <atomic>
#include <deque>
#include <list>
#include <optional>
#include <thread>
#include <utility>

#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "worker/trainer/restore_error.h"

namespace medley::worker {
namespace pb = ::medley::job::v1;
namespace {

constexpr base::seconds kLastWords{2};  // for the answer to the fault of a process that must end

}  // namespace

bool IsPermanent(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnimplemented:
      return true;
    default:
      return false;
  }
}

bool IsExchange(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:       // a connection broke or could not be made
    case absl::StatusCode::kAborted:           // a group or a shard was closed
    case absl::StatusCode::kDeadlineExceeded:  // a peer did not answer
      return true;
    default:
      return false;
  }
}

class Member::Rep {
 public:
  Rep(SessionOptions options, base::Clock& clock) : clock_(clock), session_(std::move(options), clock) {}

  void Send(pb::SessionRequest request) { session_.Send(std::move(request)); }

  absl::StatusOr<int> Run(Role& role, std::stop_token stop) {
    role_ = &role;
    std::stop_callback on_stop(stop, [this] { end_.request_stop(); });
    absl::Status session;
    {
      std::jthread worker([this](std::stop_token s) { Work(s); });
      session = session_.Run([this](const pb::SessionResponse& order) { OnOrder(order); },
                             [&role] { return role.held(); }, end_.get_token());
      CancelPrepare();
      role.Abort();
    }
    prepares_.clear();  // joins
    base::MutexLock lock(mutex_);
    if (exit_code_.has_value()) return *exit_code_;
    if (!broken_.ok()) return base::Annotate(broken_, "this process can compute nothing more");
    MEDLEY_RETURN_IF_ERROR(session);
    return base::Cancelled("stopped before the coordinator released this member");
  }

  void Leave(base::nanoseconds notice) {
    pb::SessionRequest request;
    request.mutable_leaving()->mutable_notice()->set_seconds(std::chrono::duration_cast<base::seconds>(notice).count());
    Send(std::move(request));
    leaving_ = std::jthread([this, notice](std::stop_token s) {
      if (clock_.SleepFor(notice, s)) end_.request_stop();
    });
  }

 private:
  struct Order {
    pb::SessionResponse message;  // any order except a lease
    std::optional<pb::StepLease> lease;
    int64_t generation = 0;  // the generation of the lease
  };
  struct PrepareTask {
    std::stop_source stop;
    std::atomic<bool> done = false;
    std::jthread thread;  // last member: joined before the others are destroyed
  };

  void OnOrder(const pb::SessionResponse& order) {
    switch (order.message_case()) {
      case pb::SessionResponse::kPrepare:
        return StartPrepare(order.prepare());
      case pb::SessionResponse::kAbandon:
        return CancelPrepare();
      case pb::SessionResponse::kHalt: {
        ++halts_;
        CancelPrepare();
        role_->Abort();
        base::MutexLock lock(mutex_);
        orders_.clear();
        if (!broken_.ok()) end_.request_stop();  // the coordinator knows why
        break;
      }
      case pb::SessionResponse::kLease: {
        base::MutexLock lock(mutex_);
        for (const pb::StepLease& step : order.lease().steps())
          orders_.push_back({{}, step, order.lease().generation()});
        changed_.NotifyAll();
        return;
      }
      case pb::SessionResponse::kRelease: {
        base::log::Info(
            "the coordinator released this member",
            {{"exit_code", std::to_string(order.release().exit_code())}, {"reason", order.release().reason()}});
        base::MutexLock lock(mutex_);
        exit_code_ = order.release().exit_code();
        end_.request_stop();
        return;
      }
      default:
        break;
    }
    base::MutexLock lock(mutex_);
    orders_.push_back({order, std::nullopt, 0});
    changed_.NotifyAll();
  }

  // Also drops a generation that has been prepared.
  void CancelPrepare() {
    std::shared_ptr<PreparedGeneration> dropped;
    base::MutexLock lock(mutex_);
    for (PrepareTask& task : prepares_) task.stop.request_stop();
    prepares_.remove_if([](const PrepareTask& task) { return task.done.load(); });
    dropped = std::exchange(next_, nullptr);
  }

  void StartPrepare(const pb::Prepare& order) {
    CancelPrepare();
    base::MutexLock lock(mutex_);
    PrepareTask& task = prepares_.emplace_back();
    task.thread = std::jthread([this, order, &task] {
      RunPrepare(order, task.stop.get_token());
      task.done = true;
    });
  }

  void RunPrepare(const pb::Prepare& order, std::stop_token stop) {
    auto prepared = role_->Prepare(order, stop);
    pb::SessionRequest report;
    {
      base::MutexLock lock(mutex_);
      if (stop.stop_requested()) return;
      if (prepared.ok()) {
        *report.mutable_warmed() = (*prepared)->warmed();
        next_ = *std::move(prepared);
      }
    }
    if (!report.has_warmed()) {
      CheckDevice();
      return Fault(order.generation(), 0, prepared.status());
    }
    Send(std::move(report));
  }

  void Work(std::stop_token stop) {
    while (true) {
      Order order;
      std::optional<Order> ahead;
      {
        base::MutexLock lock(mutex_);
        const auto there = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !orders_.empty(); };
        if (!changed_.Wait(mutex_, stop, there) || stop.stop_requested()) return;
        order = std::move(orders_.front());
        orders_.pop_front();
        if (!orders_.empty()) ahead = orders_.front();
      }
      const int64_t halts = halts_;
      const auto [generation, step] = PlaceOf(order);
      const absl::Status status =
          Execute(order, ahead.has_value() && ahead->lease.has_value() ? &*ahead->lease : nullptr);
      if (status.ok() || stop.stop_requested()) continue;
      const bool broken = CheckDevice();
      if (broken || halts == halts_) Fault(generation, step, status);
      if (broken) return;
    }
  }

  // After an error. Returns true if this process can compute nothing more: Run then ends when the coordinator has
  // answered the fault that the caller sends, or soon.
  bool CheckDevice() {
    absl::Status device = role_->CheckDevice();
    if (device.ok()) return false;
    base::MutexLock lock(mutex_);
    if (!broken_.ok()) return true;
    broken_ = std::move(device);
    last_words_ = std::jthread([this](std::stop_token s) {
      if (clock_.SleepFor(kLastWords, s)) end_.request_stop();
    });
    return true;
  }

  static std::pair<int64_t, int64_t> PlaceOf(const Order& order) {
    if (order.lease.has_value()) return {order.generation, order.lease->step()};
    switch (order.message.message_case()) {
      case pb::SessionResponse::kSwitch:
        return {order.message.switch_().generation(), order.message.switch_().step()};
      case pb::SessionResponse::kDrain:
        return {order.message.drain().generation(), order.message.drain().step()};
      case pb::SessionResponse::kCheckpoint:
        return {order.message.checkpoint().generation(), order.message.checkpoint().step()};
      case pb::SessionResponse::kEvaluate:
        return {order.message.evaluate().generation(), order.message.evaluate().step()};
      default:
        return {0, 0};
    }
  }

  absl::Status Execute(const Order& order, const pb::StepLease* ahead) {
    if (order.lease.has_value()) return role_->Train(order.generation, *order.lease, ahead);
    pb::SessionRequest report;
    switch (order.message.message_case()) {
      case pb::SessionResponse::kSwitch: {
        MEDLEY_ASSIGN_OR_RETURN(*report.mutable_ready(), role_->Switch(order.message.switch_(), TakeNext()));
        break;
      }
      case pb::SessionResponse::kHalt: {
        *report.mutable_halted() = role_->Halt(order.message.halt().generation());
        break;
      }
      case pb::SessionResponse::kDrain:
        return role_->Drain(order.message.drain());
      case pb::SessionResponse::kCheckpoint: {
        const pb::Checkpoint& checkpoint = order.message.checkpoint();
        return role_->Checkpoint(checkpoint, [this, generation = checkpoint.generation(),
                                              step = checkpoint.step()](absl::StatusOr<pb::Checkpointed> done) {
          if (!done.ok()) return CheckpointFault(generation, step, done.status());
          pb::SessionRequest written;
          *written.mutable_checkpointed() = *std::move(done);
          Send(std::move(written));
        });
      }
      case pb::SessionResponse::kEvaluate: {
        MEDLEY_ASSIGN_OR_RETURN(*report.mutable_evaluated(), role_->Evaluate(order.message.evaluate()));
        break;
      }
      case pb::SessionResponse::kProbe: {
        const absl::StatusOr<double> seconds = role_->Probe(order.message.probe());
        report.mutable_probed()->set_id(order.message.probe().id());
        if (seconds.ok()) report.mutable_probed()->set_seconds(*seconds);
        if (!seconds.ok()) report.mutable_probed()->set_error(base::Message(seconds.status()));
        break;
      }
      default:
        return absl::OkStatus();
    }
    Send(std::move(report));
    return absl::OkStatus();
  }

  std::shared_ptr<PreparedGeneration> TakeNext() {
    base::MutexLock lock(mutex_);
    return std::exchange(next_, nullptr);
  }

  void Fault(int64_t generation, int64_t step, const absl::Status& status) {
    base::log::Warn("fault", {{"generation", std::to_string(generation)},
                              {"step", std::to_string(step)},
                              {"status", base::ToString(status)}});
    pb::SessionRequest request;
    pb::Fault& fault = *request.mutable_fault();
    fault.set_generation(generation);
    fault.set_step(step);
    fault.set_message(base::Message(status));
    const bool restore = IsRestoreError(status);
    fault.set_permanent(restore ? IsDamage(status) : IsPermanent(status));
    if (restore) {
      fault.set_kind(pb::FAULT_KIND_RESTORE);
    } else if (IsExchange(status)) {
      fault.set_kind(pb::FAULT_KIND_EXCHANGE);
    }
    Send(std::move(request));
  }

  // The member trains on.
  void CheckpointFault(int64_t generation, int64_t step, const absl::Status& status) {
    base::log::Warn("could not write a part of a checkpoint",
                    {{"step", std::to_string(step)}, {"status", base::ToString(status)}});
    pb::SessionRequest request;
    pb::Fault& fault = *request.mutable_fault();
    fault.set_generation(generation);
    fault.set_step(step);
    fault.set_message(base::Message(status));
    fault.set_kind(pb::FAULT_KIND_CHECKPOINT);
    Send(std::move(request));
  }

  base::Clock& clock_;
  SessionClient session_;
  Role* role_ = nullptr;
  std::stop_source end_;
  std::atomic<int64_t> halts_ = 0;
  base::Mutex mutex_;
  base::CondVar changed_;
  std::deque<Order> orders_ ABSL_GUARDED_BY(mutex_);  // short, because the coordinator leases at most lease_ahead steps
  std::shared_ptr<PreparedGeneration> next_ ABSL_GUARDED_BY(mutex_);
  std::optional<int> exit_code_ ABSL_GUARDED_BY(mutex_);
  absl::Status broken_ ABSL_GUARDED_BY(mutex_);  // Role::CheckDevice
  std::list<PrepareTask> prepares_;              // used only by the session thread
  std::jthread leaving_;
  std::jthread last_words_ ABSL_GUARDED_BY(mutex_);
};

Member::Member(SessionOptions options, base::Clock& clock) : rep_(std::make_unique<Rep>(std::move(options), clock)) {}
Member::~Member() = default;
void Member::Send(pb::SessionRequest request) { rep_->Send(std::move(request)); }
absl::StatusOr<int> Member::Run(Role& role, std::stop_token stop) { return rep_->Run(role, std::move(stop)); }
void Member::Leave(base::nanoseconds notice) { rep_->Leave(notice); }

}  // namespace medley::worker
