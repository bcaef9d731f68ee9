// Calls of jobs that may take long: plans, calls to coordinators, logs. They have threads of their own, so that a slow
// planner or a coordinator that hangs never keeps a worker of the controller from other jobs, nor its own job from
// further passes.
//
//   pass 1: Ask -> nullopt, the call begins ... the call ends, on_answer(job) ... pass 2: Ask -> the answer
//
// A job has at most one call of each kind. Thread-safe. Owner: OperatorApp, or a test.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "common/base/mutex.h"
#include "kube/object.h"
#include "operator/lifecycle/actions.h"

namespace medley::ops {

class SlowCalls {
 public:
  struct Options {
    int planner_threads = 16;  // plans that are asked for at once, of all jobs; others wait for their turn
    int pod_threads = 32;      // calls to coordinators and for logs at once
  };
  enum class Pool { kPlanner, kPods };
  // Two questions are the same if their texts and objects are.
  struct Question {
    std::string kind;
    std::string text;
    std::shared_ptr<const void> object;  // compared by address; may be null
    bool operator==(const Question&) const = default;
  };
  using Call = std::function<lifecycle::Answer(std::stop_token)>;
  // Called from a thread of a pool when an answer has come.
  using OnAnswer = std::function<void(const kube::Key& job)>;

  SlowCalls(Options options, OnAnswer on_answer);
  ~SlowCalls();  // Stop

  // Hands over the answer of `call`, once; nullopt: it is not there yet. The call begins unless it runs already. A call
  // of the same kind with another question is cancelled.
  std::optional<lifecycle::Answer> Ask(const kube::Key& job, const Question& question, Pool pool, const Call& call);
  // Call it after each pass over a job. Drops the answers that were there during the whole pass and that it did not ask
  // for: the job has changed its mind.
  void EndPass(const kube::Key& job);
  // Cancels the calls of a job that does not exist any more.
  void Drop(const kube::Key& job);
  // Cancels all calls and waits for their threads. Idempotent; afterwards nothing is called any more.
  void Stop();

 private:
  struct State;  // of a call
  class Threads;
  void Run(const kube::Key& job, const std::shared_ptr<State>& state, const Call& call);

  const OnAnswer on_answer_;
  base::Mutex mutex_;
  std::map<kube::Key, std::map<std::string, std::shared_ptr<State>>> calls_ ABSL_GUARDED_BY(mutex_);  // by kind
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  const std::unique_ptr<Threads> planner_;
  const std::unique_ptr<Threads> pods_;
};

}  // namespace medley::ops
