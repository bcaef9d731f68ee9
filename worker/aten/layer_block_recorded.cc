// Passes of a LayerBlock that its device recorded.
#include <utility>

#include "common/base/status.h"
#include "worker/aten/layer_block.h"

namespace medley::worker::aten {

void LayerBlock::Micro::ForgetGraph() {
  for (at::Tensor& output : outputs) output = at::detach(output);
  for (auto* each : {&positions, &rows, &parameters, &inputs}) each->clear();
  result = at::Tensor();
}

std::shared_ptr<LayerBlock::RecordedPass> LayerBlock::RecordedFor(const OpenStep& open, Pass pass,
                                                                  const BatchView& features) {
  Recorder::Key key = {static_cast<uint64_t>(pass.slot),
                       static_cast<uint64_t>(pass.micro),
                       static_cast<uint64_t>(features.samples),
                       static_cast<uint64_t>(open.shape.global_samples),
                       features.labels.size(),
                       features.weights.size()};
  for (const uint64_t address : store_->Addresses(open.shape.version)) key.push_back(address);
  if (!recorder_.Wants(key)) return nullptr;
  std::shared_ptr<RecordedPass>& known = passes_[key];
  if (known == nullptr) {
    known = std::make_shared<RecordedPass>();
    known->key = std::move(key);
    known->memory = recorder_.NewMemory();
  }
  return known;
}

absl::Status LayerBlock::ForwardRecorded(OpenStep& open, Micro& own, Values inputs) {
  const std::shared_ptr<RecordedPass> pass = own.recorded;
  if (pass->backward == nullptr) {  // also where a step ended between both passes
    pass->forward = nullptr;
    pass->micro = {};
  }
  Micro& micro = pass->micro;
  micro.features = own.features;
  micro.first_sample = own.first_sample;
  MEDLEY_RETURN_IF_ERROR(PlaceInputs(micro, inputs, /*training=*/true));
  if (pass->forward == nullptr || pass->counters.used()) {
    pass->counters.Set(open.shape.step, own.first_sample, place_.Floats());
  }
  if (pass->forward == nullptr) {
    auto recorded = recorder_.Record(pass->key, *pass->memory,
                                     [&] { return Compute(micro, open, /*training=*/true, &pass->counters); });
    if (!recorded.ok()) {
      passes_.erase(pass->key);
      own.recorded = nullptr;
      return absl::OkStatus();
    }
    pass->forward = *std::move(recorded);
  }
  return recorder_.Replay(*pass->forward);
}

absl::Status LayerBlock::BackwardRecorded(OpenStep& open, Micro& own) {
  RecordedPass& pass = *own.recorded;
  if (pass.backward == nullptr) {
    auto recorded =
        recorder_.Record(pass.key, *pass.memory, [&] { return ComputeGradients(open, pass.micro, /*again=*/true); });
    if (!recorded.ok()) {  // the recorded forward pass has left what autograd needs
      passes_.erase(pass.key);
      return ComputeGradients(open, pass.micro, /*again=*/false);
    }
    pass.backward = *std::move(recorded);
    pass.micro.ForgetGraph();
  }
  return recorder_.Replay(*pass.backward);
}

}  // namespace medley::worker::aten
