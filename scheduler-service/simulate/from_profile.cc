#include "scheduler-service/simulate/from_profile.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>
#include <set>
#include <string_view>
#include <utility>

#include "common/base/status.h"
#include "common/model/allreduce.h"
#include "common/model/cluster.h"
#include "common/model/model.h"
#include "common/model/profile.h"
#include "scheduler-service/simulate/profile_links.h"
#include "scheduler-service/simulate/profile_quotas.h"
#include "scheduler-service/simulate/profile_seconds.h"

namespace medley::sched {
namespace {

// For forward and backward pass where it was not measured; a backward pass computes two products for one.
constexpr double kForwardPart = 1.0 / 3;

using program::Program;

const model::LayerProfile* Find(const model::Layer& layer, const std::string& pool) {
  for (const model::LayerProfile& profile : layer.profiles) {
    if (profile.resource_type == pool) return &profile;
  }
  return nullptr;
}

class Filler {
 public:
  Filler(const Program& program, const model::Profile& profile, int samples)
      : program_(program), profile_(profile), samples_(samples), parts_(QuotaParts(profile)), out_(NoTime(program)) {
    out_.least_step_seconds.assign(program.devices.size(), 0);
    for (const auto& replicas : out_.passes) out_.reduction_cpu_seconds.emplace_back(replicas.size(), 0);
    out_.reduction_bytes.assign(program.blocks.size(), 0);
    // Computation takes whole cores, so a message takes one from it.
    for (size_t d = 0; d < program.devices.size(); ++d) {
      const program::Device& device = program.devices[d];
      out_.cores[d] = std::max(1.0, CoresOf(device.pool));
      if (device.server) server_cores_ += ServerCores(device.pool);
      in_trainers_ = in_trainers_ || device.host >= 0;
    }
  }

  absl::StatusOr<Durations> Fill(const DeviceLinks* links) {
    if (links == nullptr) {
      known_ = FillPoolLinks(program_, profile_, out_);
    } else {
      MEDLEY_RETURN_IF_ERROR(FillDeviceLinks(program_, *links, out_));
      known_.assign(out_.links.size(), true);
    }
    FillMessageCpu(program_, profile_, out_);
    FillQuotas();
    for (size_t b = 0; b < program_.blocks.size(); ++b) {
      MEDLEY_RETURN_IF_ERROR(FillPasses(b));
      FillProcessors(b);
      FillReduction(b);
      FillRows(b);
    }
    FillShares();
    FillFlows();
    MEDLEY_RETURN_IF_ERROR(CheckDurations(program_, out_));
    return std::move(out_);
  }

 private:
  double Scale() const { return static_cast<double>(samples_) / profile_.profile_batch_size; }
  const program::Layout& LayoutOf(const program::Block& block) const {
    return program_.layouts[static_cast<size_t>(block.layout)];
  }
  const std::string& Pool(int device) const { return program_.devices[static_cast<size_t>(device)].pool; }
  const model::Layer& Layer(int operation) const { return profile_.model.layers[static_cast<size_t>(operation)]; }
  size_t LinkIndex(int from, int to) const {
    return static_cast<size_t>(out_.location[static_cast<size_t>(from)] * out_.locations +
                               out_.location[static_cast<size_t>(to)]);
  }

  absl::Status FillPasses(size_t b) {
    const program::Block& block = program_.blocks[b];
    const program::Layout& layout = LayoutOf(block);
    const double micros = program_.micro_batches;
    for (int r = 0; r < layout.replicas(); ++r) {
      const auto index = static_cast<size_t>(r);
      Durations::Passes& passes = out_.passes[b][index];
      for (int i = block.operations.first; i < block.operations.end; ++i) {
        const std::string& pool = Pool(layout.devices[index]);
        MEDLEY_ASSIGN_OR_RETURN(const double fixed, ComputeSeconds(profile_, parts_, i, pool, 0, samples_));
        MEDLEY_ASSIGN_OR_RETURN(const double whole, ComputeSeconds(profile_, parts_, i, pool, 1, samples_));
        const double update = std::min(fixed, UpdateSeconds(block, i, pool, whole));
        const double more = MicroBatchSeconds(i, pool, 0);
        const double divides = whole - fixed + (MicroBatchSeconds(i, pool, 1) - more);
        const Linear step{std::max(0.0, fixed - update + more) / micros, std::max(0.0, divides) / samples_};
        const double forward = ForwardPart(*Find(Layer(i), pool));
        passes.forward.fixed += forward * step.fixed;
        passes.forward.per_sample += forward * step.per_sample;
        passes.backward.fixed += (1 - forward) * step.fixed;
        passes.backward.per_sample += (1 - forward) * step.per_sample;
        if (!Served(block, i)) passes.update += update;
      }
    }
    return absl::OkStatus();
  }

