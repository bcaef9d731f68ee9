// A built-in model in blocks, one after the other in this process, each on the CPU (BlockModel) or on the tested device
// (LayerBlock): its steps, and what they give. For comparisons of both.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/aten/make_block.h"

namespace medley::worker::aten {

using Floats = std::vector<float>;

// The largest difference, relative to the largest of the expected numbers.
double Difference(std::span<const float> is, std::span<const float> expected);

class LayerChain {
 public:
  using Named = std::map<std::string, Floats>;  // by operation and parameter

  struct Setup {
    std::vector<int> cuts;        // where a block begins, but for the first
    std::vector<bool> on_device;  // by block
    Optimizer optimizer = *MakeOptimizer("sgd", 0.1);
    int kept_updates = 1;
    bool may_record = true;  // the device
  };

  static constexpr int kTableRows = 11;  // that a batch uses
  static constexpr uint64_t kSeed = 3;

  LayerChain(const Graph& graph, const Setup& setup);

  // One step in `micros` micro-batches; with `update` it is applied, and the rows learn too.
  absl::Status Step(int64_t step, const Batch& batch, int micros = 2, bool update = true);
  absl::StatusOr<Floats> Infer(const Batch& batch);

  double Loss() const { return blocks_.back()->LossSum(0); }
  const Named& row_gradients() const { return row_gradients_; }
  Named Rows() const;
  // Those of a table.
  void SetRowsOf(const std::string& operation, const Floats& rows);
  // All dense parameters.
  Named Part(DensePart part) const;
  std::vector<std::unique_ptr<BlockCompute>>& blocks() { return blocks_; }
  // Everything that another chain of the same model needs to train on after `step`.
  void CopyTo(LayerChain& other, int64_t step) const;

 private:
  std::string NameOf(const ParameterSpec& spec) const;
  Values InputsOf(const BlockCompute& block, const std::map<int, Floats>& values);
  absl::Status Passes(Pass pass, const BatchView& batch);

  const Graph graph_;
  const Setup setup_;
  std::vector<std::unique_ptr<BlockCompute>> blocks_;
  std::map<int, Floats> rows_;  // by operation
  Named row_gradients_;
  std::vector<std::span<const float>> inputs_;
};

// A test fails where two lists of the same names differ by more than `most`. Returns the largest difference.
double ExpectNear(const LayerChain::Named& is, const LayerChain::Named& expected, double most, const std::string& what);

// Samples that use kTableRows rows of each table.
Batch SomeSamples(const Graph& graph, uint64_t seed, int samples, bool weighted = false);

}  // namespace medley::worker::aten
