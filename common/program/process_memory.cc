#include "common/program/process_memory.h"

#include <absl/strings/numbers.h>

#include <algorithm>
#include <utility>

#include "common/program/text.h"

namespace medley::program {
namespace {

constexpr double kMib = 1 << 20;
constexpr size_t kPartsInWords = 4;
// By how much the sure part of an estimate may be too high.
constexpr double kSure = 0.95;
// A row's key and step, and its part of the index when that is least full: worker/ps/row_table.h, row_index.h.
constexpr double kRowOverhead = 16 + 12;
constexpr double kEvaluatedTogether = 1024;  // samples: worker/pipeline/executor.h
constexpr int kGradientBuffers = 2;          // of a chain: worker/model/gradient_sums.h

// Resident memory of processes that train a model of a few parameters, and the part of it that is the program's file.
struct Base {
  double resident = 0;
  double file = 0;
};
constexpr Base kTrainer{41 * kMib, 29 * kMib};
constexpr Base kServer{41 * kMib, 29 * kMib};
constexpr Base kCoordinator{35 * kMib, 27 * kMib};
constexpr Base kProfiler{75 * kMib, 26 * kMib};  // its probes are several members in one process
constexpr double kTorch = 176 * kMib;            // more, in a trainer or profiler; most of it is file
constexpr double kTorchFile = 92 * kMib;
constexpr double kCuda = 500 * kMib;  // of a GPU: the context and the libraries' workspaces

// Bytes of rows of the training data that a process surely keeps: those that surely take no more while they are read.
double SureRows(const ProcessOptions& options) {
  constexpr double kReading = 4;  // times what is kept, at most: text, rows as doubles, rows
  const double bytes = options.rows * options.row_bytes;
  return options.most_row_bytes > 0 && bytes * kReading > options.most_row_bytes ? 0 : bytes;
}

class Sum {
 public:
  void Add(std::string name, double bytes, bool sure = true) {
    if (bytes <= 0) return;
    memory_.bytes += bytes;
    if (!sure) memory_.unsure += bytes;
    memory_.parts.push_back({std::move(name), bytes});
  }
  void AddRows(const ProcessOptions& options) {
    const double sure = SureRows(options), bytes = options.rows * options.row_bytes;
    const double most = options.most_row_bytes > 0 ? std::min(bytes, options.most_row_bytes) : bytes;
    Add("the rows of the training data", sure > 0 ? sure : most, sure > 0);
  }
  ProcessMemory Take() {
    std::stable_sort(memory_.parts.begin(), memory_.parts.end(),
                     [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; });
    return std::move(memory_);
  }

 private:
  ProcessMemory memory_;
};

double Attribute(const model::Layer& layer, const char* name) {
  const auto found = layer.attributes.find(name);
  double value = 0;
  return found != layer.attributes.end() && absl::SimpleAtod(found->second, &value) && value > 0 ? value : 0;
}

// For a row on a server: weights and optimizer state (RowFloats).
double RowBytes(const model::Layer& layer, const ProcessOptions& options) {
  return 4 * Attribute(layer, "dim") * (options.tensors.state_factor - 1) + kRowOverhead;
}

struct UsedRows {
  double rows = 0;
  bool sure = false;
};

UsedRows RowsOf(const model::Layer& layer, const ProcessOptions& options) {
  const double all = Attribute(layer, "rows");
  if (const double used = Attribute(layer, kUsedRows); used > 0) return {all > 0 ? std::min(all, used) : used, true};
  const double fields = std::max(1.0, Attribute(layer, "fields"));
  return {options.rows > 0 ? std::min(all, options.rows * fields) : all, false};
}

double LargestLayer(const model::Model& model, model::OperationRange range) {
  double bytes = 0;
  for (int i = range.first; i < range.end; ++i) {
    const model::Layer& layer = model.layers[static_cast<size_t>(i)];
    if (!layer.sparse) bytes = std::max(bytes, layer.weight_bytes);
  }
  return bytes;
}

model::OperationRange All(const model::Model& model) { return {0, static_cast<int>(model.layers.size())}; }

model::Model WithoutTables(model::Model model) {
  for (model::Layer& layer : model.layers) {
    if (layer.sparse) layer.weight_bytes = 0;
  }
  return model;
}

std::vector<std::string> NamesOf(const model::Model& model) {
  std::vector<std::string> names;
  for (const model::Layer& layer : model.layers) names.push_back(layer.name);
  return names;
}

constexpr char kBatches[] = "batches";

bool IsOfActivations(const Holder& holder) {
  return holder.name.find("parameters") == std::string::npos && holder.name != kBatches;
}

class Members {
 public:
  Members(const Program& program, const model::Model& model, const ProcessOptions& options)
      : program_(program), model_(model), options_(options), names_(NamesOf(model)) {
    for (const Device& device : program.devices) servers_ += device.server ? 1 : 0;
  }

