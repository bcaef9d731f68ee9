// Merges the members' scores of the test data. Not thread-safe.
//
// AUC by the trapezoid rule over score buckets (Fawcett, "An introduction to ROC analysis", 2006): pairs in the same
// bucket count one half.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "medley/job/v1/coordinator.pb.h"

namespace medley::worker {

class Scores {
 public:
  void Add(const job::v1::Evaluated& part);
  // Returns "auc", "log_loss", "accuracy" (of the prediction 1 for scores of 0.5 and more) and "test_samples". Empty
  // when nothing was scored; without "auc" when only one class occurs.
  std::map<std::string, double> Metrics() const;

 private:
  int64_t samples_ = 0;
  double log_loss_sum_ = 0;
  std::vector<int64_t> positives_;
  std::vector<int64_t> negatives_;
};

}  // namespace medley::worker
