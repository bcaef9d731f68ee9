#include "reproductions/heterog/bench/graph/testbed.h"

#include <fmt/format.h>

#include "common/base/file.h"
#include "common/base/gzip.h"
#include "common/base/status.h"
#include "common/document/parse.h"
#include "common/model/convert.h"
#include "common/model/text.h"
#include "medley/profile/v1/profile.pb.h"
#include "scheduler-service/profile/analytic.h"
#include "scheduler-service/profile/hardware.h"

namespace medley::reproductions::heterog {
namespace {

constexpr int64_t kMostBytes = int64_t{64} << 20;
constexpr std::array<const char*, 3> kTypes = {"v100", "gtx-1080-ti", "p100"};
constexpr double kInside = 1.2e10;   // bytes a second: PCIe 3.0 with 16 lanes, of 15.75e9
constexpr double kBetween = 6.25e9;  // 50 Gbit/s, which one end of every connection but V100's has
constexpr double kInsideLatency = 1e-5, kBetweenLatency = 5e-5;

}  // namespace

const std::vector<PaperRow>& PaperRows() {
  static const std::vector<PaperRow> rows = {
      {"vgg19", {192, 288}, {0.462, 0.503}, {{{0.907, 0.911}, {0.653, 0.682}, {0.853, 0.896}, {0.591, 0.633}}}},
      {"resnet200", {192, 288}, {0.693, 0.745}, {{{1.431, 1.522}, {0.955, 1.085}, {1.273, 1.298}, {0.897, 0.966}}}},
      {"inception_v3", {192, 288}, {0.528, 0.641}, {{{0.933, 0.987}, {0.701, 0.806}, {0.911, 0.954}, {0.659, 0.791}}}},
      {"mobilenet_v2", {192, 288}, {0.232, 0.255}, {{{0.413, 0.421}, {0.368, 0.411}, {0.394, 0.403}, {0.325, 0.337}}}},
      {"nasnet", {192, 288}, {0.862, 0.915}, {{{1.244, 1.385}, {1.028, 1.123}, {1.203, 1.275}, {1.116, 1.348}}}},
      {"transformer-6",
       {720, 1080},
       {0.298, 0.419},
       {{{0.961, 1.133}, {0.496, 0.605}, {0.931, 1.112}, {0.361, 0.547}}}},
      {"bert-24", {48, 72}, {0.451, 0.538}, {{{0.612, 0.825}, {1.064, 1.234}, {0.795, 0.821}, {1.049, 1.218}}}},
      {"xlnet-24", {48, 72}, {0.851, 0.972}, {{{1.232, 1.447}, {1.551, 1.681}, {1.283, 1.485}, {1.566, 1.832}}}}};
  return rows;
}

const std::vector<PaperRow>& LargeRows() {
  static const std::vector<PaperRow> rows = {
      {"resnet200", {384, 576}, {2.285, 3.031}, {}}, {"transformer-24", {120, 180}, {1.147, 1.544}, {}},
      {"bert-24", {96, 144}, {2.241, 2.611}, {}},    {"xlnet-24", {96, 144}, {4.254, 5.043}, {}},
      {"bert-48", {24, 36}, {1.892, 2.367}, {}},     {"xlnet-48", {24, 36}, {3.468, 3.812}, {}}};
  return rows;
}

absl::StatusOr<model::Model> ReadGraph(const std::filesystem::path& folder, const std::string& name) {
  const std::filesystem::path file = folder / (name + ".yaml.gz");
  MEDLEY_ASSIGN_OR_RETURN(const std::string bytes, base::ReadFile(file, kMostBytes));
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::Gunzip(bytes, kMostBytes));
  profile::v1::Model message;
  MEDLEY_RETURN_IF_ERROR(model::ParseText(text, message));
  return model::FromProto(message);
}

absl::StatusOr<sched::DeviceProblem> OnTestbed(const model::Model& model, int batch, bool all, const Roofline& roofline,
                                               bool asynchronous) {
  MEDLEY_ASSIGN_OR_RETURN(const sched::HardwareCatalog catalog, sched::HardwareCatalog::Builtin());
  model::PlanRequest request;
  request.objective = model::Objective::kStepTime;
  request.planner.name = "graph";
  request.training.profile_batch_size = batch;
  request.training.micro_batches = asynchronous ? 4 : 1;
  if (asynchronous) request.planner.schedule = model::ScheduleKind::kAsync1F1B;
  request.training.state_factor = 2;  // SGD: weights and gradients; the paper names no optimizer
  request.model = model;
  for (size_t t = 0; t < kTypes.size(); ++t) {
    sched::Hardware hardware = *catalog.Find(kTypes[t]);
    for (auto& [precision, flops] : hardware.flops) flops *= roofline.efficiency;
    hardware.memory_bytes_per_second *= roofline.efficiency;
    hardware.launch_seconds = roofline.launch_seconds;
    model::Resource resource;
    resource.name = kTypes[t];
    resource.memory_bytes = static_cast<double>(hardware.memory_bytes);
    request.resources.push_back(resource);
    MEDLEY_RETURN_IF_ERROR(sched::AddAnalyticProfiles(request.model, kTypes[t], hardware, batch));
  }
  const std::array<int, 3> counts = all ? std::array{4, 4, 4} : std::array{2, 4, 2};
  const std::array<int, 3> in_machine = {4, 2, 2};
  for (size_t t = 0; t < kTypes.size(); ++t) {
    for (int d = 0; d < counts[t]; ++d) {
      const std::string machine = fmt::format("{}-node-{}", kTypes[t], d / in_machine[t]);
      request.cluster.devices.push_back({fmt::format("{}-{}", kTypes[t], d), kTypes[t], machine, ""});
      request.cluster.links.push_back({machine, machine, kInsideLatency, kInside});
    }
  }
  request.cluster.links.push_back({"*", "*", kBetweenLatency, kBetween * roofline.link_efficiency});
  return sched::DeviceProblem::Compile(std::move(request));
}

}  // namespace medley::reproductions::heterog