  static double ForwardPart(const model::LayerProfile& times) {
    const double passes = 1 - times.update_part;
    return times.forward_part > 0 && passes > 0 ? std::min(1.0, times.forward_part / passes) : kForwardPart;
  }

  // Parameter servers hold the rows of the operation.
  bool Served(const program::Block& block, int operation) const {
    return server_cores_ > 0 && std::ranges::find(block.tables, operation) != block.tables.end();
  }

  // The part of `whole` that is spent once a step, after the passes. Blocks without dense parameters have no Update
  // instruction, so theirs remains a part of the passes, except where servers do it.
  double UpdateSeconds(const program::Block& block, int operation, const std::string& pool, double whole) const {
    if (!block.dense && !Served(block, operation)) return 0;
    return Find(Layer(operation), pool)->update_part * whole;
  }

  // What a replica's share of a step takes more, or less, because the program divides it into another number of
  // micro-batches than the profiler did.
  double MicroBatchSeconds(int operation, const std::string& pool, double share) const {
    if (profile_.micro_batches < 2) return 0;
    const double each = MicroBatchesCost(profile_, operation, pool, share) / (profile_.micro_batches - 1);
    return each * Part(pool) * Scale() * (program_.micro_batches - profile_.micro_batches);
  }

  const model::UnitCpus* Unit(const std::string& pool) const {
    const auto found = std::ranges::find(profile_.units, pool, &model::UnitCpus::resource_type);
    return found == profile_.units.end() ? nullptr : &*found;
  }
  // 0: unknown.
  double CoresOf(const std::string& pool) const {
    const model::UnitCpus* const unit = Unit(pool);
    return unit == nullptr ? 0 : unit->cores;
  }
  // Cores of a unit that serves: one where nothing is known, as the processor time of servers is that of one core.
  double ServerCores(const std::string& pool) const { return CoresOf(pool) > 0 ? CoresOf(pool) : 1; }
  double Period(const std::string& pool) const {
    const model::UnitCpus* const unit = Unit(pool);
    return unit != nullptr && unit->period_seconds > 0 ? unit->period_seconds : kQuotaPeriodSeconds;
  }

  double Part(const std::string& pool) const {
    const auto found = parts_.find(pool);
    return found == parts_.end() ? 1 : found->second;
  }

  void FillQuotas() {
    constexpr double kUnlimited = 0.98;  // what a unit without a quota measures, too
    for (const program::Device& device : program_.devices) {
      const double part = Part(device.pool);
      out_.quotas.push_back(part < kUnlimited && !device.server
                                ? Durations::Quota{Period(device.pool), part * Period(device.pool), 0}
                                : Durations::Quota{});
    }
  }

  // What each replica sends and receives to add the block's gradients, relative to one of the two that the profiler
  // measures.
  std::vector<double> TrafficOfReplicas(const program::Block& block) const {
    std::vector<double> parts(static_cast<size_t>(LayoutOf(block).replicas()), 1);
    const bool costs = std::ranges::any_of(std::views::iota(block.operations.first, block.operations.end), [&](int i) {
      return std::ranges::any_of(Layer(i).profiles, [](const auto& times) { return times.sync_processor_seconds > 0; });
    });
    if (block.group < 0 || !costs) return parts;
    std::ranges::fill(parts, 0);
    const program::Group& group = program_.groups[static_cast<size_t>(block.group)];
    constexpr double kMeasured = 2;  // bytes that one of two replicas sends and receives for each byte
    for (const model::Traffic& traffic : model::TrafficOf(group.levels, 1, group.root)) {
      parts[static_cast<size_t>(traffic.from)] += traffic.bytes / kMeasured;
      parts[static_cast<size_t>(traffic.to)] += traffic.bytes / kMeasured;
    }
    return parts;
  }

