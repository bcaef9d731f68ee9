// What an AtenBlock holds of a micro-batch from its forward to its backward pass. Only for its own files.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "worker/aten/device_loss.h"
#include "worker/aten/device_mask.h"
#include "worker/aten/recorder.h"
#include "worker/aten/torch.h"
#include "worker/data/batch.h"
#include "worker/model/aligned_floats.h"

namespace medley::worker::aten {

struct RecordedPass;

// What the host gives a pass, in the place of the block.
struct Placed {
  std::vector<at::Tensor> from_batch;  // by FromBatch
  std::vector<at::Tensor> rows;        // by table
  std::vector<at::Tensor> inputs;      // by Passed
  PlacedLabels labels;                 // on a device
  std::vector<at::Tensor> gradients;   // of outputs, by Passed; undefined where they have none
};

struct Micro {
  BatchView features;
  Placed placed;
  std::vector<at::Tensor> parameters;  // by Bound; undefined where it has no gradient
  std::vector<at::Tensor> rows;        // by table
  std::vector<at::Tensor> inputs;      // by Passed; undefined where it has no gradient
  std::vector<at::Tensor> outputs;     // by Passed
  std::vector<at::Tensor> changes;     // by Bound: of statistics, else undefined
  at::Tensor result;
  AlignedFloats loss_gradient;                   // on the host
  at::Tensor result_gradient;                    // of the loss, as `result`
  at::Tensor loss;                               // on a device
  std::vector<at::Tensor> row_gradients;         // by table; undefined: zeros
  std::vector<at::Tensor> input_gradients;       // by Passed; undefined: zeros
  std::vector<AlignedFloats> packed;             // by output of the block
  std::vector<std::span<const float>> returned;  // by output of the block
  std::shared_ptr<RecordedPass> recorded;        // which has the tensors of this pass; null: these are here

  // What autograd needs, of which results are left.
  void ForgetGraph() {
    for (at::Tensor& output : outputs) output = at::detach(output);
    for (auto* each : {&parameters, &rows, &inputs, &changes}) each->clear();
    result = at::Tensor();
  }
};

// Both passes of a micro-batch as a device recorded them: they read and write the tensors of `micro`.
struct RecordedPass {
  Recorder::Key key;
  std::shared_ptr<RecordedMemory> memory;
  Micro micro;
  DrawCounters counters;
  std::unique_ptr<device::Recording> forward, backward;
};

}  // namespace medley::worker::aten
