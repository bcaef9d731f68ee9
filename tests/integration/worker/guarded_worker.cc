// medley-worker for tests: trainers of the pool "device" compute on the test device, whose memory is apart from the
// host's, as those of a pool with GPUs do on their GPU. MEDLEY_TEST_DEVICE_BYTES: how much memory it says that it has.
#include <cstdlib>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "worker/app/worker_main.h"
#include "worker/aten/make_block.h"
#include "worker/aten/testing/tested_device.h"
#include "worker/device/testing/guarded_memory.h"

namespace medley::worker {
namespace {

absl::StatusOr<std::unique_ptr<BlockCompute>> MakeBlock(const Graph& graph, model::OperationRange range,
                                                        const BlockSettings& settings) {
  const char* const pool = std::getenv("MEDLEY_POOL");
  BlockSettings placed = settings;
  if (pool != nullptr && std::string_view(pool) == "device") {
    const char* const bytes = std::getenv("MEDLEY_TEST_DEVICE_BYTES");
    if (bytes != nullptr) device::GuardedMemory::OfProcess().SetTotal(std::stoll(bytes));
    MEDLEY_ASSIGN_OR_RETURN(placed.device, aten::OpenTestedDevice());
  }
  return aten::MakeBlock(graph, range, placed);
}

}  // namespace
}  // namespace medley::worker

int main(int argc, char** argv) { return medley::worker::WorkerMain(argc, argv, medley::worker::MakeBlock); }
