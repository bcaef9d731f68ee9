// Detects that a trainer has become slow, from its own seconds of computation in each step.
//
// Source: the thesis on hierarchical clusters, section 4.4, algorithms 2 and 3 (run_time_list, running_average).
// Changes:
// - Algorithm 3 compares the absolute difference, so it also flags a node that became faster. Only slowness counts
//   here.
// - It compares one step. Here the mean of `window` steps is compared, because single steps of a busy machine vary a
//   lot.
// - The threshold is in standard deviations of such a mean, as measured, and not in seconds. A mean less than
//   kLeastSlowness times the usual one is never slow, however small the deviation.
// - Algorithm 3 adds slow steps to the running average, which makes them usual. Here a slow trainer's usual time stays.
//
// A trainer is compared with its own history and not with other trainers, because pools have unlike hardware and stages
// unlike work. Time of communication is not used: a trainer measures in it how long it waits for its peers, and steps
// of coupled trainers take all of them equally long. So a slow link alone is not detected.
//
// Not thread-safe. SlowMembers (slow_members.h) decides what follows from it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "common/model/forward.h"

namespace medley::worker {

struct AnomalyPolicy {
  model::AnomalyDetector detector{};  // kOff
  int window = 0;                     // steps, >= 1
  double threshold = 0;               // standard deviations of a mean over `window` steps, > 0
  bool operator==(const AnomalyPolicy&) const = default;
};

inline constexpr double kLeastSlowness = 1.5;  // times the usual

class SlownessDetector {
 public:
  explicit SlownessDetector(const AnomalyPolicy& policy);
  virtual ~SlownessDetector() = default;

  // The seconds of the next step. The first `window` steps of a generation warm up and do not count.
  void Add(double seconds);
  // Another generation begins, in which the trainer has `work` times the samples of the one before. What was usual,
  // times `work` if that is more than 1, becomes an upper bound of what is usual: a step has fixed costs, so with half
  // of the samples it takes more than half of the time.
  void Restart(double work);
  // What was usual before the coordinator was restarted.
  void Restore(double usual);

  // Seconds of a step. 0: not enough steps yet.
  double usual() const { return Known().mean; }
  double recent() const;  // mean of the last steps; 0 while it warms up
  bool slow() const;

 protected:
  struct Moments {
    double mean = 0;      // 0: not known
    double variance = 0;  // of a mean over `window` steps
  };
  int window() const { return policy_.window; }

 private:
  struct Step {
    double seconds = 0;
    bool usual = true;  // the trainer was not slow
  };
  virtual void AddRecent(double seconds) = 0;
  virtual double RecentMean() const = 0;   // of the last `window` steps; 0: not so many yet
  virtual void Learn(double seconds) = 0;  // a usual step, `window` steps ago
  virtual Moments Learnt() const = 0;
  virtual void Forget() = 0;
  Moments Bound() const;  // of what is usual, with the samples of this generation
  Moments Known() const;

  const AnomalyPolicy policy_;
  Moments bound_;          // from an earlier generation
  double scale_ = 1;       // samples of this generation over those of that one
  int64_t steps_ = 0;      // of this generation
  std::deque<Step> last_;  // at most `window`
};

// RUNNING_MEAN: what is usual is the mean over all steps of the generation but the last `window` (running_average). It
// detects a trainer that slows down step by step. WINDOW: it is the mean over the 8 * `window` steps before the last
// `window`. It follows a job whose steps change slowly. The detector must not be kOff.
std::unique_ptr<SlownessDetector> MakeDetector(const AnomalyPolicy& policy);

}  // namespace medley::worker
