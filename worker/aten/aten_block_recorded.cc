// Passes of an AtenBlock that its device recorded.
#include <utility>

#include "common/base/status.h"
#include "worker/aten/aten_block_rep.h"

namespace medley::worker::aten {

std::shared_ptr<RecordedPass> AtenBlock::Rep::RecordedFor(const OpenStep& open, Pass pass, const BatchView& features) {
  if (!place_.apart()) return nullptr;
  Recorder::Key key = {static_cast<uint64_t>(pass.slot),
                       static_cast<uint64_t>(pass.micro),
                       static_cast<uint64_t>(features.samples),
                       static_cast<uint64_t>(open.shape.global_samples),
                       features.labels.size(),
                       features.weights.size()};
  for (size_t t = 0; t < open.tables.size(); ++t) {
    key.push_back(static_cast<uint64_t>(open.tables.Rows(t, table_specs_[t]).size(0)));
  }
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

absl::Status AtenBlock::Rep::ForwardRecorded(OpenStep& open, Micro& own, RunContext context, Values inputs) {
  const std::shared_ptr<RecordedPass> pass = own.recorded;
  if (pass->backward == nullptr) {  // also where a step ended between both passes
    pass->forward = nullptr;
    pass->micro = {};
  }
  Micro& micro = pass->micro;
  micro.features = own.features;
  MEDLEY_RETURN_IF_ERROR(PlaceInputs(micro, inputs, /*training=*/true, open.tables));
  if (pass->forward == nullptr || pass->counters.used()) {
    pass->counters.Set(context.step, context.first_sample, place_.Floats());
  }
  if (pass->forward == nullptr) {
    context.counters = &pass->counters;
    auto recorded = recorder_.Record(pass->key, *pass->memory, [&] { return Compute(micro, context, open.shape); });
    if (!recorded.ok()) {
      passes_.erase(pass->key);
      own.recorded = nullptr;
      return absl::OkStatus();
    }
    pass->forward = *std::move(recorded);
  }
  return recorder_.Replay(*pass->forward);
}

absl::Status AtenBlock::Rep::BackwardRecorded(OpenStep& open, Micro& own) {
  RecordedPass& pass = *own.recorded;
  if (pass.backward == nullptr) {
    auto recorded = recorder_.Record(pass.key, *pass.memory,
                                     [&] { return ComputeGradients(pass.micro, open.shape, /*again=*/true); });
    if (!recorded.ok()) {  // the recorded forward pass has left what autograd needs
      passes_.erase(pass.key);
      return ComputeGradients(pass.micro, open.shape, /*again=*/false);
    }
    pass.backward = *std::move(recorded);
    pass.micro.ForgetGraph();
  }
  return recorder_.Replay(*pass.backward);
}

}  // namespace medley::worker::aten
