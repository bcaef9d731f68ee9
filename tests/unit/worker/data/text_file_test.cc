#include "worker/data/text_file.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "worker/data/dataset.h"
#include "worker/data/decompressor.h"
#include "worker/data/label_values.h"
#include "worker/data/source.h"

namespace medley::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Gzip(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, static_cast<uLong>(text.size())) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string Zstd(const std::string& text, bool checksum = false) {
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, checksum ? 1 : 0);
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress2(context.get(), out.data(), out.size(), text.data(), text.size()));
  return out;
}

class TextFileTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = *base::MakeTempDir("text_file"); }
  void TearDown() override { base::RemoveTempDir(folder_); }
  std::string Write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  std::string At(const std::string& name) const { return (folder_ / name).string(); }
  std::string Error(const std::string& name, const std::string& bytes) {
    return base::Message(ReadText(Write(name, bytes)).status());
  }
  absl::StatusOr<std::shared_ptr<const Dataset>> Load(const std::string& name, const model::SchemaSpec& schema) {
    model::DataSpec spec;
    spec.schema = schema;
    const model::SourceSpec source{"file:///" + name, "csv"};
    EXPECT_THAT(CheckLabels(source, spec, {}, folder_.string(), {}), base::IsOk());
    auto data = Dataset::Load(source, spec, nullptr, {.embedding_rows = 100, .threads = 2, .root = folder_.string()});
    return data;
  }

  std::filesystem::path folder_;
};

TEST_F(TextFileTest, ReadsPlainAndCompressedText) {
  std::string text;
  for (int i = 0; i < 200000; ++i) text += std::to_string(i) + (i % 3 == 0 ? "\n" : ",");
  for (const std::string& bytes : {text, Gzip(text), Gzip(text.substr(0, 1000)) + Gzip(text.substr(1000)), Zstd(text),
                                   Zstd(text, true), Zstd(text.substr(0, 1000)) + Zstd(text.substr(1000)),
                                   std::string("\x50\x2a\x4d\x18\x03\0\0\0abc", 11) + Zstd(text)}) {
    const auto read = ReadText(Write("x", bytes));
    ASSERT_THAT(read, base::IsOk());
    EXPECT_TRUE(*read == text);
    std::string lines;
    EXPECT_THAT(ForEachRecord(folder_ / "x", ',',
                              [&](std::string_view line, int64_t) {
                                lines += std::string(line) + "\n";
                                return true;
                              }),
                base::IsOk());
    EXPECT_TRUE(lines == text + "\n") << "the last line has no end";
  }
  EXPECT_EQ(*ReadText(Write("zeros.gz", Gzip("a\n") + std::string(512, '\0'))), "a\n");
  EXPECT_EQ(*ReadText(Write("empty", "")), "");
}

std::string Utf16(std::string_view ascii, bool big) {
  std::string text = big ? "\xfe\xff" : "\xff\xfe";
  for (const char c : ascii) text += big ? std::string{'\0', c} : std::string{c, '\0'};
  return text;
}

