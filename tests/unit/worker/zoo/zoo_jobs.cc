#include "tests/unit/worker/zoo/zoo_jobs.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/document/parse.h"

namespace medley::worker::testing {
namespace {

std::string Examples() { return SourceFolder() + "/examples"; }

}  // namespace

std::string SourceFolder() {
  const char* const set = std::getenv("MEDLEY_SOURCE_DIR");
  return set == nullptr ? "." : set;
}

std::vector<std::string> ZooNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(Examples() + "/zoo")) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

model::JobSpec ZooJob(const std::string& name) {
  const auto text = base::ReadFile(Examples() + "/zoo/" + name + ".yaml");
  MEDLEY_CHECK(text.ok(), "the example cannot be read");
  const auto documents = document::ParseYamlStream(*text);
  MEDLEY_CHECK(documents.ok(), "the example is no YAML");
  nlohmann::json spec = documents->back()["spec"];
  for (const char* part : {"train", "test"}) {
    std::string& uri = spec["data"][part]["uri"].get_ref<std::string&>();
    uri = "file://" + std::filesystem::absolute(Examples()).string() + uri.substr(std::string("file://").size());
  }
  const auto job = model::ParseJobSpec(spec.dump());
  MEDLEY_CHECK(job.ok(), base::ToString(job.status()).c_str());
  return *job;
}

}  // namespace medley::worker::testing
