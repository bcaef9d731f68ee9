// Computes a model from PyTorch for `medley predict` and `medley evaluate`, which give it rows over the socket that is
// its standard input (worker/predict/frames.h).
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "worker/app/predictor.h"
#include "worker/export/read_program.h"
#include "worker/predict/frames.h"

namespace medley::worker {
namespace {

class Predictor {
 public:
  static absl::StatusOr<Predictor> Load(const std::filesystem::path& folder, const BlockMaker& make_block) {
    MEDLEY_ASSIGN_OR_RETURN(const LoadedModel model, ReadExport(folder));
    if (!model.model.FromPyTorch()) return base::InvalidArgument("{} is no model from PyTorch", folder.string());
    MEDLEY_ASSIGN_OR_RETURN(const LoadedProgram program, ReadExportedProgram(model));
    Predictor out;
    out.shape_ = program.graph.shape;
    out.outputs_ = program.graph.Outputs();
    out.range_ = program.graph.imported->cut->samples;
    Optimizer none;
    none.kind = OptimizerKind::kSgd;
    const auto operations = static_cast<int>(program.graph.operations.size());
    const int threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 16);
    MEDLEY_ASSIGN_OR_RETURN(
        out.block_,
        make_block(program.graph, {0, operations},
                   {.optimizer = none, .threads = std::make_shared<ComputeThreads>(threads), .kept_updates = 0}));
    for (DenseParameter& parameter : out.block_->Parameters()) {
      const auto found = program.weights.find(parameter.spec.name);
      if (found == program.weights.end() || found->second.size() != parameter.weights.size()) {
        return base::InvalidArgument("{} has no tensor '{}' of this size", kWeightsFile, parameter.spec.name);
      }
      std::ranges::copy(found->second, parameter.weights.begin());
    }
    out.block_->SetAppliedStep(0);
    return out;
  }

  std::array<int32_t, 3> Hello() const { return {shape_.fields, shape_.numerics, outputs_}; }

  // The logits of all samples of a request.
  absl::StatusOr<std::string> Answer(const Frame& request) {
    const auto samples = static_cast<size_t>(std::max(0, request.code));
    const size_t ids = samples * static_cast<size_t>(shape_.fields);
    const size_t numerics = samples * static_cast<size_t>(shape_.numerics);
    if (request.bytes.size() != ids * sizeof(int32_t) + numerics * sizeof(float)) {
      return base::InvalidArgument("{} bytes for {} samples", request.bytes.size(), samples);
    }
    rows_.shape = shape_;
    rows_.samples = static_cast<int>(samples);
    rows_.ids.resize(ids);
    rows_.numerics.resize(numerics);
    std::memcpy(rows_.ids.data(), request.bytes.data(), ids * sizeof(int32_t));
    std::memcpy(rows_.numerics.data(), request.bytes.data() + ids * sizeof(int32_t), numerics * sizeof(float));
    std::string answer;
    const auto most = static_cast<int>(std::clamp<int64_t>(range_.most.value_or(rows_.samples), 1, 1 << 20));
    for (int first = 0; first < rows_.samples; first += most) {
      MEDLEY_RETURN_IF_ERROR(Infer(first, std::min(most, rows_.samples - first), answer));
    }
    return answer;
  }

 private:
  // Fewer samples than the program accepts are computed with copies of the first.
  absl::Status Infer(int first, int count, std::string& answer) {
    const BatchView part = rows_.View(first, count);
    const auto needed = static_cast<size_t>(std::max<int64_t>(count, range_.least.value_or(1)));
    std::vector<int32_t> ids(part.ids.begin(), part.ids.end());
    std::vector<float> numerics(part.numerics.begin(), part.numerics.end());
    for (auto i = static_cast<size_t>(count); i < needed; ++i) {
      ids.insert(ids.end(), part.ids.begin(), part.ids.begin() + shape_.fields);
      numerics.insert(numerics.end(), part.numerics.begin(), part.numerics.begin() + shape_.numerics);
    }
    const std::vector<float> labels(needed * static_cast<size_t>(shape_.labels));
    MEDLEY_ASSIGN_OR_RETURN(const Values values, block_->Infer({static_cast<int>(needed), ids, numerics, labels}, {}));
    const size_t floats = static_cast<size_t>(count) * static_cast<size_t>(outputs_);
    if (values.size() != 1 || values.front().size() < floats) return base::Internal("the model has no outputs");
    answer.append(reinterpret_cast<const char*>(values.front().data()), floats * sizeof(float));
    return absl::OkStatus();
  }

  SampleShape shape_;
  int outputs_ = 0;
  exported::Range range_;
  std::unique_ptr<BlockCompute> block_;
  Batch rows_;
};

absl::Status Say(const absl::Status& status) {
  return WriteFrame(STDIN_FILENO, static_cast<int32_t>(status.code()), base::Message(status));
}

}  // namespace

absl::StatusOr<int> RunPredictorRole(const std::filesystem::path& folder, const BlockMaker& make_block) {
  absl::StatusOr<Predictor> predictor = Predictor::Load(folder, make_block);
  if (!predictor.ok()) {
    MEDLEY_RETURN_IF_ERROR(Say(predictor.status()));
    return 0;
  }
  const std::array<int32_t, 3> hello = predictor->Hello();
  MEDLEY_RETURN_IF_ERROR(WriteFrame(STDIN_FILENO, 0, {reinterpret_cast<const char*>(hello.data()), sizeof hello}));
  while (true) {
    const absl::StatusOr<Frame> request = ReadFrame(STDIN_FILENO);
    if (!request.ok()) return 0;  // the other side has ended
    const absl::StatusOr<std::string> answer = predictor->Answer(*request);
    MEDLEY_RETURN_IF_ERROR(answer.ok() ? WriteFrame(STDIN_FILENO, 0, *answer) : Say(answer.status()));
  }
}

}  // namespace medley::worker
