#include "worker/torchscript/read.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/testing/soak.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "worker/cut/cut.h"

namespace medley::worker::torchscript {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Folder() { return std::string(std::getenv("MEDLEY_SOURCE_DIR")) + "/tests/data/torchscript/"; }

std::string Error(const std::string& name, const std::vector<SampleInput>& inputs = {{"x", false, {4}}}) {
  return base::Message(ReadTorchScript(Folder() + name, inputs).status());
}

TEST(SampleTest, IsWrittenAndRead) {
  for (const SampleInput& input :
       {SampleInput{"x", false, {1, 28, 28}}, SampleInput{"ids", true, {7}}, SampleInput{"price", false, {}}}) {
    const auto read = ParseSample(Text(input));
    ASSERT_THAT(read, base::IsOk());
    EXPECT_EQ(*read, input);
  }
  for (const char* bad : {"", "x", "x:float64:1", "x:float32:0", "x:float32:-1", "x:float32:1,,2", ":float32:1",
                          "x:float32:9999999999", "x:float32:100000,100000", "x:float32:1:2"}) {
    EXPECT_FALSE(ParseSample(bad).ok()) << bad;
  }
}

TEST(ReadTorchScriptTest, KeepsNamesModulesAndTheBatch) {
  const auto program = ReadTorchScript(Folder() + "branches.pt", {{"x", false, {4}}});
  ASSERT_THAT(program, base::IsOk());
  EXPECT_EQ(program->stored.size(), 8U);
  EXPECT_TRUE(program->stored.contains("layers.2.bias"));
  EXPECT_TRUE(program->stored.at("layers.2.bias").requires_grad);
  std::vector<std::string> linear;
  for (const exported::Node& node : program->nodes) {
    if (node.target != "aten.linear.default") continue;
    linear.push_back(node.module_path);
    EXPECT_EQ(node.module_type, "torch.nn.modules.linear.Linear");
  }
  EXPECT_THAT(linear, ElementsAre("layers.0", "layers.1", "layers.2", "head"));
  EXPECT_EQ(program->tensors.at(program->outputs.at(0).value).sizes.at(0).expression, "s0");
  bool doubled = false;
  for (const auto& [name, number] : program->numbers) doubled |= number.expression == "2*s0";
  EXPECT_TRUE(doubled) << "x.size(0) * 2 follows from the batch";
  const auto cut = cut::Divide(std::make_shared<const exported::Program>(*program), {.depth = 2});
  ASSERT_THAT(cut, base::IsOk());
  EXPECT_EQ(cut->operations.front().name, "layers.0");
}

TEST(ReadTorchScriptTest, BuffersChange) {
  const auto program = ReadTorchScript(Folder() + "conv-scripted.pt", {{"x", false, {1, 8, 8}}});
  ASSERT_THAT(program, base::IsOk());
  EXPECT_TRUE(program->stored.contains("features.1.running_mean"));
  EXPECT_TRUE(program->stored.contains("features.1.num_batches_tracked"));
}

TEST(ReadTorchScriptTest, ABufferThatIsReplacedIsReadAsItIsNow) {
  const auto program = ReadTorchScript(Folder() + "counter.pt", {{"x", false, {4}}});
  ASSERT_THAT(program, base::IsOk());
  std::string changed;
  for (const exported::Output& output : program->outputs) {
    if (output.kind == exported::OutputKind::kBufferMutation && output.target == "count") changed = output.value;
  }
  ASSERT_FALSE(changed.empty());
  bool used = false;
  for (const exported::Node& node : program->nodes) {
    if (node.target != "aten.mul.Tensor") continue;
    for (const exported::NamedArgument& argument : node.inputs) {
      used |= argument.value == exported::Argument(exported::ValueRef{changed});
    }
  }
  EXPECT_TRUE(used) << "the product takes the new count";
}

// Tensors in lists, tuples and dictionaries that are parameters or buffers too are those; others are constants.
TEST(ReadTorchScriptTest, TensorsInContainersAreFollowed) {
  const auto names = [](const exported::Program& program, exported::InputKind kind) {
    std::vector<std::string> found;
    for (const exported::Input& input : program.inputs) {
      if (input.kind == kind) found.push_back(input.name);
    }
    return found;
  };
  const auto lstm = ReadTorchScript(Folder() + "lstm-scripted.pt", {{"ids", true, {6}}});
  ASSERT_TRUE(lstm.ok()) << lstm.status();
  EXPECT_THAT(
      names(*lstm, exported::InputKind::kParameter),
      ::testing::IsSupersetOf({"lstm.weight_ih_l0", "lstm.bias_hh_l1_reverse", "embedding.weight", "head.bias"}));
  EXPECT_EQ(names(*lstm, exported::InputKind::kParameter).size(), 19u);
  EXPECT_EQ(names(*lstm, exported::InputKind::kConstant).size(), 0u);
  const auto held = ReadTorchScript(Folder() + "containers-scripted.pt", {{"x", false, {4}}});
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_THAT(names(*held, exported::InputKind::kBuffer), ::testing::ElementsAre("known"));
  EXPECT_EQ(names(*held, exported::InputKind::kConstant).size(), 4u) << "a list's, a tuple's and a dictionary's two";
}

TEST(ReadTorchScriptTest, WhatCannotBeFollowedIsNamedWithItsLine) {
  EXPECT_THAT(Error("data.pt"),
              AllOf(HasSubstr("aten::Bool"), HasSubstr("if x.sum() > 0:"), HasSubstr("depends on data")));
  EXPECT_THAT(Error("prints.pt"), AllOf(HasSubstr("print(\"hello\")"), HasSubstr("does not print")));
  EXPECT_THAT(Error("lists.pt"), AllOf(HasSubstr("aten::insert"), HasSubstr("changes a list")));
  EXPECT_THAT(Error("mask.pt"), AllOf(HasSubstr("x[x > 0]"), HasSubstr("the shape of its result follows from data")));
  EXPECT_THAT(Error("fixed.pt"), HasSubstr("a traced model may hold the batch that it was traced with"));
  EXPECT_THAT(Error("mlp-scripted.pt", {{"y", false, {4}}}), HasSubstr("forward takes 'x'"));
  EXPECT_THAT(Error("mlp-scripted.pt", {{"x", false, {4}}, {"y", false, {4}}}), HasSubstr("does not take all"));
  EXPECT_THAT(Error("mlp-scripted.pt", {{"x", false, {5}}}), HasSubstr("fails with a batch of 5"));
  EXPECT_THAT(Error("mlp-scripted.pt", {{"x", true, {4}}}), HasSubstr("fails with a batch of 5"));
  EXPECT_EQ(ReadTorchScript(Folder() + "absent.pt", {}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Error("make.py"), HasSubstr("cannot read the model"));
  EXPECT_THAT(Error("../exported/mlp.pt2"), HasSubstr("cannot read the model"));
}

class DamagedTest : public ::testing::Test {
 protected:
  void SetUp() override { folder_ = *base::MakeTempDir("torchscript"); }
  void TearDown() override { base::RemoveTempDir(folder_); }
  absl::Status Read(const std::string& bytes) {
    std::ofstream(folder_ / "model.pt", std::ios::binary) << bytes;
    return ReadTorchScript((folder_ / "model.pt").string(), {{"x", false, {4}}}, {.time = std::chrono::seconds(30)})
        .status();
  }
  std::filesystem::path folder_;
};

// Whatever the file: an answer in time, and this process goes on.
TEST_F(DamagedTest, CutOffOrFlippedItIsRefusedOrRead) {
  const std::string good = *base::ReadFile(Folder() + "mlp-scripted.pt");
  std::mt19937_64 random(5);
  const int rounds = base::Rounds(8, 24);
  int refused = 0;
  for (int i = 0; i < rounds; ++i) {
    std::string bytes = good;
    if (i % 2 == 0) {
      bytes.resize(random() % bytes.size());
    } else {
      for (int k = 0; k < 3; ++k) bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    }
    const absl::Status status = Read(bytes);
    if (status.ok()) continue;
    ++refused;
    EXPECT_THAT(base::Message(status), HasSubstr("reading the model "));
  }
  EXPECT_GE(refused, rounds / 2) << "half of them were cut off";
}

TEST_F(DamagedTest, RefusesCodeThatCallsTheSystem) {
  // A pickle that calls os.system, as torch.load would run it.
  EXPECT_FALSE(Read("\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85R.").ok());
}

}  // namespace
}  // namespace medley::worker::torchscript
