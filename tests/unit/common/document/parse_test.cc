#include "common/document/parse.h"

#include <nlohmann/json.hpp>

#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"

namespace medley::document {
namespace {

using base::IsOk;
using base::StatusIs;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr uint64_t kSeed = 20261122;

std::string Repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

// Values of a tree, itself included.
size_t Values(const json& tree) {
  size_t values = 1;
  if (tree.is_structured()) {
    for (const json& child : tree) values += Values(child);
  }
  return values;
}

TEST(ParseTest, JsonAndYamlGiveTheSameTree) {
  const json tree = json::parse(R"({"a":[1,-2,2.5,18446744073709551615,true,null,"x"],"b":{"c":"1"},"d":[],"e":{}})");
  EXPECT_EQ(*Parse(tree.dump()), tree);
  EXPECT_EQ(*Parse("a: [1, -2, 2.5, 18446744073709551615, True, ~, x]\nb: {c: '1'}\nd: []\ne: {}\n"), tree);
  EXPECT_EQ(*ParseYaml(tree.dump()), tree);
  EXPECT_EQ(*ParseYaml(ToYaml(tree)), tree);
}

TEST(ParseTest, YamlScalarsFollowTheCoreSchema) {
  EXPECT_EQ(*Parse("[]"), json::array());
  EXPECT_EQ(*ParseYaml("[010, +5, .5, 1e3, 1., 0x1f, yes, 2001-01-01, 1_000, -, a b, !!str 1, \"null\"]"),
            json::parse(R"([10, 5, 0.5, 1000.0, 1.0, "0x1f", "yes", "2001-01-01", "1_000", "-", "a b", "1", "null"])"));
}

TEST(ParseTest, DuplicatesAreRefusedWithTheirPathAndPlace) {
  EXPECT_THAT(Parse("{\"a\":[{\"b\":1,\n  \"b\":2}]}"),
              StatusIs(kInvalid, "a[0].b: is given twice, at line 2, column 5"));
  EXPECT_THAT(Parse("a:\n- b: 1\n  b: 2\n"), StatusIs(kInvalid, "a[0].b: is given twice, at line 3, column 3"));
  EXPECT_THAT(Parse("a: {b: [1, 2], c: {d: 1, d: 2}}"), StatusIs(kInvalid, HasSubstr("a.c.d: is given twice")));
}

TEST(ParseTest, DuplicatesAreReportedWhereTheCallerAsks) {
  std::vector<std::string> duplicates;
  const auto tree = ParseJson(R"({"a":{"b":1,"b":2},"c":[1],"c":{"x":[{"y":0,"y":3}]}})", {}, &duplicates);
  ASSERT_THAT(tree, IsOk());
  EXPECT_THAT(duplicates, ElementsAre("a.b", "c", "c.x[0].y"));
  EXPECT_EQ(*tree, json::parse(R"({"a":{"b":2},"c":{"x":[{"y":3}]}})"));
}

// JSON can write what YAML cannot, and a file of one must mean the same as a file of the other.
TEST(ParseTest, RefusesInvalidCodePoints) {
  for (const char* text : {"{\"a\": \"\\uFFFF\"}", "{\"\\uFDD0\": 1}", "[\"x\\uD83F\\uDFFE\"]", "a: \"\\uFFFE\""}) {
    EXPECT_FALSE(Parse(text).ok()) << text;
  }
  for (const char* text : {"{\"a\": \"1.5e\\r\", \"b\\r\": \"\\u007F\\n\"}", "{\"--- a\": \"... b\"}",
                           "{\"a\": \"\\uFFFD\"}", "{\"a\": \"\\uFDCF\\uFDF0\"}", "[\"\\uD83D\\uDE00\"]"}) {
    const auto tree = Parse(text);
    ASSERT_TRUE(tree.ok()) << text;
    EXPECT_EQ(*ParseYaml(ToYaml(*tree)), *tree) << text;
  }
}

TEST(ParseTest, BrokenTextSaysWhere) {
  EXPECT_THAT(Parse("{\n  \"model\": }"), StatusIs(kInvalid, HasSubstr("broken JSON at line 2, column 12: ")));
  EXPECT_THAT(Parse("a: 1\nb: [x\n"), StatusIs(kInvalid, HasSubstr("broken YAML at line 3, column 1: ")));
  EXPECT_THAT(Parse("{\"a\": \"\xff\"}"), StatusIs(kInvalid, HasSubstr("broken JSON at line 1")));
  EXPECT_THAT(Parse("a: \"\xff\""), StatusIs(kInvalid));
  EXPECT_THAT(Parse(" \n\t"), StatusIs(kInvalid, "the document is empty"));
  EXPECT_THAT(Parse("[1] x"), StatusIs(kInvalid, HasSubstr("broken JSON")));
  EXPECT_THAT(Parse("a: 1\n---\nb: 2\n"), StatusIs(kInvalid, "more than one YAML document"));
  EXPECT_THAT(Parse("? [a, b]\n: 1"), StatusIs(kInvalid, HasSubstr("the name of a field must be a string")));
  EXPECT_THAT(Parse("a: {~: 1}"), StatusIs(kInvalid, HasSubstr("a: the name of a field must be a string")));
  EXPECT_THAT(Parse("a: !!binary Zm9v"), StatusIs(kInvalid, HasSubstr("tag:yaml.org,2002:binary are not supported")));
  EXPECT_THAT(Parse("a: !mine {b: 1}"), StatusIs(kInvalid, HasSubstr("are not supported")));
}

TEST(ParseTest, NumbersMustBeFinite) {
  for (const char* number : {".nan", ".inf", "-.INF", "1e999", "-1e999"}) {
    EXPECT_THAT(Parse(std::string("a: [1, ") + number + "]"),
                StatusIs(kInvalid, std::string("a[1]: ") + number + " is not a finite number, at line 1, column 8"));
  }
  EXPECT_THAT(Parse("{\"a\": 1e999}"), StatusIs(kInvalid, HasSubstr("broken JSON at line 1, column 11")));
  EXPECT_THAT(Parse("{\"a\": NaN}"), StatusIs(kInvalid));
  EXPECT_EQ(*Parse("a: '.nan'"), json({{"a", ".nan"}}));
  EXPECT_EQ(*ParseYaml(ToYaml({".inf", "1e999", "1", "true", ""})), json({".inf", "1e999", "1", "true", ""}));
}

TEST(ParseTest, SizeDepthAndValuesAreBounded) {
  EXPECT_THAT(Parse("a: 12345", {.bytes = 7}), StatusIs(kInvalid, "the document has 8 bytes, more than 7"));
  for (const auto& [open, close] : {std::pair{"[", "]"}, {"{\"a\":", "}"}}) {
    const std::string at_limit = Repeated(open, 64) + "[]" + Repeated(close, 64);
    EXPECT_THAT(Parse(at_limit, {.depth = 65}), IsOk());
    EXPECT_THAT(Parse(at_limit), StatusIs(kInvalid, HasSubstr("nested deeper than 64 levels")));
    EXPECT_THAT(ParseYaml(at_limit), StatusIs(kInvalid, HasSubstr("nested deeper than 64 levels")));
    EXPECT_THAT(Parse(Repeated(open, 1'000'000)), StatusIs(kInvalid, HasSubstr("nested deeper than 64 levels")));
  }
  EXPECT_THAT(ParseYaml(Repeated("- ", 10'000)), StatusIs(kInvalid, HasSubstr("nested deeper")));
  EXPECT_THAT(Parse("[1,2,3]", {.values = 4}), IsOk());
  EXPECT_THAT(Parse("[1,2,3,4]", {.values = 4}),
              StatusIs(kInvalid, HasSubstr("more than 4 values, at line 1, column")));
  EXPECT_THAT(ParseYaml("- 1\n- 2\n- 3\n- 4\n", {.values = 4}), StatusIs(kInvalid, HasSubstr("more than 4 values")));
}

TEST(ParseTest, AliasesAreExpanded) {
  EXPECT_EQ(*Parse("a: &x {b: [1, two]}\nc: [*x, *x]\nd: &y text\n*y : e\n"),
            json::parse(R"({"a":{"b":[1,"two"]},"c":[{"b":[1,"two"]},{"b":[1,"two"]}],"d":"text","text":"e"})"));
  EXPECT_THAT(Parse("a: &x [1, *x]"),
              StatusIs(kInvalid, HasSubstr("a[1]: an alias may not refer to a value that contains it")));
  EXPECT_THAT(Parse("a: *x"), StatusIs(kInvalid, HasSubstr("broken YAML")));
}

// The bombs of a few hundred bytes that once made gigabytes.
TEST(ParseTest, AliasesAddAtMostAMultipleOfTheText) {
  std::string laughs = "a: &a [x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c < 'j'; ++c) {
    laughs += fmt::format("{}: &{} [", c, c);
    for (int i = 0; i < 9; ++i) laughs += fmt::format("*{},", static_cast<char>(c - 1));
    laughs += "]\n";
  }
  EXPECT_THAT(Parse(laughs), StatusIs(kInvalid, HasSubstr("more than 16 times as large as it is, at line")));
  // One long string, many times.
  EXPECT_THAT(Parse("a: &a " + std::string(2000, 'x') + "\nb: [" + Repeated("*a,", 40) + "]"),
              StatusIs(kInvalid, HasSubstr("more than 16 times")));
  // Every level keeps a copy of all that is below it.
  const std::string nested =
      Repeated("- &n ", 1) + Repeated("[&n ", 40) + "[" + Repeated("1,", 4000) + "]" + Repeated("]", 40);
  EXPECT_THAT(ParseYaml(nested), StatusIs(kInvalid, HasSubstr("more than 16 times")));
  // Each alias is within the limit of depth, both together are not.
  const std::string deep =
      "a: &a " + Repeated("[", 40) + Repeated("]", 40) + "\nb: " + Repeated("[", 40) + "*a" + Repeated("]", 40) + "\n";
  EXPECT_THAT(Parse(deep), StatusIs(kInvalid, HasSubstr("nested deeper than 64 levels")));
}

TEST(ParseTest, AStreamHasAnyNumberOfDocuments) {
  const auto documents = ParseYamlStream("a: 1\n---\n---\n# nothing\n---\nb: 2\n");
  ASSERT_THAT(documents, IsOk());
  EXPECT_THAT(*documents, ElementsAre(json({{"a", 1}}), json({{"b", 2}})));
  EXPECT_THAT(*ParseYamlStream(""), testing::IsEmpty());
  EXPECT_THAT(ParseYamlStream("a: 1\n}"), StatusIs(kInvalid));
  EXPECT_THAT(ParseYamlStream(Repeated("--- 1\n", 1001)), StatusIs(kInvalid, "more than 1000 YAML documents"));
  EXPECT_THAT(ParseYamlStream(Repeated("--- [1, 2]\n", 4), {.values = 11}), StatusIs(kInvalid));
}

// Mutations of good text: an answer each time, within the limits, which reads back as itself.
TEST(ParseTest, MutatedTextIsReadOrRefused) {
  const std::string bases[] = {
      R"({"model":{"layers":[{"name":"emb","out":8},{"name":"fc","out":1.5}]},"x":[true,null,"\u00e9\n"],"y":-7})",
      "model: &m\n  layers:\n  - {name: emb, out: 8}\n  - name: fc\n    out: 1.5\nx: [true, ~, \"\\xe9\"]\ny: *m\n",
      "a: &a [1, 2]\nb: &b [*a, *a]\nc: [*b, *b, 'q', \"d\", |\n  text\n]\n",
  };
  const std::string alphabet = "{}[]:,-\"'&*!|>%@#?\n\t 019eE.+~truefalsnl\\u\xff\x01";
  base::Rng rng(kSeed);
  int accepted = 0;
  for (int round = 0; round < 8000; ++round) {
    std::string text = bases[rng.Below(std::size(bases))];
    for (uint64_t n = 1 + rng.Below(5); n > 0; --n) {
      const size_t at = rng.Below(text.size());
      if (rng.Below(3) == 0) {
        text.insert(at, text.substr(rng.Below(text.size()), rng.Below(30)));
      } else if (rng.Below(2) == 0) {
        text.erase(at, 1 + rng.Below(8));
      } else {
        text[at] = alphabet[rng.Below(alphabet.size())];
      }
      if (text.empty()) text = "x";
    }
    const Limits limits{.depth = 12, .values = 400};
    for (const auto& tree : {Parse(text, limits), ParseYaml(text, limits)}) {
      if (!tree.ok()) {
        ASSERT_THAT(tree, StatusIs(kInvalid)) << text;
        continue;
      }
      ++accepted;
      ASSERT_LE(Values(*tree), 400u) << text;
      ASSERT_EQ(*Parse(tree->is_structured() ? tree->dump() : "a: 1", limits),
                tree->is_structured() ? *tree : json({{"a", 1}}))
          << text;
      const auto again = ParseYaml(ToYaml(*tree), limits);
      ASSERT_THAT(again, IsOk()) << "seed " << kSeed << ", round " << round << "\n" << text << "\n" << ToYaml(*tree);
      ASSERT_EQ(*again, *tree) << "seed " << kSeed << ", round " << round << "\n" << text;
    }
  }
  EXPECT_GT(accepted, 500) << "seed " << kSeed;
}

}  // namespace
}  // namespace medley::document
