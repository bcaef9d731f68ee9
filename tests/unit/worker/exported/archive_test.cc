// Archives of torch.export.save, and files that only look like them: each is refused with a sentence.
#include "worker/exported/archive.h"
#include "worker/exported/pure_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/base/testing/temp_dir.h"
#include "worker/exported/pickle.h"
#include "worker/exported/zip.h"

namespace medley::worker::exported {
namespace {

using ::testing::HasSubstr;

std::string DataFile(const std::string& name) {
  return std::string(std::getenv("MEDLEY_SOURCE_DIR")) + "/tests/data/exported/" + name;
}

class ArchiveTest : public ::testing::Test {
 protected:
  void SetUp() override { folder_ = *base::MakeTempDir("archive-test"); }
  void TearDown() override { base::RemoveTempDir(folder_); }

  absl::StatusOr<Program> Read(const std::string& bytes) {
    const std::filesystem::path path = folder_ / "model.pt2";
    std::ofstream(path, std::ios::binary) << bytes;
    return ReadArchive(path.string());
  }
  std::string Refusal(const std::string& bytes) {
    const auto program = Read(bytes);
    EXPECT_FALSE(program.ok());
    return base::Message(program.status());
  }

  std::filesystem::path folder_;
};

std::string Bytes(const std::string& name) { return *base::ReadFile(DataFile(name)); }

// A zip file of stored entries.
class ZipWriter {
 public:
  void Add(const std::string& name, const std::string& contents, const std::string& local_name = "") {
    const std::string& own = local_name.empty() ? name : local_name;
    const auto crc = static_cast<uint32_t>(
        crc32(0, reinterpret_cast<const Bytef*>(contents.data()), static_cast<uInt>(contents.size())));
    const size_t at = file_.size();
    const auto header = [&](std::string& to, const std::string& title) {
      Put(to, 20, 2);
      Put(to, 0, 2);
      Put(to, 0, 2);
      Put(to, 0, 4);
      Put(to, crc, 4);
      Put(to, contents.size(), 4);
      Put(to, contents.size(), 4);
      Put(to, title.size(), 2);
      Put(to, 0, 2);
    };
    Put(file_, 0x04034b50, 4);
    header(file_, own);
    file_ += own + contents;
    Put(directory_, 0x02014b50, 4);
    Put(directory_, 20, 2);
    header(directory_, name);
    Put(directory_, 0, 2 + 2 + 2 + 4);
    Put(directory_, at, 4);
    directory_ += name;
    ++entries_;
  }
  std::string Finish() const {
    std::string out = file_ + directory_;
    Put(out, 0x06054b50, 4);
    Put(out, 0, 4);
    Put(out, entries_, 2);
    Put(out, entries_, 2);
    Put(out, directory_.size(), 4);
    Put(out, file_.size(), 4);
    Put(out, 0, 2);
    return out;
  }

