#include "cli/run/local_nodes.h"

#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "common/base/quantity.h"
#include "common/base/status.h"
#include "kube/json_access.h"
#include "localcluster/node/gpu_pool.h"

namespace medley::cli {
namespace {

constexpr char kSimulate[] = "run.medley.dev/simulate";
constexpr char kDeviceVariable[] = "MEDLEY_DEVICE";  // worker/app/README.md
constexpr char kSimulatedLabel[] = "run.medley.dev/simulated";
// For simulated nodes: coordinators and profilers need resources in addition to the units of the pools.
constexpr double kSpareCpu = 8;
constexpr double kSpareMemory = 16.0 * (1 << 30);
// What a coordinator requests (operator/builders/coordinator_resources.h). Units may have the whole machine besides: a
// coordinator waits for messages most of the time.
constexpr double kCoordinatorCpu = 0.1;
constexpr double kCoordinatorMemory = 128.0 * (1 << 20);

using Labels = std::map<std::string, std::string>;
using Amounts = std::map<std::string, double>;

Labels SelectorOf(const kube::Object& pool) {
  Labels labels;
  const kube::Json& selector = pool.At("/spec/nodeSelector");
  if (!selector.is_object()) return labels;
  for (const auto& [key, value] : selector.items()) {
    if (value.is_string()) labels[key] = value.get<std::string>();
  }
  return labels;
}

Amounts UnitOf(const kube::Object& pool) {
  Amounts amounts;
  const kube::Json& unit = pool.At("/spec/unit/resources");
  if (!unit.is_object()) return amounts;
  for (const auto& [name, quantity] : unit.items()) {
    const std::string text = quantity.is_string() ? quantity.get<std::string>() : quantity.dump();
    amounts[name] = base::ParseQuantity(text).value_or(0);
  }
  return amounts;
}

std::map<std::string, std::string> ToQuantities(const Amounts& amounts) {
  std::map<std::string, std::string> quantities;
  for (const auto& [name, value] : amounts) quantities[name] = base::FormatDecimal(value, 3);
  return quantities;
}

absl::StatusOr<bool> IsSimulated(const kube::Object& pool) {
  const std::string value = pool.annotation(kSimulate);
  if (value != "" && value != "true" && value != "false") {
    return base::InvalidArgument("ResourcePool {}: the annotation {} must be \"true\" or \"false\", is \"{}\"",
                                 pool.key().name, kSimulate, value);
  }
  return value == "true";
}

// Whether the pool stands for machines with GPUs.
bool IsGpuPool(const kube::Object& pool, const Amounts& unit) {
  if (pool.String("/spec/class") == "GPU") return true;
  for (const auto& [name, amount] : unit) {
    if (name.ends_with("/gpu") && amount > 0) return true;
  }
  return false;
}

class Builder {
 public:
  Builder(const localcluster::Machine& machine, bool workers_use_gpus, int jobs)
      : machine_(machine), workers_use_gpus_(workers_use_gpus) {
    real_.besides = ToQuantities({{"cpu", jobs * kCoordinatorCpu}, {"memory", jobs * kCoordinatorMemory}});
    real_.name = "local";
    Amounts amounts = {{"cpu", static_cast<double>(machine.cpus)},
                       {"memory", static_cast<double>(machine.memory_bytes)}};
    if (workers_use_gpus && !machine.gpus.empty()) {
      amounts[localcluster::kGpuResourceName] = static_cast<double>(machine.gpus.size());
      real_.has_gpus = true;
    }
    real_.allocatable = ToQuantities(amounts);
  }

  absl::Status Add(const kube::Object& pool) {
    MEDLEY_ASSIGN_OR_RETURN(const bool simulated, IsSimulated(pool));
    if (simulated) {
      AddSimulated(pool);
      return absl::OkStatus();
    }
    const Amounts unit = UnitOf(pool);
    const Labels labels = SelectorOf(pool);
    const std::string problem = Problem(pool, unit, labels);
    if (problem.empty()) {
      real_.labels.insert(labels.begin(), labels.end());
      NoteLimit(pool, unit);
      ++usable_;
      return absl::OkStatus();
    }
    const std::string sentence = fmt::format(
        "ResourcePool {}: no unit can run on this machine: {}. To simulate the pool on this machine's CPUs, "
        "set its annotation {}: \"true\"",
        pool.key().name, problem, kSimulate);
    if (labels.empty() && Lacking(unit).empty()) return base::InvalidArgument("{}", sentence);
    remarks_.push_back(sentence);
    return absl::OkStatus();
  }

  absl::StatusOr<LocalNodes> Finish() {
    if (usable_ == 0) return base::InvalidArgument("{}", absl::StrJoin(remarks_, "\n"));
    LocalNodes local;
    local.nodes.push_back(real_);
    for (auto& [labels, node] : simulated_) {
      node.amounts["cpu"] += kSpareCpu;
      node.amounts["memory"] += kSpareMemory;
      localcluster::VirtualNode made{.name = node.name, .labels = labels, .allocatable = ToQuantities(node.amounts)};
      made.labels[kSimulatedLabel] = "true";
      local.nodes.push_back(std::move(made));
    }
    // Without a pool of its own it would only be one more node for coordinators.
    if (simulated_names_.size() == static_cast<size_t>(usable_)) local.nodes.erase(local.nodes.begin());
    local.remarks = remarks_;
    local.limits = limits_;
    if (!simulated_names_.empty()) {
      local.remarks.push_back(
          fmt::format("simulated, because the file asks for it ({}): {}. Their units are limited parts of this "
                      "machine, which has {}",
                      kSimulate, absl::StrJoin(simulated_names_, ", "), machine_.ToString()));
    }
    return local;
  }