  ProcessMemory Trainer(int device, const DeviceMemory& counted, bool on_gpu) const {
    Sum sum;
    sum.Add("the program", kTrainer.resident + (options_.torch ? kTorch : 0));
    if (on_gpu && !options_.torch) sum.Add("LibTorch", kTorch, /*sure=*/false);
    sum.AddRows(options_);
    for (const Holder& holder : counted.holders) {
      const bool activations = IsOfActivations(holder);
      if (on_gpu && activations) continue;
      // A pool of class GPU whose image computes on CPUs has the parameters here.
      const bool sure = on_gpu ? holder.name == kBatches : !activations || !options_.torch;
      sum.Add(holder.name, holder.bytes, sure);
    }
    const double factor = options_.tensors.state_factor;
    double largest = 0, saved = 0, local = 0, width = 0;
    for (const Block& block : program_.blocks) {
      const std::vector<int>& devices = program_.layouts[static_cast<size_t>(block.layout)].devices;
      if (std::find(devices.begin(), devices.end(), device) == devices.end()) continue;
      largest = std::max(largest, LargestLayer(model_, block.operations));
      for (int i = block.operations.first; i < block.operations.end; ++i) {
        const model::Layer& layer = model_.layers[static_cast<size_t>(i)];
        width += layer.output_bytes;
        if (layer.sparse && servers_ == 0) local += layer.weight_bytes * (factor - 1);
        const bool saves = devices.front() == device && (!layer.sparse || servers_ == 0);
        if (saves) saved += layer.weight_bytes * (factor - 1);
      }
    }
    sum.Add("tables", local);
    const bool hosts = std::ranges::any_of(program_.devices, [&](const Device& one) { return one.host == device; });
    if (hosts) AddRowsOfShard(sum);
    sum.Add("a copy for checkpoints", saved, /*sure=*/false);
    // While the state of a parameter is exchanged, written or multiplied.
    sum.Add("a copy of the largest parameter", largest * (factor - 1), /*sure=*/false);
    if (!on_gpu) sum.Add("activations of an evaluation", width * kEvaluatedTogether, /*sure=*/false);
    return sum.Take();
  }

  ProcessMemory Gpu(int device, const DeviceMemory& counted, const model::Tables& tables) const {
    Sum sum;
    for (const Holder& holder : counted.holders) {
      sum.Add(holder.name, holder.bytes, !IsOfActivations(holder) || !options_.torch);
    }
    double rows = 0, whole = 0;
    for (const Block& block : program_.blocks) {
      const std::vector<int>& devices = program_.layouts[static_cast<size_t>(block.layout)].devices;
      if (std::find(devices.begin(), devices.end(), device) == devices.end()) continue;
      for (int i = block.operations.first; i < block.operations.end; ++i) {
        const model::Layer& layer = model_.layers[static_cast<size_t>(i)];
        if (layer.sparse) rows += std::min(layer.weight_bytes, layer.output_bytes * options_.tensors.samples);
        if (layer.sparse) whole += layer.weight_bytes * (options_.tensors.state_factor - 1);
      }
    }
    if (tables.place == model::TablePlace::kDevice) sum.Add("tables", whole);
    if (tables.place == model::TablePlace::kCache) {
      sum.Add("a cache of rows", std::min(whole, static_cast<double>(tables.cache_bytes)));
    }
    sum.Add("rows of a step with their gradients", 2 * rows, /*sure=*/false);
    sum.Add("CUDA", kCuda, /*sure=*/false);
    return sum.Take();
  }

  // Dense state that a server may have is counted as a trainer's.
  ProcessMemory Server() const {
    Sum sum;
    sum.Add("the program", kServer.resident);
    AddRowsOfShard(sum);
    return sum.Take();
  }

 private:
  void AddRowsOfShard(Sum& sum) const {
    double all = 0;
    bool sure = true;
    for (const model::Layer& layer : model_.layers) {
      if (!layer.sparse) continue;
      const UsedRows used = RowsOf(layer, options_);
      all += used.rows * RowBytes(layer, options_) / std::max(1, servers_);
      sure = sure && used.sure;
    }
    if (options_.row_budget > 0 && all > options_.row_budget) {
      sum.Add("rows in memory (spec.training.embeddings.memoryBudget)", options_.row_budget, sure);
      return;
    }
    for (size_t i = 0; i < model_.layers.size(); ++i) {
      const model::Layer& layer = model_.layers[i];
      if (!layer.sparse) continue;
      const UsedRows used = RowsOf(layer, options_);
      sum.Add("rows of " + names_[i], used.rows * RowBytes(layer, options_) / std::max(1, servers_), used.sure);
    }
  }

