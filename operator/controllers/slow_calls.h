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

namespace medley::ops::lifecycle {
class Answer;
}

namespace medley::ops {

class SlowCalls {
 public:
  struct Options {
    int planner_threads = 16;  // plans that are asked for at once, of all jobs; others wait
    int coordinator_threads = 32;
    int suspension_threads = 16;  // each lasts as long as a checkpoint
    int log_threads = 8;          // a kubelet that does not answer holds one for the client's timeout
  };
  // Each has threads of its own, so that slow calls of one kind do not delay urgent ones of another.
  enum class Pool { kPlanner, kCoordinators, kSuspensions, kLogs };
  // Two questions are the same if their kinds, texts and objects are.
  struct Question {
    std::string kind;
    std::string text;
    std::shared_ptr<const void> object;  // compared by address; may be null
    int urgency = 0;                     // of calls that wait for a thread of their pool, higher ones are made first
    bool operator==(const Question& other) const {
      return kind == other.kind && text == other.text && object == other.object;
    }
  };
  using Call = std::function<lifecycle::Answer(std::stop_token)>;
  // Called from a thread of a pool when an answer has come.
  using OnAnswer = std::function<void(const kube::Key& job)>;

  SlowCalls(Options options, OnAnswer on_answer);
  ~SlowCalls();  // Stop

  // Hands over the answer of `call`, once; nullopt: it has not come yet. The call begins unless it runs already. A call
  // of the same kind with another question is cancelled. `call` throws nothing.
  std::optional<lifecycle::Answer> Ask(const kube::Key& job, const Question& question, Pool pool, const Call& call);
  // Call it after each pass that succeeded. Drops the answers that had come before the pass began and that it did not
  // ask for: the job does not need them any more.
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
  const std::map<Pool, std::unique_ptr<Threads>> pools_;
};

}  // namespace medley::ops
