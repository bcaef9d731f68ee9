// The formats of data: the only table of their names. The CRD's enumerations and rules are compared with it by a test
// (tests/unit/operator/api/data_format_test.cc); worker/data reads each kind.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace medley::model {

enum class FormatKind {
  kRows,     // text: a sample a row, whose fields have a character between them
  kPairs,    // text: a label and pairs INDEX:VALUE a row; features that a row does not name are 0
  kColumns,  // a table whose files hold its columns, with their names and types
  kIdx,      // one array a file, whose first axis are the samples; its header says type and shape
  kNpy,      // the same
  kRaw       // an array without a header
};

// Whether a table may have, must not have or has names of its columns (spec.data.schema.header).
enum class HeaderRule { kEither, kNever, kAlways };

struct DataFormat {
  const char* name;  // as in manifests
  FormatKind kind;
  char delimiter = '\0';  // tables: between two fields; it tells the formats of text apart
  HeaderRule header = HeaderRule::kEither;
};

std::span<const DataFormat> DataFormats();
// Null if there is none of this name.
const DataFormat* DataFormatNamed(std::string_view name);
// That of text with this delimiter. Null if there is none.
const DataFormat* DataFormatDelimitedBy(char delimiter);

// Whether files of this format hold arrays. False for an unknown name.
bool HoldsArrays(std::string_view name);
// Whether they do not say their type and shape. False for an unknown name.
bool HasNoHeader(std::string_view name);

// Whether pods can read what the URI names: it begins with file:///, s3://, gs:// or https://.
bool IsReadable(std::string_view uri);
// What such a URI begins with, for sentences: "file:///, s3://, gs:// or https://".
inline constexpr char kReadablePlaces[] = "file:///, s3://, gs:// or https://";

// For sentences: "csv, tsv, libsvm, parquet and arrow".
std::string TableFormats();

}  // namespace medley::model
