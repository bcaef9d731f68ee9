// The planner `tapp`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "reproductions/tapp/policy.h"
#include "scheduler-service/planning/planner.h"

namespace medley::reproductions::tapp {

struct TappOptions {
  TappSettings settings;
  // The paper's settings: Adam's rate 0.1, 256 groups, no entropy, rewards in seconds.
  bool paper = false;
  int draws_a_round = 20;
  double baseline_decay = 0.9;  // of the exponential moving average of rewards
  int64_t calls = 4000;         // simulations at most; what the policy draws again costs none
  int64_t rounds = 400;         // at most
  // The part of `calls` that local search around the best pipeline gets; 0: what the networks drew is the answer.
  double polish = 0.5;
};

// One round, for figures: its number, the mean reward and the best seconds so far.
struct TappRound {
  int64_t round = 0;
  double mean_seconds = 0;
  double best_seconds = 0;
};

std::unique_ptr<sched::Planner> MakeTapp(TappOptions options = {}, std::function<void(const TappRound&)> watch = {});

}  // namespace medley::reproductions::tapp
