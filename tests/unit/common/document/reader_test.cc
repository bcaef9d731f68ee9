#include "common/document/reader.h"

#include <nlohmann/json.hpp>

#include "common/base/testing/status_matchers.h"

namespace medley::document {
namespace {

using base::IsOk;
using base::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr auto kRefused = absl::StatusCode::kInvalidArgument;

// What is wrong with one read of `text`.
template <typename Body>
absl::Status After(const std::string& text, const Body& body) {
  auto reader = Reader::Parse(text);
  if (!reader.ok()) return reader.status();
  body(*reader);
  return reader->Finish();
}

TEST(ReaderTest, ReadsEveryType) {
  const auto reader = Reader::Parse(R"(
s: text
n: 2.5
i: -3
b: true
d: 1h30m
q: 16Gi
list: [a, b]
one: a
map: {x: "1", y: 2}
ints: [1, 2]
empty: []
child: {deep: {leaf: 7}}
items: [{v: 1}, {v: 2}]
nothing: null
)");
  ASSERT_THAT(reader, IsOk());
  EXPECT_EQ(reader->String("s"), "text");
  EXPECT_EQ(reader->Number("n", 0), 2.5);
  EXPECT_EQ(reader->Int("i", 0), -3);
  EXPECT_TRUE(reader->Bool("b", false));
  EXPECT_EQ(reader->Duration("d", {}), base::seconds(5400));
  EXPECT_EQ(reader->Seconds("d", 0), 5400);
  EXPECT_EQ(reader->Quantity("q", 0), 16.0 * (1 << 30));
  EXPECT_EQ(reader->Quantity("n", 0), 2.5);
  EXPECT_THAT(reader->Strings("list"), ElementsAre("a", "b"));
  EXPECT_THAT(reader->Strings("one"), ElementsAre("a"));
  EXPECT_EQ(reader->StringMap("map"), (std::map<std::string, std::string>{{"x", "1"}, {"y", "2"}}));
  std::vector<int> ints;
  reader->Read("ints", ints);
  EXPECT_THAT(ints, ElementsAre(1, 2));
  reader->Read("absent", ints);
  EXPECT_THAT(ints, ElementsAre(1, 2));
  reader->Read("empty", ints);
  EXPECT_THAT(ints, IsEmpty());
  EXPECT_EQ(reader->Child("child").Child("deep").Int("leaf", 0), 7);
  int sum = 0;
  for (const Reader& item : reader->List("items")) sum += static_cast<int>(item.Int("v", 0));
  EXPECT_EQ(sum, 3);
  EXPECT_FALSE(reader->Has("nothing"));
  EXPECT_THAT(reader->Finish(), IsOk());
}

TEST(ReaderTest, AbsentFieldsHaveTheCallersValue) {
  const auto reader = Reader::Parse("a: null");
  ASSERT_THAT(reader, IsOk());
  for (const char* field : {"a", "b"}) {
    EXPECT_EQ(reader->String(field, "x"), "x");
    EXPECT_EQ(reader->Number(field, 4), 4);
    EXPECT_EQ(reader->Seconds(field, 5), 5);
    EXPECT_THAT(reader->Strings(field, {"y"}), ElementsAre("y"));
    EXPECT_THAT(reader->List(field), IsEmpty());
    EXPECT_EQ(reader->Child(field).Child("c").Int("d", 6), 6);
    EXPECT_EQ(reader->Raw(field), nlohmann::json::object());
  }
  EXPECT_THAT(reader->Finish(), IsOk());
}

TEST(ReaderTest, TheFirstErrorNamesItsPath) {
  const std::string text = "a: {b: [{c: x}, 3]}\nn: -1\nd: soon\n";
  const auto b0 = [](const Reader& root) { return root.Child("a").List("b").at(0); };
  EXPECT_THAT(After(text, [](const Reader& r) { r.Child("a").List("b"); }),
              StatusIs(kRefused, "a.b[1]: must be an object, is 3"));
  const std::string good = "a: {b: [{c: x}]}\nn: -1\nd: soon\n";
  EXPECT_THAT(After(good, [&](const Reader& r) { b0(r).Int("c", 0); }),
              StatusIs(kRefused, "a.b[0].c: must be an integer, is \"x\""));
  EXPECT_THAT(After(good, [&](const Reader& r) { b0(r).Fail("c", "is x"); }), StatusIs(kRefused, "a.b[0].c: is x"));
  EXPECT_THAT(After(good, [](const Reader& r) { r.Child("n"); }), StatusIs(kRefused, "n: must be an object, is -1"));
  EXPECT_THAT(After(good, [](const Reader& r) { r.Duration("d", {}); }),
              StatusIs(kRefused, HasSubstr("d: 'soon' is not a duration")));
  EXPECT_THAT(After(good, [](const Reader& r) { r.RequiredString("z"); }), StatusIs(kRefused, "z: is required"));
  EXPECT_THAT(After("z: ''", [](const Reader& r) { r.RequiredString("z"); }),
              StatusIs(kRefused, "z: must not be empty"));
  EXPECT_THAT(After(good, [](const Reader& r) { r.Require({"n", "y"}); }), StatusIs(kRefused, "y: is required"));
  // Later errors do not replace the first.
  EXPECT_THAT(After(good, [](const Reader& r) { r.Bool("n", true), r.String("n"); }),
              StatusIs(kRefused, "n: must be true or false, is -1"));
  EXPECT_THAT(Reader::Parse("[1]"), StatusIs(kRefused, "the document: must be an object, is [1]"));
  EXPECT_THAT(Reader::Parse("[1]", "scenario"), StatusIs(kRefused, "scenario: must be an object, is [1]"));
}

TEST(ReaderTest, IntegersMustFitTheirType) {
  const std::string text = "big: 18446744073709551615\nneg: -1\nint: 2147483648\nreal: 3.0\nlist: [1, 300]\n";
  const auto reader = Reader::Parse(text);
  ASSERT_THAT(reader, IsOk());
  uint64_t big = 0;
  reader->Read("big", big);
  EXPECT_EQ(big, 18446744073709551615u);
  int64_t neg = 0;
  reader->Read("neg", neg);
  EXPECT_EQ(neg, -1);
  EXPECT_THAT(reader->status(), IsOk());
  EXPECT_THAT(After(text,
                    [](const Reader& r) {
                      uint64_t out = 0;
                      r.Read("neg", out);
                      EXPECT_EQ(out, 0u);
                    }),
              StatusIs(kRefused, "neg: must be an integer in [0, 18446744073709551615], is -1"));
  EXPECT_THAT(After(text,
                    [](const Reader& r) {
                      int out = 5;
                      r.Read("int", out);
                      EXPECT_EQ(out, 5);
                    }),
              StatusIs(kRefused, "int: must be an integer in [-2147483648, 2147483647], is 2147483648"));
  EXPECT_THAT(After(text, [](const Reader& r) { r.Int("big", 0); }), StatusIs(kRefused, HasSubstr("big: must be")));
  EXPECT_THAT(After(text, [](const Reader& r) { r.Int("real", 0); }),
              StatusIs(kRefused, "real: must be an integer, is 3.0"));
  EXPECT_THAT(After(text,
                    [](const Reader& r) {
                      std::vector<int8_t> out;
                      r.Read("list", out);
                    }),
              StatusIs(kRefused, "list[1]: must be an integer in [-128, 127], is 300"));
}

TEST(ReaderTest, UnknownFieldsHaveTheirFullPath) {
  const std::string text = "a: {b: [{c: 1}, {c: 2, d: 3}]}\ne: {f: {g: 1}}\n";
  const auto read_all = [](const Reader& root) {
    for (const Reader& b : root.Child("a").List("b")) b.Int("c", 0);
  };
  EXPECT_THAT(After(text, read_all), StatusIs(kRefused, "a.b[1].d: unknown field"));
  EXPECT_THAT(After(text, [](const Reader&) {}), StatusIs(kRefused, "a: unknown field"));
  EXPECT_THAT(After(text,
                    [&](const Reader& root) {
                      read_all(root);
                      root.Child("a").List("b").at(1).Int("d", 0);
                      EXPECT_THAT(root.Child("a").Finish(), IsOk());
                      root.Raw("e");
                    }),
              IsOk());
  EXPECT_THAT(After("x: null", [](const Reader&) {}), StatusIs(kRefused, "x: unknown field"));
  // The closest of the fields that were looked for in that object.
  EXPECT_THAT(After("feeds: [{name: a, perod: 3s}]",
                    [](const Reader& root) {
                      root.String("period");
                      for (const Reader& feed : root.List("feeds")) {
                        feed.RequiredString("name");
                        feed.Duration("period", base::seconds(1));
                      }
                    }),
              StatusIs(kRefused, "feeds[0].perod: unknown field; did you mean `period`?"));
  // In a borrowed tree nothing is unknown.
  const nlohmann::json tree = {{"a", 1}, {"b", "2"}};
  const Reader reader(tree, "status");
  EXPECT_EQ(reader.Int("a", 0), 1);
  EXPECT_THAT(reader.Finish(), IsOk());
  reader.Int("b", 0);
  EXPECT_THAT(reader.Finish(), StatusIs(kRefused, "status.b: must be an integer, is \"2\""));
}

TEST(ReaderTest, ACopySharesTheRecordAndOutlivesItsRoot) {
  std::vector<Reader> kept;
  {
    auto root = Reader::Parse("a: [{b: x}]");
    ASSERT_THAT(root, IsOk());
    kept = root->List("a");
  }
  EXPECT_EQ(kept.at(0).String("b"), "x");
  EXPECT_THAT(kept.at(0).Finish(), IsOk());
}

}  // namespace
}  // namespace medley::document
