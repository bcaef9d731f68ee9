// A planning request compiled for search: numbered types, per-layer sums as prefix sums, every
// stage in O(1).
//
// The cost model is planning.md section 2 (after HeterPS, section 4): a stage of layers s..e on
// type t with k units has
//   CT(k) = sum (1-alpha) c + (sum alpha c) / k,    DT(k) = sum (1-beta) y + (1-beta_e) x_e + (...)
//   / k, ET(k) = max(CT, DT),    throughput(k) = B_o / ET(k),
// where x_e does not count for the last layer of the model. Immutable, thread-safe after Compile.
#pragma once

#include <absl/status/statusor.h>

#include <limits>
#include <memory>
#include <vector>

#include "common/model/planning.h"

namespace medley::sched {

// The cost or time of what is impossible.
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Seconds of a stage for one batch: what does not divide by units, and what does.
struct StageTerms {
  double compute_serial = 0;
  double compute_parallel = 0;
  double comm_serial = 0;
  double comm_parallel = 0;
  double ComputeSeconds(int units) const { return compute_serial + compute_parallel / units; }
  double CommSeconds(int units) const { return comm_serial + comm_parallel / units; }
};

// A stage that has been decided: layers first..last (inclusive) on type `type` with `units` units.
struct StageChoice {
  int first = 0;
  int last = 0;
  int type = 0;
  int units = 0;
  bool operator==(const StageChoice&) const = default;
};

// What the parameter servers of some layers must bear.
struct ServerLoad {
  double seconds = 0;  // sum v
  double bytes = 0;    // stateFactor * sum w over layers with v > 0
  bool any = false;    // some v > 0
  void Add(const ServerLoad& other) {
    seconds += other.seconds;
    bytes += other.bytes;
    any = any || other.any;
  }
};

class Problem {
 public:
  // Errors: what model::Validate says; also a resource without a price (names it).
  static absl::StatusOr<Problem> Compile(model::PlanRequest request);

  const model::PlanRequest& request() const { return request_; }
  int layers() const { return layers_; }
  int types() const { return static_cast<int>(request_.resources.size()); }
  const model::Resource& type(int t) const { return request_.resources[static_cast<size_t>(t)]; }
  double price(int t) const { return type(t).price_per_unit_hour; }
  int limit(int t) const { return type(t).limit; }
  int server_type() const { return server_type_; }  // -1: none named
  double server_price() const { return server_type_ < 0 ? 0 : price(server_type_); }
  int min_units() const { return request_.constraints.min_units; }

  // Every layer is profiled on the type and the stage's own state fits into a unit's memory.
  bool Allowed(int first, int last, int t) const;
  bool Profiled(int layer, int t) const;
  StageTerms Terms(int first, int last, int t) const;
  ServerLoad Servers(int first, int last, int t) const;
  // Bytes of weights, gradients and optimizer state that every unit of the stage holds.
  double LocalBytes(int first, int last, int t) const;

  // Samples per second of a stage; infinite when it has nothing to do.
  double Throughput(const StageTerms& terms, int units) const;
  // The smallest units in [min_units, most] with Throughput >= x; 0 when there is none.
  int MinUnits(const StageTerms& terms, double x, int most) const;
  // A lower bound of (units at throughput x) / x that does not fall as x grows; infinite when x is
  // out of reach.
  double UnitRateBound(const StageTerms& terms, double x) const;
  // Server units for a pipeline of throughput x. Quotients within 1e-12 above a whole number count
  // as that number.
  int ServerUnits(const ServerLoad& load, double x) const;

  double batch() const { return request_.training.profile_batch_size; }
  double total_samples() const { return request_.training.TotalSamples(); }
  // Samples per second that minThroughput and the deadline ask for, with the tolerance of 1e-9
  // taken off; 0: none.
  double RequiredThroughput() const;
  // USD for all samples at `hourly` USD/h and throughput x.
  double Cost(double hourly, double x) const { return total_samples() / x / 3600 * hourly; }

 private:
  // Prefix sums over layers of one type; entry i sums layers [0, i).
  struct Prefix {
    std::vector<double> compute_serial, compute_parallel, sync_serial, sync_parallel, server_seconds, server_weight,
        local_weight;
    std::vector<double> transfer_serial, transfer_parallel;  // per layer, no sums
    std::vector<int> missing, served;                        // layers without a profile; layers with v > 0
  };
  explicit Problem(model::PlanRequest request);
  void Fill(int t, Prefix& prefix) const;

  model::PlanRequest request_;
  int layers_ = 0;
  int server_type_ = -1;
  std::vector<Prefix> prefix_;  // by type
};

// Layer -> type as maximal runs, units 0.
std::vector<StageChoice> StagesOf(const std::vector<int>& schedule);

inline constexpr double kTolerance = 1e-9;  // relative, for every constraint on a real number

// Costs nearer than this are one cost: where work divides perfectly, ten times the units cost the
// same but for rounding, and the slower, smaller plan is the one to give.
inline constexpr double kSameCost = 1e-10;  // relative

}  // namespace medley::sched