  // What the block takes of the processors: its synchronisation, and all of it in the long run.
  void FillProcessors(size_t b) {
    const program::Block& block = program_.blocks[b];
    const program::Layout& layout = LayoutOf(block);
    const std::vector<double> traffic = TrafficOfReplicas(block);
    for (int r = 0; r < layout.replicas(); ++r) {
      const auto index = static_cast<size_t>(r);
      const double share = layout.cuts[index + 1] - layout.cuts[index];
      double own = 0, moving = 0, moving_now = 0;
      for (int i = block.operations.first; i < block.operations.end; ++i) {
        const std::string& pool = Pool(layout.devices[index]);
        const model::LayerProfile& times = *Find(Layer(i), pool);  // FillPasses has found it
        const bool table = std::find(block.tables.begin(), block.tables.end(), i) != block.tables.end();
        const bool served = Served(block, i);
        const double not_here = served ? UpdateSeconds(block, i, pool, OwnSeconds(times, 1) * Scale()) : 0;
        own += std::max(0.0,
                        OwnSeconds(times, share) * Scale() - not_here + MicroBatchSeconds(i, pool, share) / Part(pool));
        if (!served && (table || block.group < 0)) continue;
        const double seconds =
            served ? RowsProcessorSeconds(times, layout) : times.sync_processor_seconds * traffic[index];
        moving += seconds;
        if (served) moving += ShardSeconds(times, layout) / ServerCores(pool);
        if (!served) moving_now += seconds * Part(pool);
      }
      out_.least_step_seconds[static_cast<size_t>(layout.devices[index])] += own + moving;
      out_.reduction_cpu_seconds[b][index] = moving_now;
    }
  }

  // What a replica takes in a step to pull and push its rows of a table.
  double RowsProcessorSeconds(const model::LayerProfile& times, const program::Layout& layout) const {
    return Shared(times.sync_processor_seconds, times.comm_parallel, layout.replicas()) * Scale();
  }

  // Processor time of a trainer for the shard that it has: what servers would take for its part of the batch.
  double ShardSeconds(const model::LayerProfile& times, const program::Layout& layout) const {
    return in_trainers_ ? times.server_seconds * Scale() / layout.replicas() : 0;
  }

  bool LinksKnown(const program::Layout& layout) const {
    // One device for each pool is enough.
    std::map<int, int> pools;
    for (const int device : layout.devices) pools.try_emplace(out_.location[static_cast<size_t>(device)], device);
    for (const auto& [a, from] : pools) {
      for (const auto& [b, to] : pools) {
        if ((a != b || pools.size() == 1) && !known_[LinkIndex(from, to)]) return false;
      }
    }
    return true;
  }

  void FillReduction(size_t b) {
    const program::Block& block = program_.blocks[b];
    const int group = block.group >= 0 ? block.group : block.average;
    if (group < 0) return;
    const program::Layout& layout = LayoutOf(block);
    double bytes = 0;
    for (int i = block.operations.first; i < block.operations.end; ++i) {
      if (!Layer(i).sparse) bytes += Layer(i).weight_bytes;
    }
    double seconds = 0;
    if (LinksKnown(layout)) {
      seconds = ReductionSeconds(program_, program_.groups[static_cast<size_t>(group)], out_, bytes);
      out_.reduction_bytes[b] = bytes;
    } else {
      for (const int device : layout.devices) {
        double own = 0;
        for (int i = block.operations.first; i < block.operations.end; ++i) {
          const model::LayerProfile* times = Find(Layer(i), Pool(device));
          if (times == nullptr || Layer(i).sparse) continue;
          own += Shared(times->sync_seconds, times->comm_parallel, layout.replicas());
        }
        seconds = std::max(seconds, own);
      }
    }
    seconds = std::max(seconds, std::ranges::max(out_.reduction_cpu_seconds[b]));
    out_.reductions[b] = seconds;
    out_.averages[b] = seconds * std::max(profile_.state_factor - 1, 1.0);  // parameters and optimizer state
  }

  // The gradient of a parameter that several stages have, over the links between them.
  void FillShares() {
    for (const program::Shared& shared : program_.shared) {
      double& seconds = out_.shares.emplace_back(0);
      if (shared.group < 0) continue;
      const program::Group& group = program_.groups[static_cast<size_t>(shared.group)];
      if (!LinksKnown(program_.layouts[static_cast<size_t>(group.layout)])) continue;
      seconds = ReductionSeconds(program_, group, out_, static_cast<double>(shared.floats) * sizeof(float));
    }
  }

  // Half of a table's synchronisation is its pull, half its push; the servers divide their own work.
  void FillRows(size_t b) {
    const program::Block& block = program_.blocks[b];
    const program::Layout& layout = LayoutOf(block);
    if (server_cores_ <= 0) return;
    for (const int table : block.tables) {
      Durations::Rows rows;
      for (const int device : layout.devices) {
        const model::LayerProfile* times = Find(Layer(table), Pool(device));
        if (times == nullptr) continue;
        const double seconds = Shared(times->sync_seconds, times->comm_parallel, layout.replicas()) * Scale() / 2;
        rows.pull = std::max(rows.pull, seconds);
        rows.push = rows.pull;
        const double processor = RowsProcessorSeconds(*times, layout) * Part(Pool(device));
        rows.processor = std::max(rows.processor, (processor + ShardSeconds(*times, layout)) / 2);
        rows.update = std::max(rows.update, times->server_seconds * Scale() / server_cores_);
      }
      out_.rows[table] = rows;
    }
  }

