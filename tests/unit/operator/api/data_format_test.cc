// The definitions name the formats of data in enumerations, rules and sentences: all of them agree with the one table.
#include "common/model/data_format.h"

#include <gmock/gmock.h>
#include <re2/re2.h>

#include <set>

#include "tests/unit/operator/api/manifest_cases.h"

namespace medley::ops {
namespace {

using kube::Json;
using testing::AnyOf;

std::set<std::string> Names(bool arrays) {
  std::set<std::string> names;
  for (const model::DataFormat& format : model::DataFormats()) {
    if (model::HoldsArrays(format.name) == arrays) names.insert(format.name);
  }
  return names;
}

std::set<std::string> NamesWith(model::HeaderRule rule) {
  std::set<std::string> names;
  for (const model::DataFormat& format : model::DataFormats()) {
    if (format.header == rule) names.insert(format.name);
  }
  return names;
}

// The words of a list such as "'csv', 'tsv'" or "idx, npy and raw".
std::set<std::string> Words(std::string_view list) {
  std::set<std::string> words;
  re2::StringPiece rest(list.data(), list.size());
  std::string word;
  while (RE2::FindAndConsume(&rest, R"((\w+))", &word)) {
    if (word != "and") words.insert(word);
  }
  return words;
}

void AddTexts(const Json& value, std::vector<std::string>& texts) {
  if (value.is_string()) texts.push_back(value.get<std::string>());
  for (const Json& part : value.is_structured() ? value : Json::array()) AddTexts(part, texts);
}

TEST(DataFormatTest, EveryEnumerationOfTheDefinitionsHasTheFormatsOfTheTable) {
  const Json spec =
      LoadYaml("deploy/crds/trainingjobs.yaml")
          .at(Json::json_pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/data/properties"));
  std::vector<std::string> table;
  for (const model::DataFormat& format : model::DataFormats()) table.push_back(format.name);
  int found = 0;
  for (const auto& [name, source] : spec.items()) {
    if (!source.contains("properties") || !source["properties"].contains("format")) continue;
    ++found;
    EXPECT_EQ(source["properties"]["format"]["enum"], Json(table)) << "spec.data." << name;
  }
  EXPECT_EQ(found, 3);
}

// Those of the header name the formats that have one always, or never.
TEST(DataFormatTest, RulesAndSentencesNameAllTablesOrAllArrays) {
  std::vector<std::string> texts;
  AddTexts(LoadYaml("deploy/crds/trainingjobs.yaml"), texts);
  const std::set<std::string> tables = Names(false), arrays = Names(true);
  int rules = 0, sentences = 0, with_header = 0, without_header = 0;
  for (const std::string& text : texts) {
    re2::StringPiece rest(text);
    std::string list;
    while (RE2::FindAndConsume(&rest, R"(format in \[([^\]]*)\])", &list)) {
      ++rules;
      const bool of_header = text.starts_with("!(self.train.format") && text.find("schema.header") != std::string::npos;
      if (of_header) {
        const bool never = text.ends_with("!self.schema.header");
        EXPECT_EQ(Words(list), NamesWith(never ? model::HeaderRule::kNever : model::HeaderRule::kAlways)) << text;
        (never ? without_header : with_header) += 1;
      } else {
        EXPECT_THAT(Words(list), AnyOf(tables, arrays)) << text;
      }
    }
    rest = re2::StringPiece(text);
    while (RE2::FindAndConsume(
        &rest, R"((?:formats|For) ((?:csv|tsv|libsvm|parquet|arrow|idx|npy|raw)(?:, \w+)* and \w+))", &list)) {
      ++sentences;
      EXPECT_THAT(Words(list), AnyOf(tables, arrays, NamesWith(model::HeaderRule::kAlways))) << text;
    }
  }
  EXPECT_GT(rules, 10);
  EXPECT_EQ(with_header, 3) << "train, test and validation";
  EXPECT_EQ(without_header, 3);
  EXPECT_GT(sentences, 5);
}

TEST(DataFormatTest, NamesAreFoundAndListed) {
  EXPECT_EQ(model::TableFormats(), "csv, tsv, libsvm, parquet and arrow");
  EXPECT_EQ(model::DataFormatNamed("orc"), nullptr);
  EXPECT_FALSE(model::HoldsArrays("orc") || model::HoldsArrays("") || model::HasNoHeader("npy"));
  EXPECT_STREQ(model::DataFormatDelimitedBy('\t')->name, "tsv");
  EXPECT_STREQ(model::DataFormatDelimitedBy(' ')->name, "libsvm");
  EXPECT_EQ(model::DataFormatDelimitedBy(';'), nullptr);
  EXPECT_EQ(model::DataFormatDelimitedBy('\0'), nullptr) << "arrays have none";
}

}  // namespace
}  // namespace medley::ops
