#include "operator/controllers/slow_calls.h"

#include <thread>
#include <utility>
#include <vector>

#include "operator/lifecycle/actions.h"

namespace medley::ops {

// Guarded by the mutex of SlowCalls, but for `stop`.
struct SlowCalls::State {
  Question question;
  std::stop_source stop;
  std::optional<lifecycle::Answer> answer;
  bool was_offered = false;  // a pass has ended since the answer came
};

class SlowCalls::Threads {
 public:
  explicit Threads(int count) {
    for (int i = 0; i < count; ++i) threads_.emplace_back([this](const std::stop_token& stop) { Run(stop); });
  }

  void Submit(int urgency, std::function<void()> call) {
    {
      base::MutexLock lock(mutex_);
      waiting_.emplace(-urgency, std::move(call));
    }
    changed_.NotifyOne();
  }
  // Calls that have not begun are dropped.
  void Stop() {
    for (std::jthread& thread : threads_) thread.request_stop();
    threads_.clear();
  }

 private:
  void Run(const std::stop_token& stop) {
    while (true) {
      std::function<void()> call;
      {
        base::MutexLock lock(mutex_);
        const bool found =
            changed_.Wait(mutex_, stop, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !waiting_.empty(); });
        if (!found || stop.stop_requested()) return;
        call = std::move(waiting_.begin()->second);
        waiting_.erase(waiting_.begin());
      }
      call();
    }
  }

  base::Mutex mutex_;
  base::CondVar changed_;
  std::multimap<int, std::function<void()>> waiting_ ABSL_GUARDED_BY(mutex_);  // the most urgent first; else in order
  std::vector<std::jthread> threads_;                                          // last: they use the above
};

SlowCalls::SlowCalls(Options options, OnAnswer on_answer)
    : on_answer_(std::move(on_answer)), pools_([&options] {
        std::map<Pool, std::unique_ptr<Threads>> pools;
        pools[Pool::kPlanner] = std::make_unique<Threads>(options.planner_threads);
        pools[Pool::kCoordinators] = std::make_unique<Threads>(options.coordinator_threads);
        pools[Pool::kSuspensions] = std::make_unique<Threads>(options.suspension_threads);
        pools[Pool::kLogs] = std::make_unique<Threads>(options.log_threads);
        return pools;
      }()) {}

SlowCalls::~SlowCalls() { Stop(); }

std::optional<lifecycle::Answer> SlowCalls::Ask(const kube::Key& job, const Question& question, Pool pool,
                                                const Call& call) {
  base::MutexLock lock(mutex_);
  if (stopped_) return std::nullopt;
  std::shared_ptr<State>& state = calls_[job][question.kind];
  if (state != nullptr && state->question == question) {
    if (!state->answer) return std::nullopt;
    std::optional<lifecycle::Answer> answer = std::move(state->answer);
    calls_[job].erase(question.kind);
    return answer;
  }
  if (state != nullptr) state->stop.request_stop();
  state = std::make_shared<State>();
  state->question = question;
  pools_.at(pool)->Submit(question.urgency, [this, job, begun = state, call] { Run(job, begun, call); });
  return std::nullopt;
}

void SlowCalls::Run(const kube::Key& job, const std::shared_ptr<State>& state, const Call& call) {
  if (state->stop.stop_requested()) return;
  lifecycle::Answer answer = call(state->stop.get_token());
  {
    base::MutexLock lock(mutex_);
    if (state->stop.stop_requested()) return;  // nobody asks any more
    state->answer = std::move(answer);
  }
  on_answer_(job);
}

void SlowCalls::EndPass(const kube::Key& job) {
  base::MutexLock lock(mutex_);
  const auto calls = calls_.find(job);
  if (calls == calls_.end()) return;
  std::erase_if(calls->second, [](auto& call) {
    State& state = *call.second;
    return state.answer && std::exchange(state.was_offered, true);
  });
  if (calls->second.empty()) calls_.erase(calls);
}

void SlowCalls::Drop(const kube::Key& job) {
  base::MutexLock lock(mutex_);
  const auto calls = calls_.find(job);
  if (calls == calls_.end()) return;
  for (auto& [kind, state] : calls->second) state->stop.request_stop();
  calls_.erase(calls);
}

void SlowCalls::Stop() {
  {
    base::MutexLock lock(mutex_);
    if (stopped_) return;
    stopped_ = true;
    for (auto& [job, calls] : calls_) {
      for (auto& [kind, state] : calls) state->stop.request_stop();
    }
  }
  for (const auto& [pool, threads] : pools_) threads->Stop();
}

}  // namespace medley::ops