  // Without a link, transferSeconds is the time of the value and its gradient; each replica sends its part of it.
  void FillFlows() {
    out_.flow_bytes_per_second.assign(program_.flows.size(), 0);
    for (size_t f = 0; f < program_.flows.size(); ++f) {
      const program::Flow& flow = program_.flows[f];
      const program::Value& value = program_.values[static_cast<size_t>(flow.value)];
      const int from = program_.layouts[static_cast<size_t>(flow.from_layout)].devices.front();
      const int to = program_.layouts[static_cast<size_t>(flow.to_layout)].devices.front();
      if (known_[LinkIndex(from, to)]) continue;
      const program::Layout& producer = LayoutOf(program_.blocks[static_cast<size_t>(value.block)]);
      const model::LayerProfile* times = Find(Layer(value.operation), Pool(producer.devices.front()));
      if (times == nullptr) continue;
      const double seconds = Shared(times->transfer_seconds, times->comm_parallel, producer.replicas());
      if (seconds <= 0) continue;
      out_.flow_bytes_per_second[f] = 2.0 * static_cast<double>(value.bytes_per_sample) * profile_.profile_batch_size /
                                      (producer.replicas() * seconds);
    }
  }

  const Program& program_;
  const model::Profile& profile_;
  const int samples_;
  double server_cores_ = 0;   // of all servers together
  bool in_trainers_ = false;  // the servers are parts of trainers
  const std::map<std::string, double> parts_;
  Durations out_;
  std::vector<bool> known_;  // by link
};

}  // namespace

absl::StatusOr<double> ComputeSeconds(const model::Profile& profile, const std::map<std::string, double>& parts,
                                      int operation, const std::string& pool, double share, int samples) {
  const model::Layer& layer = profile.model.layers[static_cast<size_t>(operation)];
  const model::LayerProfile* times = Find(layer, pool);
  if (times == nullptr) {
    return base::InvalidArgument("operation '{}' has no profile for pool '{}'", layer.name, pool);
  }
  const auto part = parts.find(pool);
  return OwnSeconds(*times, share) * (part == parts.end() ? 1 : part->second) * samples / profile.profile_batch_size;
}

double MicroBatchesCost(const model::Profile& profile, int operation, const std::string& pool, double share) {
  const model::LayerProfile* times = Find(profile.model.layers[static_cast<size_t>(operation)], pool);
  if (times == nullptr || times->undivided_seconds <= 0 || profile.micro_batches <= 1) return 0;
  const double cost = times->compute_seconds - times->undivided_seconds;
  if (times->undivided_parallel <= 0) return cost;
  // What a smaller share saves of the divided batch and of the undivided one.
  return cost +
         (times->undivided_parallel * times->undivided_seconds - times->compute_parallel * times->compute_seconds) *
             (1 - share);
}

absl::StatusOr<ClusterLinks> ClusterLinks::Make(const model::Cluster& cluster) {
  ClusterLinks out;
  MEDLEY_ASSIGN_OR_RETURN(out.table, model::LinkTable::Make(cluster));
  for (const model::Device& device : cluster.devices) {
    out.index.emplace(device.id, static_cast<int>(out.index.size()));
  }
  return out;
}

namespace {

absl::StatusOr<Durations> Fill(const Program& program, const model::Profile& profile, int samples,
                               const DeviceLinks* links) {
  if (profile.profile_batch_size < 1) return base::InvalidArgument("profileBatchSize: must be positive");
  if (samples < 1) return base::InvalidArgument("simulating: {} samples a step", samples);
  for (const program::Block& block : program.blocks) {
    if (block.operations.end > static_cast<int>(profile.model.layers.size())) {
      return base::InvalidArgument("the profile has {} layers, the plan more", profile.model.layers.size());
    }
  }
  std::set<std::string_view> pools;
  for (const program::Device& device : program.devices) pools.insert(device.pool);
  if (pools.size() > kMaxLocations) {
    return base::InvalidArgument("simulating: the plan has {} pools; at most {} are possible", pools.size(),
                                 kMaxLocations);
  }
  return Filler(program, profile, samples).Fill(links);
}

}  // namespace

absl::StatusOr<Durations> DurationsFromProfile(const Program& program, const model::Profile& profile, int samples) {
  return Fill(program, profile, samples, nullptr);
}

absl::StatusOr<Durations> DurationsFromProfile(const Program& program, const model::Profile& profile, int samples,
                                               const DeviceLinks& links) {
  return Fill(program, profile, samples, &links);
}

}  // namespace medley::sched