 private:
  struct Simulated {
    std::string name;
    Amounts amounts;
  };

  void AddSimulated(const kube::Object& pool) {
    Simulated& node = simulated_[SelectorOf(pool)];
    if (node.name.empty()) node.name = "local-" + pool.key().name;
    const kube::Json& limit = pool.At("/spec/limit");
    const double units = limit.is_number() ? limit.get<double>() : 0;
    for (const auto& [name, amount] : UnitOf(pool)) node.amounts[name] += units * amount;
    simulated_names_.push_back(pool.key().name);
    ++usable_;
  }

  // Says before anything is measured that the pool's limit is larger than the machine.
  void NoteLimit(const kube::Object& pool, const Amounts& unit) {
    const kube::Json& limit = pool.At("/spec/limit");
    if (!limit.is_number()) return;
    for (const auto& [name, amount] : unit) {
      const double fit = amount > 0 ? std::floor(FreeOf(name) / amount * (1 + 1e-9)) : limit.get<double>();
      if (fit >= limit.get<double>()) continue;
      limits_.push_back(
          fmt::format("ResourcePool {}: its limit is {} units, and {} of {} {} each fit this machine, which has {}",
                      pool.key().name, limit.dump(), fit, base::FormatDecimal(amount, 3), name, machine_.ToString()));
      return;
    }
  }

  double FreeOf(const std::string& resource) const {
    if (resource == "cpu") return machine_.cpus;
    if (resource == "memory") return static_cast<double>(machine_.memory_bytes);
    return resource == localcluster::kGpuResourceName && real_.has_gpus ? static_cast<double>(machine_.gpus.size()) : 0;
  }
  // "2 cpu" for the first resource of which a unit needs more than there is; empty when it fits.
  std::string Lacking(const Amounts& unit) const {
    for (const auto& [name, amount] : unit) {
      if (amount > FreeOf(name)) return base::FormatDecimal(amount, 3) + " " + name;
    }
    return "";
  }

  // Why no unit of the pool can run on the machine; empty when one can.
  std::string Problem(const kube::Object& pool, const Amounts& unit, const Labels& labels) const {
    if (IsGpuPool(pool, unit)) {
      if (machine_.gpus.empty()) return fmt::format("it needs a GPU, and the machine has {}", machine_.ToString());
      if (!workers_use_gpus_) {
        return "it needs a GPU, and this medley-worker computes on CPUs only (`cmake --preset cuda` builds one for "
               "GPUs)";
      }
      if (!unit.contains(localcluster::kGpuResourceName)) {
        return fmt::format("its class is GPU, and its unit asks for no {}", localcluster::kGpuResourceName);
      }
    }
    if (const std::string lacking = Lacking(unit); !lacking.empty()) {
      return fmt::format("a unit needs {}, and the machine has {}", lacking, machine_.ToString());
    }
    for (const auto& [key, value] : labels) {
      const auto it = real_.labels.find(key);
      if (it != real_.labels.end() && it->second != value) {
        return fmt::format("its nodeSelector says {}={}, that of an earlier pool says {}={}, and this is one machine",
                           key, value, key, it->second);
      }
    }
    return "";
  }

  const localcluster::Machine& machine_;
  const bool workers_use_gpus_;
  localcluster::VirtualNode real_;
  std::map<Labels, Simulated> simulated_;
  std::vector<std::string> simulated_names_;
  std::vector<std::string> remarks_;
  std::vector<std::string> limits_;
  int usable_ = 0;
};

}  // namespace

bool AnyForGpus(const std::vector<kube::Object>& pools) {
  return std::ranges::any_of(pools, [](const kube::Object& pool) { return IsGpuPool(pool, UnitOf(pool)); });
}

void SimulateOnCpu(std::vector<kube::Object>& pools) {
  for (kube::Object& pool : pools) {
    if (!IsSimulated(pool).value_or(false)) continue;
    kube::Json& env = pool.mutable_json()["spec"]["unit"]["env"];
    if (!env.is_array()) env = kube::Json::array();
    const auto is_device = [](const kube::Json& entry) { return kube::GetString(entry, "name") == kDeviceVariable; };
    if (std::ranges::none_of(env, is_device)) env.push_back({{"name", kDeviceVariable}, {"value", "cpu"}});
  }
}

absl::StatusOr<LocalNodes> NodesFor(const std::vector<kube::Object>& pools, const localcluster::Machine& machine,
                                    bool workers_use_gpus, int jobs) {
  Builder builder(machine, workers_use_gpus, jobs);
  for (const kube::Object& pool : pools) MEDLEY_RETURN_IF_ERROR(builder.Add(pool));
  return builder.Finish();
}

}  // namespace medley::cli