 private:
  static void Put(std::string& to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) to.push_back(i < 8 ? static_cast<char>((value >> (8 * i)) & 0xff) : '\0');
  }
  std::string file_, directory_;
  uint64_t entries_ = 0;
};

// The entries of an archive, one of them replaced.
std::string With(const std::string& archive, const std::string& ending,
                 const std::function<std::string(std::string)>& change) {
  const std::string bytes = Bytes(archive);
  const Zip zip = *Zip::Open(std::as_bytes(std::span(bytes)));
  ZipWriter writer;
  bool found = false;
  for (const auto& [name, entry] : zip.entries()) {
    std::string contents = *zip.Read(name, 1 << 24);
    if (name.ends_with(ending)) {
      contents = change(contents);
      found = true;
    }
    writer.Add(name, contents);
  }
  EXPECT_TRUE(found) << ending;
  return writer.Finish();
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST_F(ArchiveTest, ReadsWhatPyTorchWrote) {
  const auto program = ReadArchive(DataFile("conv.pt2"));
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(program->writer, HasSubstr("2.9.1"));
  EXPECT_EQ(program->schema_major, 8);
  ASSERT_EQ(program->nodes.size(), 8u);
  EXPECT_EQ(program->nodes[0].target, "aten.conv2d.default");
  EXPECT_EQ(program->nodes[0].module_path, "features.0");
  EXPECT_EQ(program->nodes[0].module_type, "torch.nn.modules.conv.Conv2d");
  EXPECT_THAT(program->nodes[0].source, HasSubstr("make.py:"));
  EXPECT_EQ(program->inputs.back().name, "x");
  EXPECT_EQ(program->inputs.back().kind, InputKind::kUser);
  const StoredTensor& weight = program->stored.at("features.0.weight");
  EXPECT_EQ(weight.sizes, (std::vector<int64_t>{4, 1, 3, 3}));
  EXPECT_EQ(weight.bytes.size(), 4u * 9 * 4);
  EXPECT_TRUE(weight.requires_grad);
  EXPECT_EQ(program->stored.at("features.1.num_batches_tracked").type, ScalarType::kInt64);
}

TEST_F(ArchiveTest, TensorsThatAreOneShareTheirStorage) {
  const auto program = ReadArchive(DataFile("tied.pt2"));
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->stored.at("embedding.weight").storage, program->stored.at("out.weight").storage);
  EXPECT_NE(program->stored.at("middle.weight").storage, program->stored.at("out.weight").storage);
}

// PyTorch 2.7 and 2.8 pickled the weights; the program is the same.
TEST_F(ArchiveTest, OlderLayoutsGiveTheSameProgram) {
  for (const std::string version : {"2.7", "2.8"}) {
    for (const std::string name : {"mlp", "conv", "tied"}) {
      SCOPED_TRACE(name + " of " + version);
      const auto newest = ReadArchive(DataFile(name + ".pt2"));
      const auto older = ReadArchive(DataFile(name + "-" + version + ".pt2"));
      ASSERT_TRUE(older.ok()) << older.status();
      ASSERT_TRUE(newest.ok()) << newest.status();
      EXPECT_THAT(older->writer, ::testing::StartsWith(version));
      ASSERT_EQ(older->nodes.size(), newest->nodes.size());
      for (size_t i = 0; i < older->nodes.size(); ++i) {
        EXPECT_EQ(older->nodes[i].target, newest->nodes[i].target);
        EXPECT_EQ(older->nodes[i].module_path, newest->nodes[i].module_path);
        EXPECT_EQ(older->nodes[i].inputs.size(), newest->nodes[i].inputs.size());
      }
      ASSERT_EQ(older->stored.size(), newest->stored.size());
      std::map<int, int> storages;  // the same tensors share theirs
      for (const auto& [tensor, expected] : newest->stored) {
        const StoredTensor& found = older->stored.at(tensor);
        EXPECT_EQ(found.type, expected.type) << tensor;
        EXPECT_EQ(found.sizes, expected.sizes) << tensor;
        EXPECT_EQ(found.requires_grad, expected.requires_grad) << tensor;
        ASSERT_GE(found.bytes.size(), expected.bytes.size()) << tensor;
        EXPECT_EQ(std::memcmp(found.bytes.data(), expected.bytes.data(), expected.bytes.size()), 0) << tensor;
        EXPECT_EQ(storages.try_emplace(expected.storage, found.storage).first->second, found.storage) << tensor;
      }
    }
  }
}

TEST_F(ArchiveTest, EveryPrefixIsRefused) {
  for (const std::string archive : {"mlp.pt2", "mlp-2.7.pt2", "mlp-2.8.pt2"}) {
    const std::string bytes = Bytes(archive);
    for (size_t length = 0; length < bytes.size(); length += 1 + length / 100) {
      EXPECT_THAT(Refusal(bytes.substr(0, length)), HasSubstr("reading the model")) << archive << ", " << length;
    }
  }
}

TEST_F(ArchiveTest, DamagedPicklesNeverCrash) {
  // The bytes of the weights' pickle itself, behind its checksums.
  const std::string bytes = Bytes("mlp-2.7.pt2");
  const Zip outer = *Zip::Open(std::as_bytes(std::span(bytes)));
  const Zip inner = *Zip::Open(outer.Find("serialized_state_dict.pt")->stored);
  const std::string pickle = *inner.Read("archive/data.pkl", 1 << 20);
  ASSERT_EQ(ReadPickledTensors(pickle)->size(), 4u);
  base::Rng random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string changed = pickle;
    for (uint64_t f = 0, flips = 1 + random.Below(3); f < flips; ++f) {
      changed[random.Below(changed.size())] = static_cast<char>(random.Below(256));
    }
    (void)ReadPickledTensors(changed);
    (void)ReadPickledTensors(pickle.substr(0, random.Below(pickle.size())));
  }
}

