#include "common/model/data_format.h"

#include <algorithm>
#include <array>
#include <vector>

namespace medley::model {
namespace {

constexpr std::array kDataFormats = std::to_array<DataFormat>({
    {"csv", FormatKind::kRows, ','},
    {"tsv", FormatKind::kRows, '\t'},
    {"libsvm", FormatKind::kPairs, ' ', HeaderRule::kNever},
    {"parquet", FormatKind::kColumns, ',', HeaderRule::kAlways},
    {"arrow", FormatKind::kColumns, ',', HeaderRule::kAlways},
    {"idx", FormatKind::kIdx},
    {"npy", FormatKind::kNpy},
    {"raw", FormatKind::kRaw},
});

// "a, b and c".
std::string NamesOf(bool (*chosen)(std::string_view name)) {
  std::vector<std::string> names;
  for (const DataFormat& format : kDataFormats) {
    if (chosen(format.name)) names.emplace_back(format.name);
  }
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  }
  return text;
}

}  // namespace

std::span<const DataFormat> DataFormats() { return kDataFormats; }

const DataFormat* DataFormatNamed(std::string_view name) {
  const auto found = std::ranges::find(kDataFormats, name, &DataFormat::name);
  return found == kDataFormats.end() ? nullptr : &*found;
}

const DataFormat* DataFormatDelimitedBy(char delimiter) {
  const auto found = std::ranges::find_if(kDataFormats, [&](const DataFormat& format) {
    return (format.kind == FormatKind::kRows || format.kind == FormatKind::kPairs) && format.delimiter == delimiter;
  });
  return found == kDataFormats.end() ? nullptr : &*found;
}

bool IsReadable(std::string_view uri) {
  constexpr std::string_view kBeginnings[] = {"file:///", "s3://", "gs://", "https://"};
  return std::ranges::any_of(kBeginnings, [&](std::string_view each) { return uri.starts_with(each); });
}

bool HoldsArrays(std::string_view name) {
  const DataFormat* const format = DataFormatNamed(name);
  return format != nullptr &&
         (format->kind == FormatKind::kIdx || format->kind == FormatKind::kNpy || format->kind == FormatKind::kRaw);
}

bool HasNoHeader(std::string_view name) {
  const DataFormat* const format = DataFormatNamed(name);
  return format != nullptr && format->kind == FormatKind::kRaw;
}

std::string TableFormats() {
  return NamesOf([](std::string_view name) { return !HoldsArrays(name); });
}

}  // namespace medley::model
