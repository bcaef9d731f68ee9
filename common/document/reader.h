// Reads the fields of an object by type, and records the first error with the path of its field.
//
//   MEDLEY_ASSIGN_OR_RETURN(document::Reader root, document::Reader::Parse(text));
//   for (const document::Reader& feed : root.List("feeds")) {
//     const std::string url = feed.RequiredString("url");
//     const base::nanoseconds period = feed.Duration("period", base::seconds(60));
//   }
//   MEDLEY_RETURN_IF_ERROR(root.Finish());  // "feeds[1].period: must be a string", "feeds[0].name: unknown field"
//
// A field that is absent or null has the default that the caller passes. So does a field of a wrong type, and the error
// is recorded, so that a caller checks for errors once, at the end. Readers of children share the record of their root.
// Not thread-safe.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <concepts>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/document/parse.h"

namespace medley::document {

class Reader {
 public:
  // Parses a document, which must be an object. The reader owns it, and Finish refuses fields that were not read.
  // Errors: those of parse.h.
  static absl::StatusOr<Reader> Parse(std::string_view text, std::string path = "");
  // Borrows `tree`. Finish accepts unknown fields, because the writer of the tree may be newer than this program. A
  // tree that is not an object has no fields. `path` is the prefix of the paths in errors.
  explicit Reader(const nlohmann::json& tree, std::string path = "");

  // "feeds[1]"; empty for the document.
  const std::string& path() const { return path_; }
  // The value itself, for content that no function below reads. The call does not count as reading it.
  const nlohmann::json& tree() const { return *tree_; }
  // True when the field is present and not null. The call counts as reading it.
  bool Has(std::string_view field) const { return Find(field) != nullptr; }
  // Records an error when one of these fields is absent.
  void Require(std::initializer_list<std::string_view> fields) const;

  std::string RequiredString(std::string_view field) const;  // not empty
  std::string String(std::string_view field, std::string otherwise = "") const;
  double Number(std::string_view field, double otherwise) const;  // finite
  int64_t Int(std::string_view field, int64_t otherwise) const;
  bool Bool(std::string_view field, bool otherwise) const;
  // Go durations as strings: 90s, 1h30m. Seconds returns the number of seconds.
  base::nanoseconds Duration(std::string_view field, base::nanoseconds otherwise) const;
  double Seconds(std::string_view field, double otherwise) const;
  // A Kubernetes quantity ("2.5", "16Gi") or a number.
  double Quantity(std::string_view field, double otherwise) const;
  // An object of strings and numbers, which become text; empty when absent.
  std::map<std::string, std::string> StringMap(std::string_view field) const;
  // A list of strings, or a string for a list of one. An empty string is an error.
  std::vector<std::string> Strings(std::string_view field, std::vector<std::string> otherwise = {}) const;
  // The value without a check of its type; an empty object when absent.
  nlohmann::json Raw(std::string_view field) const;

  // The same, into `out`, which keeps its value when the field is absent or of a wrong type. Integers must fit their
  // type.
  void Read(std::string_view field, std::string& out) const;
  void Read(std::string_view field, bool& out) const;
  void Read(std::string_view field, double& out) const;
  void Read(std::string_view field, std::vector<double>& out) const;
  template <std::integral Int>
  void Read(std::string_view field, Int& out) const {
    if (const nlohmann::json* value = Find(field)) ReadInteger(value, Path(field), out);
  }
  template <std::integral Int>
  void Read(std::string_view field, std::vector<Int>& out) const {
    const auto items = Items(field, "a list of integers");
    if (!items) return;
    out.clear();
    for (size_t i = 0; i < items->size(); ++i) ReadInteger((*items)[i], ItemPath(field, i), out.emplace_back());
  }

  // The object under `field`; without fields when it is absent or of another type.
  Reader Child(std::string_view field) const;
  // The objects of a list; empty when absent.
  std::vector<Reader> List(std::string_view field) const;

  // Records an error of the caller's own about a field: "PATH.FIELD: MESSAGE".
  void Fail(std::string_view field, std::string_view message) const;
  // The first error of the whole document so far.
  const absl::Status& status() const;
  // The first error, or else an error for the first field below this reader that was not read, with the name of the
  // closest field that was looked for in its object.
  absl::Status Finish() const;

 private:
  struct Record;
  Reader(std::shared_ptr<Record> record, const nlohmann::json* tree, std::string path)
      : record_(std::move(record)), tree_(tree), path_(std::move(path)) {}

  // Returns null when the field is absent or null. The field counts as read; with `whole`, so does everything below it.
  const nlohmann::json* Find(std::string_view field, bool whole = false) const;
  // The elements of a list, all of which count as read. nullopt when the field is absent, or when it is not a list,
  // which is recorded.
  std::optional<std::vector<const nlohmann::json*>> Items(std::string_view field, std::string_view what) const;
  std::string Path(std::string_view field) const;
  std::string ItemPath(std::string_view field, size_t index) const;
  void Refuse(const std::string& path, std::string_view want, const nlohmann::json& value) const;
  absl::Status Unread(const nlohmann::json& tree, const std::string& path) const;

  template <std::integral Int>
  void ReadInteger(const nlohmann::json* value, const std::string& path, Int& out) const {
    uint64_t bits = 0;
    const auto least = static_cast<int64_t>(std::numeric_limits<Int>::min());
    if (IntegerBits(value, path, least, std::numeric_limits<Int>::max(), bits)) out = static_cast<Int>(bits);
  }
  // Two's complement of an integer within [least, most].
  bool IntegerBits(const nlohmann::json* value, const std::string& path, int64_t least, uint64_t most,
                   uint64_t& bits) const;

  std::shared_ptr<Record> record_;
  const nlohmann::json* tree_;
  std::string path_;
};

}  // namespace medley::document
