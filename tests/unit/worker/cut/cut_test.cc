#include "worker/cut/cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "cli/model/cut_svg.h"
#include "cli/model/inspect.h"
#include "common/base/status.h"
#include "worker/cut/batch_place.h"
#include "worker/cut/modes.h"
#include "worker/cut/tables.h"
#include "worker/exported/archive.h"

namespace medley::worker::cut {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<const exported::Program> Read(const std::string& name) {
  auto program = exported::ReadArchive(std::string(std::getenv("MEDLEY_SOURCE_DIR")) + "/tests/data/exported/" + name);
  EXPECT_TRUE(program.ok()) << program.status();
  return std::make_shared<const exported::Program>(*std::move(program));
}

Cut Divided(const std::string& name, const Options& options) {
  auto cut = Divide(Read(name), options);
  EXPECT_TRUE(cut.ok()) << cut.status();
  return *std::move(cut);
}

std::vector<std::string> NamesOf(const Cut& cut) {
  std::vector<std::string> names;
  for (const Operation& operation : cut.operations) names.push_back(operation.name);
  return names;
}

TEST(CutTest, FollowsModulesAsDeepAsTheUserSays) {
  EXPECT_THAT(NamesOf(Divided("conv.pt2", {.depth = 0})), ElementsAre("model"));
  EXPECT_THAT(NamesOf(Divided("conv.pt2", {.depth = 1})), ElementsAre("features", "dropout", "head"));
  EXPECT_THAT(NamesOf(Divided("transformer.pt2", {.depth = 3})),
              ElementsAre("embedding", "encoder.layers.0", "encoder.layers.1", "head"));
  EXPECT_THAT(NamesOf(Divided("adult.pt2", {.depth = 2})),
              ElementsAre("embedding", "first", "norm", "blocks.0", "blocks.1", "head"));
}

TEST(CutTest, TakesModulesByName) {
  EXPECT_THAT(NamesOf(Divided("transformer.pt2", {.modules = {"encoder.layers.1", "head"}})),
              ElementsAre("model", "encoder.layers.1", "head"));
  const auto cut = Divide(Read("transformer.pt2"), {.modules = {"encoder.layers.7"}});
  EXPECT_THAT(base::Message(cut.status()), HasSubstr("no module 'encoder.layers.7'"));
}

// ReLU in place would change what batch norm keeps for its backward pass, or what another operation has received.
TEST(CutTest, MemoryThatIsChangedInPlaceStaysInOneOperation) {
  const Cut cut = Divided("conv.pt2", {.finest = true});
  for (const Operation& operation : cut.operations) {
    bool changes = false, norm = false;
    for (const int node : operation.nodes) {
      changes = changes || cut.program->nodes[static_cast<size_t>(node)].target == "aten.relu_.default";
      norm = norm || cut.program->nodes[static_cast<size_t>(node)].target == "aten.batch_norm.default";
    }
    EXPECT_EQ(changes, norm) << operation.name;
  }
  EXPECT_THAT(cut.warnings, ::testing::Contains(HasSubstr("change memory in place")));
  EXPECT_THAT(cut.statistics,
              ElementsAre("features.1.running_mean", "features.1.running_var", "features.1.num_batches_tracked"));
}

TEST(CutTest, OperationsThatShareAParameterEachHaveIt) {
  const Cut cut = Divided("tied.pt2", {.depth = 1});
  EXPECT_THAT(NamesOf(cut), ElementsAre("embedding", "middle", "out"));
  EXPECT_THAT(cut.operations[0].owned, ElementsAre("embedding.weight"));
  EXPECT_THAT(cut.operations[1].owned, ElementsAre("middle.weight", "middle.bias"));
  EXPECT_THAT(cut.operations[2].owned, ElementsAre("embedding.weight"));
  EXPECT_EQ(cut.shared.at("out.weight"), "embedding.weight");
  EXPECT_THAT(cut.warnings, ::testing::IsEmpty());
}

// A part of a parameter, or a statistic, has one operation.
TEST(CutTest, OperationsThatSharePartsOfAParameterAreOne) {
  exported::Program program = *Read("tied.pt2");
  program.stored.at("out.weight").offset += 1;
  const auto cut = Divide(std::make_shared<const exported::Program>(std::move(program)), {.depth = 1});
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_THAT(NamesOf(*cut), ElementsAre("embedding"));
  EXPECT_THAT(cut->warnings, ::testing::Contains(HasSubstr("parts of a parameter")));
}

// Attention merges the batch with other axes. Whatever passes between operations has whole samples.
TEST(CutTest, WhatPassesCanBeDividedIntoSamples) {
  const Cut cut = Divided("transformer.pt2", {.finest = true});
  EXPECT_GT(cut.operations.size(), 8u);
  const auto places = BatchPlaces(*cut.program, cut.batch);
  ASSERT_TRUE(places.ok()) << places.status();
  for (const Crossing& crossing : cut.crossings) EXPECT_TRUE(places->at(crossing.value).Outermost()) << crossing.value;
  int mixed = 0;
  for (const auto& [value, place] : *places) mixed += place.Outermost() ? 0 : 1;
  EXPECT_GT(mixed, 0) << "the model has values in which samples are not next to each other";
}

TEST(CutTest, MasksOfIntegersAreComputedWhereTheyAreNeeded) {
  const Cut cut = Divided("two-inputs.pt2", {.depth = 1});
  for (const Crossing& crossing : cut.crossings) EXPECT_EQ(crossing.type, exported::ScalarType::kFloat32);
  EXPECT_THAT(cut.operations.back().batch, ::testing::IsEmpty());
}

TEST(CutTest, CountsFlopsAndFloats) {
  const Cut cut = Divided("mlp.pt2", {.depth = 1});
  ASSERT_EQ(cut.operations.size(), 2u);
  EXPECT_DOUBLE_EQ(cut.operations[0].flops, 2 * 4 * 8 + 8) << "a product and a ReLU";
  EXPECT_DOUBLE_EQ(cut.operations[1].flops, 2 * 8 * 3);
  EXPECT_EQ(cut.operations[0].output_floats, 8);
  EXPECT_EQ(cut.result_floats, 3);
  EXPECT_EQ(cut.operations[1].inputs, std::vector<int>{0});
}

TEST(CutTest, AFixedBatchIsRefusedWithTheCallThatMakesItSymbolic) {
  const auto cut = Divide(Read("fixed.pt2"), {});
  EXPECT_THAT(base::Message(cut.status()), HasSubstr("dynamic_shapes=({0: torch.export.Dim(\"batch\")},)"));
}

TEST(TablesTest, EmbeddingsWithSparseGradientsAreOperationsOfTheirOwn) {
  for (const Options& options : {Options{.depth = 1}, Options{.depth = 3}, Options{.modules = {"head"}}}) {
    const Cut cut = Divided("sparse.pt2", options);
    ASSERT_EQ(cut.operations.size(), 3u);
    EXPECT_EQ(cut.operations[0].table, "rows.weight");
    EXPECT_EQ(cut.operations[0].table_rows, "ids");
    EXPECT_EQ(cut.operations[1].table, "bag.weight");
    EXPECT_EQ(cut.operations[1].table_rows, "more");
    EXPECT_EQ(cut.operations[2].table, "");
    EXPECT_THAT(cut.warnings, ::testing::IsEmpty());
  }
  const Cut whole = Divided("sparse.pt2", {.depth = 0});
  ASSERT_EQ(whole.operations.size(), 1u);
  EXPECT_EQ(whole.operations[0].table, "");
  EXPECT_EQ(Divided("tied.pt2", {}).operations[0].table, "") << "without sparse=True";
}

// What is a table must be nothing else, and its rows must be an input that nothing else uses.
TEST(TablesTest, SaysWhyAnEmbeddingIsNotATable) {
  const auto note = [](const std::function<void(exported::Program&)>& change) {
    exported::Program program = *Read("sparse.pt2");
    change(program);
    const Tables found = FindTables(program);
    EXPECT_EQ(found.tables.size(), 1u);
    return found.notes.empty() ? "" : found.notes.front();
  };
  const auto argument = [](exported::Program& program, const std::string& name) -> exported::Argument& {
    for (exported::NamedArgument& each : program.nodes.front().inputs) {
      if (each.name == name) return each.value;
    }
    ADD_FAILURE() << name;
    return program.nodes.front().inputs.front().value;
  };
  ASSERT_EQ(Read("sparse.pt2")->nodes.front().target, "aten.embedding.default");
  EXPECT_EQ(note([&](exported::Program& p) { argument(p, "sparse") = false; }), "");
  EXPECT_THAT(note([&](exported::Program& p) { argument(p, "padding_idx") = int64_t{0}; }),
              HasSubstr("the embedding 'rows' with sparse=True is kept whole by each trainer: it has a padding_idx"));
  EXPECT_THAT(note([&](exported::Program& p) { argument(p, "scale_grad_by_freq") = true; }),
              HasSubstr("scale_grad_by_freq"));
  EXPECT_THAT(note([](exported::Program& p) { p.stored.at("rows.weight").requires_grad = false; }),
              HasSubstr("it is frozen"));
  EXPECT_THAT(note([](exported::Program& p) {
                p.stored.at("rows.weight").strides = {1, 40};
              }),
              HasSubstr("not in rows"));
  const auto uses = [](exported::Program& program, const std::string& value) {
    exported::Node node{.target = "aten.ne.Scalar", .inputs = {{"self", exported::ValueRef{value}}}, .outputs = {"x"}};
    program.nodes.push_back(std::move(node));
  };
  const auto value_of = [](const exported::Program& program, const std::string& name) {
    return std::ranges::find(program.inputs, name, &exported::Input::name)->value;
  };
  EXPECT_THAT(note([&](exported::Program& p) { uses(p, value_of(p, "ids")); }), HasSubstr("nothing else uses"));
  EXPECT_THAT(note([&](exported::Program& p) { uses(p, value_of(p, "rows.weight")); }), HasSubstr("other calls use"));
}

TEST(ModesTest, WarnsOfDropoutThatEvalHasRemoved) {
  EXPECT_THAT(Divided("conv.pt2", {}).removed, ::testing::IsEmpty());
  EXPECT_THAT(Divided("transformer.pt2", {}).removed, ::testing::IsEmpty()) << "it has none, in training mode";
  EXPECT_THAT(Divided("conv-eval.pt2", {}).removed, ::testing::IsEmpty()) << "dropout and batch norm can be switched";
  EXPECT_THAT(Divided("modes-eval.pt2", {}).removed, ElementsAre(HasSubstr("attention of 'the model' drops nothing")));
  const Cut removed = Divided("modes-removed.pt2", {});
  EXPECT_THAT(removed.removed, ElementsAre(HasSubstr("the module 'drop' (Dropout) drops nothing when training")));
  EXPECT_THAT(cli::InspectText(removed), HasSubstr("warning: the module 'drop'"));
}

TEST(ModesTest, RefusesABatchNormThatCannotBeTrained) {
  const auto cut = Divide(Read("modes-folded.pt2"), {});
  EXPECT_EQ(cut.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(base::Message(cut.status()), HasSubstr("the module 'norm' (BatchNorm1d) was folded"));
  exported::Program frozen = *Read("modes-folded.pt2");  // as torchvision has them
  for (exported::Node& node : frozen.nodes) {
    if (node.module_path == "norm") node.module_type = "torchvision.ops.misc.FrozenBatchNorm2d";
  }
  EXPECT_TRUE(CheckModes(frozen).ok());
}

TEST(InspectTextTest, ShowsTheCut) {
  const std::string text = cli::InspectText(Divided("mlp.pt2", {.depth = 1}));
  EXPECT_THAT(text, HasSubstr("exported by PyTorch 2.9.1"));
  EXPECT_THAT(text, HasSubstr("input x: float32 [batch, 4]"));
  EXPECT_THAT(text, HasSubstr("fc1"));
  EXPECT_THAT(text, HasSubstr("67 parameters"));
  EXPECT_THAT(text, ::testing::ContainsRegex("0 +fc1 .*40 +72 +32 +\\[batch, 8\\] +x"));
}

// Every name of a module may hold any character.
TEST(CutSvgTest, DrawsEveryOperationAndWhatPasses) {
  const Cut cut = Divided("two-inputs.pt2", {.depth = 1});
  const std::string svg = cli::CutSvg("<model & more>", cut);
  EXPECT_THAT(svg, HasSubstr("&lt;model &amp; more&gt;"));
  EXPECT_THAT(svg, ::testing::Not(HasSubstr("nan")));
  size_t arrows = 1;  // to the loss
  for (const Operation& operation : cut.operations) {
    EXPECT_THAT(svg, HasSubstr(operation.name));
    arrows += operation.inputs.size();
  }
  const auto count = [&](std::string_view part) {
    size_t found = 0;
    for (size_t at = svg.find(part); at != std::string::npos; at = svg.find(part, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("<path"), arrows);
  EXPECT_EQ(count("<g "), cut.operations.size() + 1);
  EXPECT_EQ(count("<g "), count("</g>"));
}

}  // namespace
}  // namespace medley::worker::cut