TEST_F(ArchiveTest, PicklesThatWantToDoMore) {
  const auto refuse = [](const std::string& pickle) { return base::Message(ReadPickledTensors(pickle).status()); };
  EXPECT_THAT(refuse("\x80\x02"
                     "cposix\nsystem\n"
                     ")R."),
              HasSubstr("wants to call 'posix.system'"));
  EXPECT_THAT(refuse("\x80\x04\x8c\x08"
                     "builtins\x8c\x04"
                     "eval\x93."),
              HasSubstr("wants to call 'builtins.eval'"));
  EXPECT_THAT(refuse("\x80\x02"
                     "i__main__\nX\n."),
              HasSubstr("opcode 0x69"));
  EXPECT_THAT(refuse(std::string("\x80\x02") + "ctorch\nFloatStorage\n)R."), HasSubstr("a storage is called"));
  EXPECT_THAT(refuse("\x80\x02K\x01."), HasSubstr("no dictionary"));
  EXPECT_THAT(refuse("\x80\x02}"), HasSubstr("ends too early"));
  EXPECT_THAT(refuse("\x80\x02h\x07."), HasSubstr("refers to a value that it has not"));
  EXPECT_THAT(refuse("\x80\x02" + std::string(2'000'000, ']') + "."), HasSubstr("too many values"));
  std::string deep = "\x80\x02]";
  for (int i = 0; i < 400'000; ++i) deep += "\x85";
  EXPECT_THAT(refuse(deep + "."), HasSubstr("no dictionary"));
}

TEST_F(ArchiveTest, FlippedBitsNeverCrash) {
  const std::string bytes = Bytes("mlp.pt2");
  base::Rng random(20261125);
  int refused = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string changed = bytes;
    const auto flips = 1 + random.Below(4);
    for (uint64_t f = 0; f < flips; ++f)
      changed[random.Below(changed.size())] ^= static_cast<char>(1 << random.Below(8));
    refused += Read(changed).ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 2500) << "most bits are those of JSON with a checksum, and of names";
}

// Reading does not touch the weights; whoever uses them looks.
TEST_F(ArchiveTest, ADamagedWeightIsFoundWhenItIsUsed) {
  for (const char* name : {"mlp.pt2", "mlp-2.7.pt2", "conv-2.8.pt2"}) {
    const auto whole = std::make_shared<std::string>(Bytes(name));
    const auto before = ReadArchiveBytes(whole, name);
    ASSERT_TRUE(before.ok()) << before.status();
    for (const auto& [tensor, stored] : before->stored) EXPECT_TRUE(CheckContents(stored, tensor).ok()) << tensor;
    const auto& [tensor, stored] = *before->stored.begin();
    const auto at = static_cast<size_t>(reinterpret_cast<const char*>(stored.bytes.data()) - whole->data());
    const auto changed = std::make_shared<std::string>(*whole);
    (*changed)[at + 1] ^= 4;
    const auto after = ReadArchiveBytes(changed, name);
    ASSERT_TRUE(after.ok()) << after.status();
    EXPECT_THAT(base::Message(CheckContents(after->stored.at(tensor), tensor)),
                HasSubstr(fmt::format("the tensor '{}' of the model's archive is damaged", tensor)));
  }
}

TEST_F(ArchiveTest, TheDigestTellsArchivesApart) {
  std::set<std::string> digests;
  for (const char* name : {"mlp.pt2", "mlp-2.7.pt2", "conv-2.8.pt2", "conv.pt2"}) {
    const auto program = Read(Bytes(name));
    ASSERT_TRUE(program.ok()) << program.status();
    digests.insert(program->digest);
  }
  EXPECT_EQ(digests.size(), 4u);
  EXPECT_EQ(Read(Bytes("mlp.pt2"))->digest, Read(Bytes("mlp.pt2"))->digest);
}

TEST_F(ArchiveTest, ZipsThatTwoReadersCouldUnderstandDifferently) {
  const auto refuse = [&](const std::function<void(ZipWriter&)>& add) {
    ZipWriter writer;
    add(writer);
    return Refusal(writer.Finish());
  };
  EXPECT_THAT(refuse([](ZipWriter& zip) {
                zip.Add("m/a", "1");
                zip.Add("m/a", "2");
              }),
              HasSubstr("two entries 'm/a'"));
  EXPECT_THAT(refuse([](ZipWriter& zip) { zip.Add("../a", "1"); }), HasSubstr("leaves the archive"));
  EXPECT_THAT(refuse([](ZipWriter& zip) { zip.Add("/etc/a", "1"); }), HasSubstr("leaves the archive"));
  EXPECT_THAT(refuse([](ZipWriter& zip) { zip.Add("m/a", "1", "m/b"); }), HasSubstr("differs from the directory"));
  EXPECT_THAT(refuse([](ZipWriter& zip) { zip.Add("m/a", "1"); }), HasSubstr("neither models/model.json nor"));
  EXPECT_THAT(Refusal(ZipWriter().Finish()), HasSubstr("the archive is empty"));
}

