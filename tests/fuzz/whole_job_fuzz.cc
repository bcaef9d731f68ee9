// The fuzz target of a whole job: bytes of a user wherever they may stand, from the data files to what the operator
// publishes. The data are read by the worker's code, and a simulated job (the coordinator's core, members, its journal)
// is run with what comes of them. Every message takes the way that processes send it.
//
// The job must end as complete or failed, within a bounded number of generations, whatever the bytes are; no message
// may be one that its receiver cannot parse; and what is published is JSON in UTF-8.
//
// The first byte chooses the task and the faults, the second the order of events. The rest are texts, divided by \x1e:
// training data, test data, what members say in faults, the name of the file. A missing one is the first.
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "common/rpc/utf8_strings.h"
#include "operator/api/job_status.h"
#include "tests/unit/worker/coordinator/core/sim_world.h"
#include "worker/data/dataset.h"
#include "worker/data/label_values.h"

namespace medley::worker {
namespace {

constexpr int kMostGenerations = 100;
constexpr size_t kMostNameBytes = 100;

struct Input {
  unsigned char choice = 0;
  unsigned char seed = 0;
  std::string train, test, words, name;
};

Input Divide(std::string_view bytes) {
  Input input;
  input.choice = static_cast<unsigned char>(bytes[0]);
  input.seed = static_cast<unsigned char>(bytes[1]);
  bytes.remove_prefix(2);
  std::vector<std::string> parts;
  for (size_t end = 0; parts.size() < 3 && (end = bytes.find('\x1e')) != std::string_view::npos;) {
    parts.emplace_back(bytes.substr(0, end));
    bytes.remove_prefix(end + 1);
  }
  parts.emplace_back(bytes);
  parts.resize(4, parts.front());
  input.train = parts[0];
  input.test = parts[1];
  input.words = parts[2];
  input.name = parts[3].substr(0, kMostNameBytes);
  // What no file can be called. '%' would be decoded in a URI, and '*', '?' and '[' are patterns.
  std::erase_if(input.name, [](char c) { return std::string_view("/\0%*?[", 6).find(c) != std::string_view::npos; });
  if (input.name.empty() || input.name == "." || input.name == "..") input.name = "data";
  return input;
}

// What the members of the job find out about its data.
struct Read {
  absl::Status train, test;
  std::shared_ptr<const Dataset> data;
};

Read ReadData(const Input& input) {
  static const std::filesystem::path kFolder = base::MakeTempDir("medley-whole-job-fuzz").value();
  const std::filesystem::path train = kFolder / (input.name + ".train"), test = kFolder / (input.name + ".test");
  std::ofstream(train, std::ios::binary) << input.train;
  std::ofstream(test, std::ios::binary) << input.test;
  model::DataSpec spec;
  spec.train = {.uri = "file://" + train.string(), .format = "csv"};
  spec.test = model::SourceSpec{.uri = "file://" + test.string(), .format = "csv"};
  spec.schema.task = input.choice % 2 == 0 ? model::Task::kMultiClass : model::Task::kBinary;
  spec.schema.header = input.choice % 3 == 0;
  spec.schema.label_column = 0;
  spec.schema.categorical = {1};
  spec.schema.numeric = {2};
  Read read;
  auto data = Dataset::Load(spec.train, spec, nullptr, {.embedding_rows = 64});
  read.train = data.status();
  if (data.ok()) {
    read.data = *data;
    const Transform& transform = read.data->transform();
    read.train = CheckLabels(*spec.test, spec, transform.label.classes, "", {}, transform.header);
    read.test = Dataset::Load(*spec.test, spec, &transform, {.embedding_rows = 64}).status();
  }
  std::filesystem::remove(train);
  std::filesystem::remove(test);
  return read;
}

// As session.cc, services.cc and journal.cc send and store messages.
void SendAndReceive(google::protobuf::Message& message) {
  rpc::EscapeStrings(message);
  const std::string bytes = message.SerializeAsString();
  message.Clear();
  MEDLEY_CHECK(message.ParseFromString(bytes), "a message was sent that its receiver cannot parse");
}

void SayFault(job::v1::SessionRequest& message, int64_t generation, const std::string& words, bool permanent) {
  job::v1::Fault& fault = *message.mutable_fault();
  fault.set_generation(generation);
  fault.set_message(words);
  fault.set_permanent(permanent);
}

// What a real member would say in place of a simulated one. `generation`: of the last message that names one.
void Speak(const Input& input, const Read& read, const job::v1::MemberSlot& slot, int64_t& generation,
           job::v1::SessionRequest& message) {
  if (message.has_warmed()) generation = message.warmed().generation();
  if (message.has_progress()) generation = message.progress().generation();
  const bool trainer = slot.role() == job::v1::MEMBER_ROLE_TRAINER;
  if (message.has_warmed() && trainer) {
    if (!read.train.ok()) return SayFault(message, generation, base::Message(read.train), true);
    if (input.choice % 16 == 5) return SayFault(message, generation, input.words, false);  // in each generation
    message.mutable_warmed()->set_data_digest(read.data->digest());
  } else if (message.has_progress() && input.choice % 16 == 6) {
    SayFault(message, generation, input.words, false);
  } else if (message.has_evaluated()) {
    if (!read.test.ok()) return SayFault(message, generation, base::Message(read.test), true);
    job::v1::FittedTransform& transform = *message.mutable_evaluated()->mutable_transform();
    for (const std::string& name : read.data->transform().label.classes) transform.mutable_label()->add_classes(name);
    for (const std::string& name : read.data->transform().header) transform.add_header(name);
  } else if (message.has_fault()) {
    message.mutable_fault()->set_message(input.words);
  } else if (message.has_probed()) {
    message.mutable_probed()->set_error(input.words);
  }
}

void CheckPublished(const job::v1::Observation& observation) {
  std::string json;
  MEDLEY_CHECK(google::protobuf::util::MessageToJsonString(observation, &json).ok(), "an observation is not JSON");
  MEDLEY_CHECK(base::IsUtf8(json) && nlohmann::json::accept(json), "an observation is not JSON in UTF-8");
  ops::JobStatus status;
  status.conditions.Set(ops::kFailedCondition, ops::ConditionStatus::kTrue, ops::Reason::kTrainingFailed,
                        observation.message(), 1, base::WallTime());
  const std::string published = status.ToJson().dump();  // throws on text that is not UTF-8
  MEDLEY_CHECK(base::IsUtf8(published) && nlohmann::json::accept(published), "a status is not JSON in UTF-8");
}

void FuzzWholeJob(std::string_view bytes) {
  if (bytes.size() < 2) return;
  const Input input = Divide(bytes);
  const Read read = ReadData(input);
  std::map<std::string, int64_t> generations;  // by member
  sim::World world({.seed = uint64_t{input.seed} + 1,
                    .disturbances = input.choice % 4,
                    .checkpoints = input.choice % 8 < 4,
                    .rows = 13,
                    .epochs = 1,
                    .max_events = 200'000,
                    .max_fruitless = 5,
                    .speak =
                        [&](const job::v1::MemberSlot& slot, job::v1::SessionRequest& message) {
                          Speak(input, read, slot, generations[slot.member()], message);
                        },
                    .transmit = SendAndReceive});
  const std::string end = world.Run();
  const bool failed = end.rfind("the job failed: ", 0) == 0;
  MEDLEY_CHECK(end.empty() || failed, end);
  MEDLEY_CHECK(!end.empty() || (read.train.ok() && read.test.ok()), "a job with bad data is complete");
  MEDLEY_CHECK(world.newest_generation() <= kMostGenerations, "the job went through too many generations");
  CheckPublished(world.last());
}

}  // namespace
}  // namespace medley::worker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  medley::worker::FuzzWholeJob({reinterpret_cast<const char*>(data), size});
  return 0;
}
