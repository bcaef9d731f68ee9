#include "worker/predict/compute.h"

#include "common/base/status.h"
#include "worker/predict/network.h"
#include "worker/predict/program_process.h"

namespace medley::worker {
namespace {

class OwnModel final : public Compute {
 public:
  explicit OwnModel(const LoadedModel& model) : network_(model) {}
  absl::Status Logits(const Batch& rows, std::vector<float>& logits) override {
    network_.Logits(rows, logits);
    return absl::OkStatus();
  }

 private:
  Network network_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Compute>> MakeCompute(const LoadedModel& model) {
  if (!model.model.FromPyTorch()) return std::make_unique<OwnModel>(model);
  MEDLEY_ASSIGN_OR_RETURN(std::unique_ptr<Compute> process, ProgramProcess::Start(model));
  return process;
}

}  // namespace medley::worker
