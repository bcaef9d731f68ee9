// The formats of data: the only table of their names. The CRD's enumerations and rules are compared with it by a test
// (tests/unit/operator/api/data_format_test.cc); worker/data reads each kind.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace medley::model {

enum class FormatKind {
  kRows,  // text: a sample a row
  kIdx,   // one array a file, whose first axis are the samples; its header says type and shape
  kNpy,   // the same
  kRaw    // an array without a header
};

struct DataFormat {
  const char* name;  // as in manifests
  FormatKind kind;
  char delimiter = '\0';  // kRows: between two fields
};

std::span<const DataFormat> DataFormats();
// Null if there is none of this name.
const DataFormat* DataFormatNamed(std::string_view name);
// That of rows with this delimiter. Null if there is none.
const DataFormat* DataFormatDelimitedBy(char delimiter);

// Whether files of this format hold arrays. False for an unknown name.
bool HoldsArrays(std::string_view name);
// Whether they do not say their type and shape. False for an unknown name.
bool HasNoHeader(std::string_view name);

// For sentences: "csv and tsv", "idx, npy and raw", "raw".
std::string TableFormats();
std::string ArrayFormats();
std::string RawFormats();

}  // namespace medley::model
