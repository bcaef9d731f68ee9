// The usual judge of a problem with its question: of tests and benches that judge plans themselves.
#pragma once

#include <memory>
#include <utility>

#include "scheduler-service/planning/judge.h"

namespace medley::sched {

class JudgeOf {
 public:
  explicit JudgeOf(Question question)
      : question_(std::make_unique<Question>(std::move(question))), judge_(MakeUsualJudge(*question_, {})) {}

  Judge& operator*() const { return *judge_; }
  Judge* operator->() const { return judge_.get(); }

 private:
  std::unique_ptr<const Question> question_;
  std::unique_ptr<Judge> judge_;
};

}  // namespace medley::sched
