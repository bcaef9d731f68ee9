// Decodes and scores what a planner process sends. A plan that is kept must meet all constraints.
#include <google/protobuf/stubs/logging.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/status.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/remote_planner/candidates.h"

namespace medley::sched {
namespace {

Problem SmallProblem() {
  model::PlanRequest request;
  request.model.name = "m";
  request.resources = {{"c", model::ResourceClass::kCpu, 0.04, 64}, {"g", model::ResourceClass::kGpu, 2.4, 16}};
  for (int l = 0; l < 3; ++l) {
    model::Layer layer;
    layer.name = "l" + std::to_string(l);
    for (const char* type : {"c", "g"}) {
      model::LayerProfile profile;
      profile.resource_type = type;
      profile.compute_seconds = type[0] == 'c' ? 0.1 : 0.01;
      profile.compute_parallel = 0.9;
      layer.profiles.push_back(profile);
    }
    request.model.layers.push_back(layer);
  }
  request.training.profile_batch_size = 64;
  request.training.samples_per_epoch = 1e6;
  return Problem::Compile(request).value();
}

DeviceProblem SmallCluster() {
  model::PlanRequest request = SmallProblem().request();
  request.objective = model::Objective::kStepTime;
  request.cluster = {{{"a", "c", "", ""}, {"b", "g", "", ""}, {"d", "g", "", ""}}, {{"*", "*", 1e-4, 1e9}}};
  return DeviceProblem::Compile(request).value();
}

// The same bytes as a plan for the goal step time.
void FuzzStepTime(std::string_view input) {
  static const Question question(SmallCluster());
  DeviceCandidates candidates(question, {});
  candidates.Take(input);
  if (!candidates.best()) return;
  MEDLEY_CHECK(candidates.seconds() > 0 && candidates.seconds() < kForever, "a step without time");
  for (const model::Device& device : candidates.best()->devices) {
    MEDLEY_CHECK(question.devices().index().contains(device.id), "a device that does not exist");
  }
}

void FuzzCandidate(std::string_view input) {
  FuzzStepTime(input);
  static const Problem problem = SmallProblem();
  Candidates candidates(problem);
  candidates.Take(input);
  MEDLEY_CHECK(candidates.taken() <= 1, "one message was counted twice");
  for (const char c : candidates.first_refusal()) MEDLEY_CHECK(c >= ' ' && c <= '~', "a refusal is not printable");
  if (!candidates.best()) return;
  MEDLEY_CHECK(KeepsConstraints(problem, candidates.best()->stages, candidates.best()->score),
               "a constraint is violated");
}

}  // namespace
}  // namespace medley::sched

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);  // otherwise the log is full of protobuf's messages
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  medley::sched::FuzzCandidate({reinterpret_cast<const char*>(data), size});
  return 0;
}
