#include "tests/unit/worker/aten/layer_chain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/rng.h"
#include "common/model/operation_range.h"
#include "tests/unit/worker/zoo/random_batch.h"
#include "worker/aten/testing/tested_device.h"
#include "worker/device/unrecorded_device.h"

namespace medley::worker::aten {

double Difference(std::span<const float> is, std::span<const float> expected) {
  EXPECT_EQ(is.size(), expected.size());
  if (is.size() != expected.size()) return 1;
  double largest = 0, difference = 0;
  for (size_t i = 0; i < is.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    const double apart = std::abs(static_cast<double>(is[i]) - static_cast<double>(expected[i]));
    difference = std::isnan(apart) ? 1 : std::max(difference, apart);
  }
  return largest == 0 ? difference : difference / largest;
}

LayerChain::LayerChain(const Graph& graph, const Setup& setup) : graph_(graph), setup_(setup) {
  std::vector<int> ends = setup.cuts;
  ends.push_back(static_cast<int>(graph.operations.size()));
  for (size_t b = 0, first = 0; b < ends.size(); first = static_cast<size_t>(ends[b++])) {
    BlockSettings settings{.optimizer = setup.optimizer, .seed = kSeed, .kept_updates = setup.kept_updates};
    if (setup.on_device.at(b)) settings.device = *OpenTestedDevice();
    if (!setup.may_record) settings.device = std::make_shared<device::UnrecordedDevice>(settings.device);
    auto block = MakeBlock(graph, {static_cast<int>(first), ends[b]}, settings);
    EXPECT_TRUE(block.ok()) << base::ToString(block.status());
    blocks_.push_back(std::move(*block));
  }
  base::Rng rng(6);
  for (const auto& block : blocks_) {
    for (const ParameterSpec& table : block->Tables()) {
      Floats& rows = rows_[table.operation];
      rows.resize(static_cast<size_t>(kTableRows * table.columns));
      for (float& x : rows) x = static_cast<float>(rng.Uniform(-0.7, 0.7));
    }
    // Biases that are not 0, so that no unit is at the kink of its relu.
    const std::vector<DenseParameter> parameters = block->Parameters();
    for (size_t p = 0; p < parameters.size(); ++p) {
      if (parameters[p].spec.name != "bias") continue;
      Floats bias(static_cast<size_t>(parameters[p].spec.Size()));
      for (float& x : bias) x = static_cast<float>(rng.Uniform(-0.2, 0.3));
      EXPECT_TRUE(block->WriteValues(p, DensePart::kWeights, 0, bias).ok());
    }
  }
}

absl::Status LayerChain::Step(int64_t step, const Batch& batch, int micros, bool update) {
  for (const auto& block : blocks_) {
    block->BeginStep({.step = step, .version = step - 1, .micro_batches = micros, .global_samples = batch.samples});
    for (size_t t = 0; t < block->Tables().size(); ++t) {
      block->SetRows(0, static_cast<int>(t), rows_[block->Tables()[t].operation]);
    }
  }
  const int each = batch.samples / micros;
  for (int m = 0; m < micros; ++m) {
    MEDLEY_RETURN_IF_ERROR(Passes({.micro = m, .first_sample = m * each}, batch.View(m * each, each)));
  }
  for (const auto& block : blocks_) {
    for (size_t t = 0; t < block->Tables().size(); ++t) {
      const std::span<const float> found = block->RowGradients(0, static_cast<int>(t));
      row_gradients_[NameOf(block->Tables()[t])] = Floats(found.begin(), found.end());
      Floats& rows = rows_[block->Tables()[t].operation];
      for (size_t i = 0; update && i < rows.size(); ++i) rows[i] -= 0.1F * found[i];
    }
    if (update) MEDLEY_RETURN_IF_ERROR(block->ApplyUpdate(setup_.optimizer.AtStep(step)));
  }
  return absl::OkStatus();
}

absl::StatusOr<Floats> LayerChain::Infer(const Batch& batch) {
  std::map<int, Floats> values;
  Values last;
  for (const auto& block : blocks_) {
    for (size_t t = 0; t < block->Tables().size(); ++t) {
      block->SetRows(0, static_cast<int>(t), rows_[block->Tables()[t].operation]);
    }
    MEDLEY_ASSIGN_OR_RETURN(last, block->Infer(batch.View(0, batch.samples), InputsOf(*block, values)));
    for (size_t k = 0; k < block->Outputs().size(); ++k) {
      values[block->Outputs()[k].operation] = Floats(last[k].begin(), last[k].end());
    }
  }
  return Floats(last.front().begin(), last.front().end());
}

LayerChain::Named LayerChain::Rows() const {
  Named named;
  for (const auto& [operation, rows] : rows_) named[std::to_string(operation)] = rows;
  return named;
}

void LayerChain::SetRowsOf(const std::string& operation, const Floats& rows) {
  for (auto& [index, values] : rows_) {
    if (graph_.operations[static_cast<size_t>(index)].name == operation) values = rows;
  }
}

LayerChain::Named LayerChain::Part(DensePart part) const {
  Named named;
  for (const auto& block : blocks_) {
    const std::vector<DenseParameter> parameters = block->Parameters();
    for (size_t p = 0; p < parameters.size(); ++p) {
      const auto size = static_cast<size_t>(parameters[p].spec.Size());
      Floats& values = named[NameOf(parameters[p].spec)];
      values.resize(size * (part == DensePart::kState ? StateFloats(setup_.optimizer.kind) : 1));
      EXPECT_TRUE(block->ReadValues(p, part, 0, values).ok());
    }
  }
  return named;
}

void LayerChain::CopyTo(LayerChain& other, int64_t step) const {
  other.rows_ = rows_;
  for (const DensePart part : {DensePart::kWeights, DensePart::kState}) {
    const Named values = Part(part);
    for (const auto& block : other.blocks_) {
      const std::vector<DenseParameter> parameters = block->Parameters();
      for (size_t p = 0; p < parameters.size(); ++p) {
        EXPECT_TRUE(block->WriteValues(p, part, 0, values.at(NameOf(parameters[p].spec))).ok());
      }
    }
  }
  for (const auto& block : other.blocks_) block->SetAppliedStep(step);
}

std::string LayerChain::NameOf(const ParameterSpec& spec) const {
  return graph_.operations[static_cast<size_t>(spec.operation)].name + "." + spec.name;
}

Values LayerChain::InputsOf(const BlockCompute& block, const std::map<int, Floats>& values) {
  inputs_.clear();
  for (const BlockValue& input : block.Inputs()) inputs_.push_back(values.at(input.operation));
  return inputs_;
}

absl::Status LayerChain::Passes(Pass pass, const BatchView& batch) {
  std::map<int, Floats> values, gradients;
  for (const auto& block : blocks_) {
    MEDLEY_ASSIGN_OR_RETURN(const Values given, block->Forward(pass, batch, InputsOf(*block, values)));
    for (size_t k = 0; k < given.size(); ++k) {
      values[block->Outputs()[k].operation] = Floats(given[k].begin(), given[k].end());
    }
  }
  // Blocks keep references to their inputs until the backward pass: `values` lives as long.
  for (size_t b = blocks_.size(); b-- > 0;) {
    BlockCompute& block = *blocks_[b];
    inputs_.clear();
    for (const BlockValue& output : block.Outputs()) inputs_.push_back(gradients.at(output.operation));
    MEDLEY_ASSIGN_OR_RETURN(const Values given, block.Backward(pass, inputs_));
    for (size_t k = 0; k < given.size(); ++k) {
      Floats& sum = gradients[block.Inputs()[k].operation];
      sum.resize(given[k].size());
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += given[k][i];
    }
  }
  return absl::OkStatus();
}

double ExpectNear(const LayerChain::Named& is, const LayerChain::Named& expected, double most,
                  const std::string& what) {
  double worst = 0;
  EXPECT_EQ(is.size(), expected.size()) << what;
  for (const auto& [name, values] : expected) {
    const auto found = is.find(name);
    if (found == is.end()) {
      ADD_FAILURE() << what << " lacks " << name;
      continue;
    }
    const double difference = Difference(found->second, values);
    EXPECT_LE(difference, most) << what << " of " << name;
    worst = std::max(worst, difference);
  }
  return worst;
}

Batch SomeSamples(const Graph& graph, uint64_t seed, int samples, bool weighted) {
  return testing::RandomBatch(graph, seed, {samples, LayerChain::kTableRows, weighted});
}

}  // namespace medley::worker::aten
