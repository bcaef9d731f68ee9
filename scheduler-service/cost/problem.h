// A planning request compiled for search: types are numbered, and prefix sums over the layers give the terms of every
// stage in O(1).
//
// docs/design/planning.md describes the cost model (after HeterPS, section 4). For a stage of layers s..e on type t
// with k units it defines
//   compute time        CT(k) = sum (1 - alpha) c + 2 M n m + (sum alpha c + 2 B_o b q) / k
//   communication time  DT(k) = sum (1 - beta) y + (1 - beta_e) x_e + (sum beta y + beta_e x_e) / k
//   execution time      ET(k) = max(CT(k), DT(k))
//   throughput(k) = B_o / ET(k)
// For each layer, c is the compute time, y the synchronisation time, alpha and beta the shares of computation and
// communication that divide by k. x_e is the transfer time of layer e to the next stage; it is 0 for the last layer of
// the model. B_o is the batch size of the profile. n is the number of the stage's ends inside the model (0 to 2), b the
// bytes of a sample that pass there; a message takes m seconds of the processor, and q of each byte; there is one for
// each of M micro-batches and direction. Of c, the processor time s of summing gradients (syncProcessorSeconds) counts
// as 2 s (k - 1) / k: one unit does not sum.
//
// A pipeline of S stages whose steps are synchronous fills and drains: it does M + S - 1 micro-batches' work in a step
// of M. So in a plan of S stages all terms but y are longer by the factor (M + S - 1) / M (ForStages). It is 1 where M
// is not given, and for asynchronous schedules. Immutable and thread-safe after Compile; copies share their data.
#pragma once

#include <absl/status/statusor.h>

#include <limits>
#include <memory>
#include <vector>

#include "common/model/planning.h"
#include "common/model/resource.h"

namespace medley::sched {

// The cost or time of something impossible.
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Seconds that a stage needs for one batch, with its part of filling and draining. The serial parts do not depend on
// the number of units; the parallel parts are divided by it.
struct StageTerms {
  double compute_serial = 0;
  double compute_parallel = 0;
  double comm_serial = 0;
  double comm_parallel = 0;
  double ComputeSeconds(int units) const { return compute_serial + compute_parallel / units; }
  double CommSeconds(int units) const { return comm_serial + comm_parallel / units; }
};

// A chosen stage: layers first..last (inclusive) on type `type` with `units` units.
struct StageChoice {
  int first = 0;
  int last = 0;
  int type = 0;
  int units = 0;
  bool operator==(const StageChoice&) const = default;
};

// The load of some layers on the parameter servers.
struct ServerLoad {
  double seconds = 0;  // sum of the layers' server_seconds for one batch, over the cores of a unit that serves
  double bytes = 0;    // stateFactor * sum of weight_bytes, over the layers with server_seconds > 0
  bool any = false;    // true if any layer has server_seconds > 0
  void Add(const ServerLoad& other) {
    seconds += other.seconds;
    bytes += other.bytes;
    any = any || other.any;
  }
};

class Problem {
 public:
  // Errors: those of model::Validate; InvalidArgument naming a resource without a price.
  static absl::StatusOr<Problem> Compile(model::PlanRequest request);

  // This problem as plans of `stages` stages see it. Functions that take a whole plan count its stages themselves.
  Problem ForStages(int stages) const;
  // True if more stages fill and drain for longer.
  bool fills() const { return data_->micro_batches > 0; }

  const model::PlanRequest& request() const { return data_->request; }
  int layers() const { return data_->layers; }
  int types() const { return static_cast<int>(request().resources.size()); }
  const model::Resource& type(int t) const { return request().resources[static_cast<size_t>(t)]; }
  double price(int t) const { return type(t).price_per_unit_hour; }
  int limit(int t) const { return type(t).limit; }
  int server_type() const { return data_->server_type; }  // -1: the request names no server type
  double server_price() const { return server_type() < 0 ? 0 : price(server_type()); }
  int min_units() const { return request().constraints.min_units; }

  // True if every layer has a profile on type `t` and the stage's state fits into the memory of one unit.
  bool Allowed(int first, int last, int t) const;
  bool Profiled(int layer, int t) const;
  StageTerms Terms(int first, int last, int t) const;
  // The layer's computation alone, which every stage with that layer does: no communication and no messages.
  StageTerms ComputeTerms(int layer, int t) const;
  ServerLoad Servers(int first, int last, int t) const;
  // Bytes of weights, gradients and optimizer state that every unit of the stage holds.
  double LocalBytes(int first, int last, int t) const;

  // Samples per second of a stage; infinite for a stage without work.
  double Throughput(const StageTerms& terms, int units) const;
  // The smallest number of units in [min_units, most] with Throughput >= x; 0 if no number is enough.
  int MinUnits(const StageTerms& terms, double x, int most) const;
  // A lower bound of (units at throughput x) / x that does not decrease as x grows; infinite if no number of units
  // reaches x.
  double UnitRateBound(const StageTerms& terms, double x) const;
  // Server units for a pipeline of throughput x. A quotient at most 1e-12 (relative) above a whole number is rounded
  // down to it.
  int ServerUnits(const ServerLoad& load, double x) const;

  double batch() const { return request().training.profile_batch_size; }
  double total_samples() const { return request().training.TotalSamples(); }
  // Samples per second that minThroughput and the deadline require, less the tolerance of 1e-9; 0 if neither is set.
  double RequiredThroughput() const;
  // USD for all samples at `hourly` USD/h and throughput x.
  double Cost(double hourly, double x) const { return total_samples() / x / 3600 * hourly; }

 private:
  // Prefix sums over the layers for one type; entry i is the sum over layers [0, i).
  struct Prefix {
    std::vector<double> compute_serial, compute_parallel, sync_serial, sync_parallel, server_seconds, server_weight,
        local_weight;
    std::vector<double> transfer_serial, transfer_parallel;  // per layer, not summed
    double end_serial = 0;             // processor seconds of the messages at one end of a stage inside the model
    std::vector<double> end_parallel;  // the same by layer before the end, the part that divides by units
    std::vector<int> missing, served;  // layers without a profile; with server_seconds > 0
  };
  struct Data {
    model::PlanRequest request;
    int layers = 0;
    int server_type = -1;
    int micro_batches = 0;       // 0: filling and draining do not count
    std::vector<Prefix> prefix;  // by type
  };
  explicit Problem(model::PlanRequest request);
  static void Fill(const model::PlanRequest& request, int t, Prefix& prefix);
  const Prefix& prefix(int t) const { return data_->prefix[static_cast<size_t>(t)]; }

  std::shared_ptr<const Data> data_;
  double fill_ = 1;  // (M + S - 1) / M
};

// Groups a schedule (the type of each layer) into stages, one for each maximal run of layers with the same type, units
// 0. A plan may cut such runs.
std::vector<StageChoice> StagesOf(const std::vector<int>& schedule);

inline constexpr double kTolerance = 1e-9;  // relative, for every constraint on a real number

// Costs that differ by less than this are equal. Where work divides perfectly, ten times the units cost the same except
// for rounding, and planners must return the smaller, slower plan.
inline constexpr double kSameCost = 1e-10;  // relative

}  // namespace medley::sched