  const Program& program_;
  const model::Model& model_;
  const ProcessOptions& options_;
  const std::vector<std::string> names_;
  int servers_ = 0;
};

}  // namespace

std::vector<ProcessMemory> MemoryOfMembers(const Program& program, const model::Model& model,
                                           const ProcessOptions& options, const std::vector<bool>& on_gpu) {
  const std::vector<DeviceMemory> counted = CountMemory(program, WithoutTables(model), options.tensors);
  const Members members(program, model, options);
  std::vector<ProcessMemory> all;
  for (size_t d = 0; d < program.devices.size(); ++d) {
    if (program.devices[d].host >= 0) {
      all.push_back({});  // counted at its trainer
      continue;
    }
    all.push_back(program.devices[d].server
                      ? members.Server()
                      : members.Trainer(static_cast<int>(d), counted[d], d < on_gpu.size() && on_gpu[d]));
  }
  return all;
}

std::vector<ProcessMemory> MemoryOfGpus(const Program& program, const model::Model& model,
                                        const ProcessOptions& options, const std::vector<bool>& on_gpu,
                                        const std::vector<model::Tables>& tables) {
  const std::vector<DeviceMemory> counted = CountMemory(program, WithoutTables(model), options.tensors);
  const Members members(program, model, options);
  std::vector<ProcessMemory> all(program.devices.size());
  for (size_t d = 0; d < all.size(); ++d) {
    const bool computes = program.devices[d].host < 0 && !program.devices[d].server;
    if (computes && d < on_gpu.size() && on_gpu[d]) {
      all[d] = members.Gpu(static_cast<int>(d), counted[d], d < tables.size() ? tables[d] : model::Tables());
    }
  }
  return all;
}

ProcessMemory MemoryOfProfiler(const model::Model& model, const ProcessOptions& options) {
  Sum sum;
  sum.Add("the program", kProfiler.resident + (options.torch ? kTorch : 0));
  sum.AddRows(options);
  const model::Layer* most = nullptr;
  double bytes = 0;
  // Weights and optimizer state twice, because the last update can be undone; the gradient; outputs and gradients of
  // all samples.
  const auto parameters = [&](const model::Layer& layer) {
    return layer.sparse ? 0 : layer.weight_bytes * (2 * options.tensors.state_factor - 1);
  };
  const auto outputs = [&](const model::Layer& layer) {
    return (kGradientBuffers + 2) * layer.output_bytes * options.tensors.samples;
  };
  for (const model::Layer& layer : model.layers) {
    const double own = parameters(layer) + outputs(layer);
    if (own > bytes) {
      bytes = own;
      most = &layer;
    }
  }
  if (most != nullptr) {
    sum.Add("parameters, gradients and optimizer state of " + most->name, parameters(*most));
    sum.Add("outputs of " + most->name, outputs(*most), !options.torch);
  }
  return sum.Take();
}

ProcessMemory MemoryOfCoordinator(const model::Model& model, const ProcessOptions& options) {
  Sum sum;
  sum.Add("the program", kCoordinator.resident);
  sum.Add("the largest parameter with its optimizer state",
          LargestLayer(model, All(model)) * (options.tensors.state_factor - 1));
  return sum.Take();
}

double LeastMemory(const ProcessMemory& memory, bool torch) {
  const double file = kTrainer.file + (torch ? kTorchFile : 0);
  return std::max(0.0, (memory.bytes - memory.unsure) * kSure - file);
}

double LeastGpuMemory(const ProcessMemory& memory) { return std::max(0.0, (memory.bytes - memory.unsure) * kSure); }

double RoomForTensors(double limit, const ProcessOptions& options) {
  if (limit <= 0) return 0;
  const double fixed = kTrainer.resident + (options.torch ? kTorch : 0) + SureRows(options);
  const double file = kTrainer.file + (options.torch ? kTorchFile : 0);
  return std::max(1.0, (limit + file) / kSure - fixed);
}

double RoomForRows(double limit) {
  return limit <= 0 ? 0 : std::max(1.0, (limit + kServer.file) / kSure - kServer.resident);
}

double TableShare(const model::Model& model, const ProcessOptions& options) {
  double used = 0, all = 0;
  for (const model::Layer& layer : model.layers) {
    if (!layer.sparse) continue;
    const UsedRows rows = RowsOf(layer, options);
    if (!rows.sure) return 0;
    used += rows.rows * RowBytes(layer, options);
    all += layer.weight_bytes * options.tensors.state_factor;
  }
  return all > 0 ? used / all : 0;
}

void CapTables(double row_budget, double state_factor, model::Model& model) {
  double all = 0;
  for (const model::Layer& layer : model.layers) all += layer.sparse ? layer.weight_bytes * state_factor : 0;
  if (row_budget <= 0 || all <= row_budget) return;
  for (model::Layer& layer : model.layers) {
    if (layer.sparse) layer.weight_bytes *= row_budget / all;
  }
}

std::string InWords(const ProcessMemory& memory) {
  std::string words = SizeText(memory.bytes) + ":";
  double rest = memory.bytes;
  for (size_t i = 0; i < std::min(kPartsInWords, memory.parts.size()); ++i) {
    words += (i == 0 ? " " : ", ") + memory.parts[i].name + " (" + SizeText(memory.parts[i].bytes) + ")";
    rest -= memory.parts[i].bytes;
  }
  if (memory.parts.size() > kPartsInWords) words += ", others (" + SizeText(rest) + ")";
  return words;
}

}  // namespace medley::program
