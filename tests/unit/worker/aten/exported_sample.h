// The exported models of tests/data/exported/make.py with their batches and PyTorch's own numbers.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/model/job_spec.h"
#include "worker/data/batch.h"
#include "worker/exported/archive.h"
#include "worker/model/imported_graph.h"
#include "worker/torchscript/read.h"

namespace medley::worker::aten {

inline std::string Folder() { return std::string(std::getenv("MEDLEY_SOURCE_DIR")) + "/tests/data/exported/"; }

// Without who wrote it: "mlp-2.7", "mlp-scripted", "mlp-traced"; and without a mode, "conv-eval".
inline std::string ModelOf(const std::string& name) {
  return name.substr(0, std::min({name.find("-2."), name.find("-scripted"), name.find("-traced"), name.find("-eval")}));
}

inline nlohmann::json Expected(const std::string& name) {
  std::ifstream file(Folder() + ModelOf(name) + ".json");
  return nlohmann::json::parse(file);
}

// The batch of make.py, with a job whose data have its shape.
struct Sample {
  worker::Batch batch;
  model::JobSpec job;
};

inline Sample SampleOf(const std::string& name, const nlohmann::json& expected) {
  Sample out;
  out.job.model.exported_uri = "file://" + Folder() + name + ".pt2";
  out.job.data.schema.task = model::Task::kMultiClass;
  for (int c = 0; c < expected["classes"].get<int>(); ++c)
    out.job.data.schema.label_classes.push_back(std::to_string(c));
  out.batch.samples = static_cast<int>(expected["labels"].size());
  for (const auto& label : expected["labels"]) out.batch.labels.push_back(label.get<float>());
  const auto samples = static_cast<size_t>(out.batch.samples);
  for (size_t sample = 0; sample < samples; ++sample) {
    for (const auto& input : expected["inputs"]) {
      const size_t each = input["values"].size() / samples;
      for (size_t i = sample * each; i < (sample + 1) * each; ++i) {
        if (input["integers"].get<bool>()) {
          out.batch.ids.push_back(input["values"][i].get<int>());
        } else {
          out.batch.numerics.push_back(input["values"][i].get<float>());
        }
      }
    }
  }
  const int fields = static_cast<int>(out.batch.ids.size()) / out.batch.samples;
  const int numerics = static_cast<int>(out.batch.numerics.size()) / out.batch.samples;
  out.batch.shape = {fields, numerics, 1};
  for (int i = 0; i < numerics; ++i) out.job.data.schema.numeric.push_back(i + 1);
  for (int i = 0; i < fields; ++i) out.job.data.schema.categorical.push_back(numerics + i + 1);
  out.job.data.schema.label_column = 0;
  return out;
}

// Kept, because TorchScript is read by another process.
inline const absl::StatusOr<exported::Program>& ReadProgram(const std::string& name) {
  static std::map<std::string, absl::StatusOr<exported::Program>> known;
  if (const auto found = known.find(name); found != known.end()) return found->second;
  static const std::map<std::string, std::vector<torchscript::SampleInput>> kInputs = {
      {"mlp", {{"x", false, {4}}}},        {"conv", {{"x", false, {1, 8, 8}}}},
      {"tied", {{"ids", true, {5}}}},      {"transformer", {{"ids", true, {6}}}},
      {"lstm", {{"ids", true, {6}}}},      {"gru", {{"ids", true, {6}}}},
      {"containers", {{"x", false, {4}}}}, {"two-inputs", {{"x", false, {4}}, {"ids", true, {3}}}}};
  const std::string script = Folder() + "../torchscript/" + name + ".pt";
  const bool is_script = std::filesystem::exists(script);
  return known
      .emplace(name, is_script ? torchscript::ReadTorchScript(script, kInputs.at(ModelOf(name)))
                               : exported::ReadArchive(Folder() + name + ".pt2"))
      .first->second;
}

inline worker::Graph GraphOf(const std::string& name, const Sample& sample, model::CutSpec cut = {}) {
  model::JobSpec job = sample.job;
  job.model.cut = std::move(cut);
  const absl::StatusOr<exported::Program>& program = ReadProgram(name);
  EXPECT_TRUE(program.ok()) << program.status();
  auto graph = worker::ImportedGraph(job, std::make_shared<const exported::Program>(*program));
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

}  // namespace medley::worker::aten
