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
// each of M micro-batches and direction. m is that of the parameters that the stage computes with between two messages
// (common/model/message_cost.h). Of c, the processor time s of summing gradients (syncProcessorSeconds) counts
// as 2 s (k - 1) / k: one unit does not sum.
//
// A pipeline of S stages whose steps are synchronous fills and drains: it does M + S - 1 micro-batches' work in a step
// of M. So in a plan of S stages all terms but y are longer by the factor (M + S - 1) / M (ForStages). It is 1 where M
// is not given, and for asynchronous schedules.
//
// Where the request says how fast the link between the types of two neighbours is, their boundary costs what that pair
// of types needs instead of x_e: both stages carry the activations and gradients (DT), and wait for them (CT;
// common/program/pipeline_waits.h). So the terms of a stage in a plan depend on the types of its neighbours (TermsIn).
// A stage carries the larger of its two boundaries, both directions of it: cards send and receive at once, so both
// boundaries of a stage take no longer.
//
// Layers with server_seconds > 0 have their rows in shards. On parameter servers they are no part of a stage, but a
// ServerLoad. In trainers (RowsPlace::kTrainers) the servers' processor time, over the cores of a unit, is a part of c
// that divides by k, since each unit has one of k shards. A stage then holds all rows of its tables on each unit: the
// job goes on with the units that are left, down to one.
//
// On the GPU of the only trainer (RowsPlace::kDevice) tables are whole or a cache of their rows, as its memory allows
// beside the stage's other state (TablesIn). Then c is what a profiler measured so, with what the rows cost that a
// cache lacks; nothing is pulled, and a second unit would make the stage no faster.
//
// The y of layers whose gradients are summed has, each, what an allreduce takes whatever its size (from allreduces of
// the request); a stage sums once, so it pays that once. Immutable and thread-safe after Compile; copies share their
// data.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <span>
#include <vector>

#include "common/model/message_cost.h"
#include "common/model/planning.h"
#include "common/model/resource.h"
#include "common/model/table_place.h"
#include "scheduler-service/cost/terms.h"

namespace medley::sched {

class Problem {
 public:
  // RowsPlace::kAny counts as kServers. Errors: those of model::Validate; InvalidArgument naming a resource without a
  // price.
  static absl::StatusOr<Problem> Compile(model::PlanRequest request);

  // This problem as plans of `stages` stages see it. Functions that take a whole plan count its stages themselves.
  Problem ForStages(int stages) const;
  // True if the terms depend on the number of stages: they fill and drain, or wait for one another, for longer.
  bool fills() const { return data_->micro_batches > 0 || (request().planner.asynchronous() && has_hops()); }

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
  // What a stage takes whose neighbours are not known: the copy to the next one is x_e.
  StageTerms Terms(int first, int last, int t) const;
  // What a stage of a plan takes. The units of the stages do not matter.
  PlacedTerms TermsIn(std::span<const StageChoice> stages, size_t i) const;
  // The least that the stage takes whatever its neighbours are. That of Terms, if nothing is known of links.
  StageTerms LeastTerms(int first, int last, int t) const;
  // LeastTerms with the copy over `hop` from or to the stage before (`first` is not 0), or after (`last` is not the
  // model's). The terms do not decrease with the latency and the seconds of a byte, nor where a hop becomes known
  // before a stage.
  StageTerms TermsBefore(StageTerms least, int first, const Hop& hop) const;
  StageTerms TermsAfter(StageTerms least, int last, int t, const Hop& hop) const;
  // True if the request says something of the links between its types.
  bool has_hops() const { return !data_->hops.empty(); }
  Hop HopBetween(int t, int other) const {
    return has_hops() ? data_->hops[static_cast<size_t>(t * types() + other)] : Hop{};
  }
  // The layer's computation alone, which every stage with that layer does: no communication and no messages.
  StageTerms ComputeTerms(int layer, int t) const;
  // The same with the layer's synchronisation: every stage has at least the sums of the parallel parts of its layers,
  // and the serial parts of each.
  StageTerms LayerTerms(int layer, int t) const;
  // Nothing where rows are in trainers.
  ServerLoad Servers(int first, int last, int t) const;
  bool rows_in_trainers() const { return request().rows == model::RowsPlace::kTrainers; }
  bool rows_on_device() const { return request().rows == model::RowsPlace::kDevice; }
  // Where the stage has its tables: kUnspecified where it has none, or where nothing was measured with them on a GPU.
  // kHost, with RowsPlace::kDevice: they fit on no unit, not even a cache.
  model::Tables TablesIn(int first, int last, int t) const;
  // True if some layer of the stage has its rows in shards.
  bool PullsRows(int first, int last, int t) const;
  // Bytes of weights, gradients and optimizer state that every unit of the stage holds, without tables on a GPU.
  double LocalBytes(int first, int last, int t) const;

  // Samples per second of a stage; infinite for a stage without work.
  double Throughput(const StageTerms& terms, int given) const;
  double Throughput(const PlacedTerms& terms, int units) const;
  // The smallest number of units in [min_units, most] with Throughput >= x; 0 if no number is enough.
  int MinUnits(const StageTerms& terms, double x, int most) const;
  int MinUnits(const PlacedTerms& terms, double x, int most) const;
  // A lower bound of (units at throughput x) / x that does not decrease as x grows; infinite if no number of units
  // reaches x.
  double UnitRateBound(const PlacedTerms& terms, double x) const;
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
    double group_seconds = 0;                                // of an allreduce, whatever its size
    double end_messages = 0;           // that a unit sends and receives at one end of a stage inside the model
    model::MessageCost message;        // processor seconds of each
    std::vector<double> end_parallel;  // those of the bytes, by layer before the end; they divide by units
    std::vector<double> dense_weight;  // bytes
    std::vector<int> missing, served;  // layers without a profile; with server_seconds > 0
    std::vector<int> tables;           // indices of layers with tables, where they were measured on a GPU
    std::vector<const model::TablesOnDevice*> measured;  // of these
    std::vector<int> summed;                             // layers whose y has group_seconds
  };
  struct Data {
    model::PlanRequest request;
    int layers = 0;
    int server_type = -1;
    int micro_batches = 0;       // 0: filling and draining do not count
    std::vector<Prefix> prefix;  // by type
    std::vector<Hop> hops;       // [type * types + other], symmetric; empty: nothing is known
  };
  explicit Problem(model::PlanRequest request);
  static void Fill(const model::PlanRequest& request, int t, Prefix& prefix);
  StageTerms WithoutCopies(int first, int last, int t) const;
  // What tables on a GPU add for the rows that a cache lacks.
  double MissSeconds(int first, int last, int t, const model::Tables& tables) const;
  StageTerms WithCopy(StageTerms terms, int layer_before, const Hop& hop) const;
  const Prefix& prefix(int t) const { return data_->prefix[static_cast<size_t>(t)]; }

  std::shared_ptr<const Data> data_;
  double fill_ = 1;   // (M + S - 1) / M
  double waits_ = 0;  // for copies over a boundary, as a part of the micro-batches of a step
};

// Groups a schedule (the type of each layer) into stages, one for each maximal run of layers with the same type, units
// 0. A plan may cut such runs.
std::vector<StageChoice> StagesOf(const std::vector<int>& schedule);

inline constexpr double kTolerance = 1e-9;  // relative, for every constraint on a real number

// Costs that differ by less than this are equal. Where work divides perfectly, ten times the units cost the same except
// for rounding, and planners must return the smaller, slower plan.
inline constexpr double kSameCost = 1e-10;  // relative

}  // namespace medley::sched