TEST_F(TextFileTest, EncodingsAreReadOrNamed) {
  const std::string text = "a,b\n1,\"x\ny\"\n";
  EXPECT_EQ(*ReadText(Write("x", "\xef\xbb\xbf" + text)), text);
  EXPECT_EQ(*ReadText(Write("x", Utf16(text, false))), text);
  EXPECT_EQ(*ReadText(Write("x", Utf16(text, true))), text);
  EXPECT_EQ(*ReadText(Write("x", Gzip(Utf16(text, true)))), text);
  EXPECT_EQ(*ReadText(Write("x", std::string("\xff\xfe\xe9\0\x3d\xd8\0\xde\xac\x20\0\xdc", 12))),
            "\xc3\xa9\xf0\x9f\x98\x80\xe2\x82\xac\xef\xbf\xbd")
      << "also a half of a pair";
  EXPECT_EQ(*ReadText(Write("x", "a,b\r1,2\r")), "a,b\n1,2\n") << "of an old Mac";
  EXPECT_EQ(*ReadText(Write("x", "a,b\r\n1,2\r\n")), "a,b\r\n1,2\r\n");
  EXPECT_EQ(*ReadText(Write("x", "caf\xe9,1\n")), "caf\xe9,1\n") << "Latin-1 is bytes";
  const std::string large(300'000, 'x');
  EXPECT_EQ(*ReadText(Write("x", Utf16(large + "\n", false))), large + "\n");
  EXPECT_THAT(Error("x", Utf16(text, false).substr(2)), HasSubstr("x: is text in UTF-16 without a byte order mark"));
  EXPECT_THAT(Error("x", std::string("\xff\xfe\0\0a\0\0\0", 8)), HasSubstr("is text in UTF-32"));
  EXPECT_THAT(Error("x", std::string("PAR1\x15\0\x04", 7)), HasSubstr("Parquet"));
  EXPECT_EQ(*ReadText(Write("x", "PAR1,PAR2\n1,2\n")), "PAR1,PAR2\n1,2\n") << "a table whose columns have these names";
}

TEST_F(TextFileTest, FoldersMayHaveTheCharactersOfPatterns) {
  std::filesystem::create_directories(folder_ / "data [1]" / "a*b");
  Write("data [1]/p-1.csv", "");
  Write("data [1]/a*b/q?.csv", "");
  EXPECT_THAT(*FindFiles(folder_ / "data [1]/p-*.csv"), ElementsAre(At("data [1]/p-1.csv")));
  EXPECT_THAT(*FindFiles(folder_ / "data [1]/p-1.csv"), ElementsAre(At("data [1]/p-1.csv")));
  EXPECT_THAT(*FindFiles(folder_ / "data [1]/a*b/q*"), ElementsAre(At("data [1]/a*b/q?.csv")));
  EXPECT_THAT(*FindFiles(folder_ / "data*/p-?.csv"), ElementsAre(At("data [1]/p-1.csv")));
}

TEST_F(TextFileTest, TextThatDoesNotFitIntoMemoryIsRefused) {
  const std::string packed = Gzip(std::string(20 << 20, 'x'));
  ASSERT_LT(packed.size(), 100'000u);
  const auto refused = testing::ResultOf([](const auto& read) { return base::Message(read.status()); },
                                         testing::HasSubstr("give the units of its pool more memory"));
  EXPECT_THAT(ReadText(Write("bomb.gz", packed), 8 << 20), refused);
  EXPECT_THAT(ReadText(Write("plain", std::string(3000, 'x')), 2000), refused);
  EXPECT_EQ(ReadText(Write("plain", std::string(3000, 'x')), 2000).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(ReadText(Write("fits", std::string(1999, 'x')), 2000)->size(), 1999u);
  EXPECT_EQ(ReadText(Write("fits.gz", packed), 100 << 20)->size(), size_t{20} << 20);
}

TEST_F(TextFileTest, DamageIsAnError) {
  const std::string good = Gzip("some text that is compressed, some text that is compressed");
  EXPECT_THAT(Error("x.gz", good.substr(0, good.size() - 3)), HasSubstr("x.gz: the gzip data end in the middle"));
  std::string damaged = good;
  damaged[good.size() - 6] ^= 0x55;  // of the checksum
  EXPECT_THAT(Error("x", damaged), HasSubstr("the gzip data are damaged"));
  EXPECT_THAT(Error("x.gz", good + "garbage"), HasSubstr("the gzip data are damaged"));
  EXPECT_THAT(Error("x.gz", "a,b\n"), HasSubstr("the content is not gzip, although the name ends in .gz"));
  EXPECT_THAT(Error("x.gz", ""), HasSubstr("the content is not gzip"));
  const std::string packed = Zstd("some text that is compressed, some text that is compressed", true);
  EXPECT_THAT(Error("x.zst", packed.substr(0, packed.size() - 3)), HasSubstr("x.zst: the zstd data end in the middle"));
  EXPECT_THAT(Error("x", packed.substr(0, 5)), HasSubstr("x: the zstd data end in the middle"));
  damaged = packed;
  damaged[packed.size() - 2] ^= 0x55;  // of the checksum
  EXPECT_THAT(Error("x", damaged), HasSubstr("x: the zstd data are damaged"));
  EXPECT_THAT(Error("x.zst", packed + "garbage"), HasSubstr("the zstd data are damaged"));
  EXPECT_THAT(Error("x.zst", good), HasSubstr("the content is not zstd, although the name ends in .zst"));
  EXPECT_THAT(Error("x.gz", packed), HasSubstr("the content is not gzip"));
  // A frame that says it needs a window of 2 GiB.
  EXPECT_THAT(Error("x", std::string("\x28\xb5\x2f\xfd\x00\xa8\x01\0\0", 9)), HasSubstr("the zstd data are damaged"));
  EXPECT_EQ(ReadText(folder_ / "absent").status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(ReadText(folder_).ok()) << "a folder";
}

TEST_F(TextFileTest, PatternsMeanFilesInTheOrderOfTheirNames) {
  for (const char* name : {"p-10.csv", "p-2.csv", "q.csv", "p-[x].csv"}) Write(name, "");
  std::filesystem::create_directory(folder_ / "p-dir.csv");
  const auto found = FindFiles(folder_ / "p-*.csv");
  ASSERT_THAT(found, base::IsOk());
  EXPECT_THAT(*found, ElementsAre(At("p-10.csv"), At("p-2.csv"), At("p-[x].csv")));
  EXPECT_THAT(*FindFiles(folder_ / "p-[x].csv"), ElementsAre(At("p-[x].csv"))) << "a file of this name";
  EXPECT_THAT(*FindFiles("/absent"), ElementsAre("/absent")) << "whether it exists is found when it is opened";
  EXPECT_THAT(base::Message(FindFiles(folder_ / "r*").status()), HasSubstr("r* matches no file"));
}

TEST_F(TextFileTest, ADataSetOfSeveralFiles) {
  Write("part-2.csv.gz", Gzip("age,country,bought\n5,FR,0\n7,DE,1\n"));
  Write("part-1.csv", "bought,country,age\n1,DE,3\n0,IT,4\n");
  Write("all.csv", "bought,country,age\n1,DE,3\n0,IT,4\n0,FR,5\n1,DE,7\n");
  model::SchemaSpec schema{.categorical = {-1}, .numeric = {-1}, .header = true};
  schema.names = {.label = "bought", .categorical = {"country"}, .numeric = {"age"}};
  const auto parts = Load("part-*", schema);
  ASSERT_THAT(parts, base::IsOk());
  const auto all = Load("all.csv", schema);
  ASSERT_THAT(all, base::IsOk());
  EXPECT_EQ((*parts)->all().ids, (*all)->all().ids);
  EXPECT_EQ((*parts)->all().numerics, (*all)->all().numerics);
  EXPECT_EQ((*parts)->all().labels, (*all)->all().labels);
  const model::SchemaSpec numbers{.label_column = 0, .categorical = {1}, .numeric = {2}, .header = true};
  model::DataSpec spec;
  spec.schema = numbers;
  EXPECT_THAT(base::Message(Dataset::Load({"file:///part-*", "csv"}, spec, nullptr, {.root = folder_}).status()),
              HasSubstr("part-2.csv.gz: the header differs from that of "));
  Write("part-3.csv", "bought,country,age\n1,DE,3\n1,DE,x\n");
  EXPECT_THAT(base::Message(Load("part-*", schema).status()), HasSubstr("part-3.csv:3: column 2: 'x'"));
}

// open(2) of a pipe without a writer would never return.
TEST_F(TextFileTest, APipeIsRefusedBeforeItIsOpened) {
  const std::string pipe = (folder_ / "train.csv").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const auto refused = [](const std::string& what) {
    return base::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("it is " + what + ", not a regular file"));
  };
  EXPECT_THAT(ReadText(pipe), refused("a named pipe (FIFO)"));
  EXPECT_THAT(ForEachRecord(pipe, ',', [](std::string_view, int64_t) { return true; }), refused("a named pipe (FIFO)"));
  EXPECT_THAT(ReadText(folder_.string()), refused("a folder"));
  EXPECT_THAT(ReadText("/dev/zero"), refused("a device"));
  model::DataSpec spec;
  spec.schema.label_column = 0;
  for (const char* uri : {"file:///train.csv", "file:///tr*.csv"}) {
    EXPECT_THAT(Dataset::Load({uri, "csv"}, spec, nullptr, {.root = folder_.string()}), refused("a named pipe (FIFO)"));
  }
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (folder_ / "s").string().copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_THAT(ReadText((folder_ / "s").string()), refused("a socket"));
  close(fd);
}

// Gives `packed` in pieces of `in` bytes, and takes at most `out` bytes at a time, as TextFile does.
absl::StatusOr<std::string> Decompressed(const std::string& packed, size_t in, size_t out) {
  const std::unique_ptr<Decompressor> decompressor = MakeDecompressor(packed);
  std::string text, buffer(out, '\0');
  size_t given = 0;
  std::string_view piece;
  while (true) {
    if (piece.empty()) {
      piece = std::string_view(packed).substr(given, in);
      given += piece.size();
    }
    if (piece.empty() && decompressor->complete()) return text;
    const size_t before = piece.size();
    MEDLEY_ASSIGN_OR_RETURN(const size_t count, decompressor->Decompress(piece, buffer.data(), out));
    text.append(buffer, 0, count);
    if (count == 0 && piece.empty() && before == 0 && !decompressor->complete()) return base::DataLoss("truncated");
  }
}

// Members of all sizes, also empty ones, so that each of their ends lies at every place of a piece.
TEST(DecompressorTest, MembersOfGzipFollowEachOther) {
  std::string text, packed;
  for (size_t size = 0; size < 90; ++size) {
    const std::string member(size % 30, static_cast<char>('a' + size % 26));
    text += member;
    packed += Gzip(member);
  }
  for (const size_t in : {1u, 2u, 3u, 7u, 8u, 19u, 64u, 100'000u}) {
    for (const size_t out : {1u, 5u, 4096u}) {
      const auto read = Decompressed(packed, in, out);
      ASSERT_THAT(read, base::IsOk());
      EXPECT_EQ(*read, text) << in << " " << out;
      EXPECT_EQ(*Decompressed(packed + std::string(700, '\0'), in, out), text) << "zeros fill the last block";
    }
  }
}

TEST(DecompressorTest, EveryTruncatedFileIsRefused) {
  const std::string whole = Gzip("first, first, first") + Gzip("second, second, second");
  const size_t first = Gzip("first, first, first").size();
  for (const size_t in : {1u, 5u, 1000u}) {
    for (size_t size = 4; size < whole.size(); ++size) {
      const auto read = Decompressed(whole.substr(0, size), in, 64);
      if (size == first) {
        EXPECT_EQ(*read, "first, first, first");
      } else {
        EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss) << size << " " << in;
      }
    }
  }
}

// A header says when the file was made and on what: nothing protects that, nor the bits that fill up the last byte of
// the data.
TEST(DecompressorTest, EveryFlippedBitOfTheDataIsFound) {
  constexpr size_t kHeader = 10;
  const std::string text = "some text that is compressed, some text that is compressed";
  const std::string good = Gzip(text);
  for (size_t bit = kHeader * 8; bit < good.size() * 8; ++bit) {
    std::string damaged = good;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    const bool fills = bit / 8 == good.size() - 9;  // before checksum and length
    const auto read = Decompressed(damaged, 1000, 64);
    if (fills && read.ok()) {
      EXPECT_EQ(*read, text);
    } else {
      EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss) << bit;
    }
  }
}

}  // namespace
}  // namespace medley::worker