TEST_F(ArchiveTest, ABombIsNotUnpacked) {
  // 200 MB of zeros, deflated, under the name of the program.
  std::string zeros(200 << 20, '\0'), packed(1 << 20, '\0');
  z_stream stream{};
  ASSERT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(zeros.data());
  stream.avail_in = static_cast<uInt>(zeros.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  ASSERT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  ZipWriter writer;
  writer.Add("m/models/model.json", packed);
  std::string file = writer.Finish();
  // Says that the entry is deflated and small: more comes out of it than it says.
  const auto patch = [&](size_t at, uint32_t value, size_t bytes) { std::memcpy(file.data() + at, &value, bytes); };
  const size_t directory = file.size() - 22 - 46 - std::strlen("m/models/model.json");
  for (const auto& [start, method, size] : {std::tuple<size_t, size_t, size_t>{0, 8, 22}, {directory, 10, 24}}) {
    patch(start + method, 8, 2);
    patch(start + size, 1000, 4);
  }
  EXPECT_THAT(Refusal(file), HasSubstr("does not decompress to its 1000 bytes"));
}

// Half a megabyte in the archive, gigabytes as values.
TEST_F(ArchiveTest, LimitsCountWhatTheInputBecomes) {
  std::string lists = "[[]";
  for (int i = 0; i < 5'000'000; ++i) lists += ",[]";
  EXPECT_THAT(Refusal(With("mlp.pt2", "model.json", [&](const std::string&) { return lists + "]"; })),
              HasSubstr("more than 4000000 values"));
  const auto text = [](size_t bytes) {
    std::string code = "X";
    for (int i = 0; i < 4; ++i) code += static_cast<char>((bytes >> (8 * i)) & 0xff);
    return code + std::string(bytes, 'k');
  };
  const auto refuse = [](const std::string& pickle) { return base::Message(ReadPickledTensors(pickle).status()); };
  EXPECT_THAT(refuse("\x80\x02" + text(100'000) + "."), HasSubstr("a text is too long"));
  // The key of a storage is copied into every tensor.
  std::string keys = "\x80\x02" + text(60'000) + "q" + std::string(1, '\0');
  for (int i = 0; i < 2000; ++i) {
    keys += std::string("(X\x07\0\0\0storage", 13) + "ctorch\nFloatStorage\nh" + std::string(1, '\0') +
            std::string("X\x03\0\0\0cpuK\x01tQ", 12);
  }
  EXPECT_THAT(refuse(keys + "."), HasSubstr("too much text"));
}

TEST_F(ArchiveTest, RefusesImpossiblePrograms) {
  const auto refuse = [&](const std::string& from, const std::string& to) {
    return Refusal(With("mlp.pt2", "model.json", [&](const std::string& json) { return Replaced(json, from, to); }));
  };
  EXPECT_THAT(refuse("\"major\": 8", "\"major\": 9"), HasSubstr("written by PyTorch 2.9.1"));
  EXPECT_THAT(refuse("\"arg\": {\"name\": \"p_fc1_weight\"}", "\"arg\": {\"name\": \"relu\"}"), HasSubstr("relu"));
  EXPECT_THAT(refuse("{\"as_tensor\": {\"name\": \"x\"}}, \"kind\": 1",
                     "{\"as_tensor\": {\"name\": \"linear_1\"}}, \"kind\": 1"),
              HasSubstr("'linear_1' is used before it is defined"));
  EXPECT_THAT(
      refuse("{\"as_tensor\": {\"name\": \"x\"}}, \"kind\": 1", "{\"as_graph\": {\"name\": \"g\"}}, \"kind\": 1"),
      HasSubstr("control flow"));
  EXPECT_THAT(refuse("\"dtype\": 7", "\"dtype\": 77"), HasSubstr("type 77"));
  EXPECT_THAT(Refusal(With("mlp.pt2", "model.json", [](const std::string&) { return std::string(100, '['); })),
              HasSubstr("nested more than 64 levels"));
  EXPECT_THAT(Refusal(With("mlp.pt2", "model.json", [](const std::string&) { return "{}"; })),
              HasSubstr("schema_version"));
}

// aten.from_file(shared=True) and fill_ overwrote a file of the worker's user.
TEST_F(ArchiveTest, OperatorsThatDoMoreThanCompute) {
  const auto refuse = [&](const std::string& target) {
    return Refusal(With("mlp.pt2", "model.json", [&](const std::string& json) {
      return Replaced(json, "torch.ops.aten.relu.default", "torch.ops." + target);
    }));
  };
  for (const char* target : {"aten.from_file.default",
                             "aten.from_file.out",
                             "aten.set_.source_Storage",
                             "aten.as_strided.default",
                             "aten.empty.memory_format",
                             "aten._unsafe_index.Tensor",
                             "aten._index_put_impl_.default",
                             "aten.resize_.default",
                             "aten._print.default",
                             "aten.record_stream.default",
                             "aten.save.default",
                             "prims.iota.default",
                             "aten._cuda_getCurrentRawStream.default",
                             "c10d.broadcast_.default",
                             "image.read_file.default",
                             "profiler._record_function_enter.default",
                             "aten..relu",
                             "relu",
                             "aten",
                             "",
                             "_operator.",
                             "_operator.a.b"}) {
    EXPECT_THAT(refuse(target), HasSubstr("a model may not call this operator")) << target;
  }
  for (const char* packed : {"aten._pack_padded_sequence.default", "aten._pad_packed_sequence.default",
                             "aten.lstm.data", "aten.gru.data", "aten.rnn_tanh.data"}) {
    EXPECT_THAT(refuse(packed),
                ::testing::AllOf(HasSubstr("without pack_padded_sequence, give the recurrent layer the padded batch"),
                                 HasSubstr("make.py:27")))
        << packed;
  }
  EXPECT_THAT(refuse("aten.from_file.default"), HasSubstr("node 1 ('aten.from_file.default' of module '', make.py:27"));
}

TEST(PureCallsTest, OverloadsAndFormsInPlaceAreThoseOfTheirOperator) {
  for (const char* target : {"aten.relu.default", "aten.relu_.default", "aten.add.Tensor", "aten.add_.Scalar",
                             "aten.__and__.Tensor", "aten._to_copy.default", "_operator.mul", "torch.sym_float"}) {
    EXPECT_TRUE(IsPureCall(target)) << target;
  }
  for (const char* target : {"aten.relu__.default", "aten.relu2.default", "aten_.relu.default", "aten.RELU.default"}) {
    EXPECT_FALSE(IsPureCall(target)) << target;
  }
}

TEST_F(ArchiveTest, TensorsBeyondTheirStorage) {
  const auto refuse = [&](const std::string& from, const std::string& to) {
    return Refusal(
        With("mlp.pt2", "weights_config.json", [&](const std::string& json) { return Replaced(json, from, to); }));
  };
  EXPECT_THAT(refuse("\"storage_offset\": {\"as_int\": 0}", "\"storage_offset\": {\"as_int\": 1}"),
              HasSubstr("does not fit into its storage"));
  EXPECT_THAT(refuse("[{\"as_int\": 4}, {\"as_int\": 1}]", "[{\"as_int\": 4611686018427387904}, {\"as_int\": 1}]"),
              HasSubstr("does not fit into its storage"));
  EXPECT_THAT(refuse("[{\"as_int\": 4}, {\"as_int\": 1}]", "[{\"as_int\": -4}, {\"as_int\": 1}]"),
              HasSubstr("does not fit into its storage"));
  EXPECT_THAT(refuse("\"path_name\": \"weight_0\"", "\"path_name\": \"weight_9\""), HasSubstr("weight_9"));
  EXPECT_THAT(refuse("\"use_pickle\": false", "\"use_pickle\": true"), HasSubstr("pickled"));
  EXPECT_THAT(refuse("\"fc1.weight\"", "\"fc9.weight\""), HasSubstr("no tensor for 'fc1.weight'"));
}

TEST_F(ArchiveTest, OnlyRegularFiles) {
  EXPECT_THAT(base::Message(ReadArchive((folder_ / "none").string()).status()), HasSubstr("cannot be opened"));
  EXPECT_THAT(base::Message(ReadArchive(folder_.string()).status()), HasSubstr("no regular file"));
  EXPECT_THAT(base::Message(ReadArchive("/dev/zero").status()), HasSubstr("no regular file"));
}

}  // namespace
}  // namespace medley::worker::exported
