#include "worker/columns/open_columns.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>

#include "common/base/memory_limit.h"
#include "common/base/status.h"

namespace medley::worker {
namespace {

constexpr const char* kLibrary = "libmedley-columns.so";
constexpr int64_t kLeastMemory = int64_t{256} << 20;

// The function of the library, or why there is none. It stays loaded.
absl::StatusOr<OpenColumnsFunction> LoadLibrary() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  std::string why;
  for (const char* const folder : {".", "../lib", "../bin"}) {
    const std::filesystem::path path = program.parent_path() / folder / kLibrary;
    if (!std::filesystem::exists(path, error)) continue;
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* const function = library == nullptr ? nullptr : dlsym(library, kOpenColumnsName);
    if (function != nullptr) return reinterpret_cast<OpenColumnsFunction>(function);
    const char* const said = dlerror();
    why = said == nullptr ? "it has no function of this name" : said;
    break;
  }
  return base::Unimplemented(
      "this Medley has no reader of Parquet and Arrow files{}: build it with `./dev setup parquet` and "
      "`./dev programs`, or write the table as CSV (with pandas: read_parquet(...).to_csv(..., index=False))",
      why.empty() ? "" : " (" + why + ")");
}

const absl::StatusOr<OpenColumnsFunction>& Library() {
  static const absl::StatusOr<OpenColumnsFunction> kLoaded = LoadLibrary();
  return kLoaded;
}

}  // namespace

ColumnFormat ColumnFormatOf(std::string_view beginning) {
  beginning = beginning.substr(0, 512);
  // The length of the metadata of a stream follows as four bytes, of which the last is small.
  if (beginning.starts_with("\xff\xff\xff\xff") && beginning.size() >= 8 && beginning[7] == 0)
    return ColumnFormat::kArrow;
  if (std::ranges::none_of(beginning, [](char c) { return static_cast<unsigned char>(c) < 9; })) {
    return ColumnFormat::kNone;
  }
  if (beginning.starts_with("PAR1")) return ColumnFormat::kParquet;
  return beginning.starts_with("ARROW1") ? ColumnFormat::kArrow : ColumnFormat::kNone;
}

absl::StatusOr<std::unique_ptr<ColumnFile>> OpenColumns(int file, const std::string& name, ColumnFormat format,
                                                        int threads) {
  const bool parquet = format == ColumnFormat::kParquet;
  const auto& library = Library();
  if (!library.ok()) return base::Annotate(library.status(), name);
  std::string error;
  std::unique_ptr<ColumnFile> columns((*library)(
      file, {.parquet = parquet, .threads = threads, .most_bytes = std::max(kLeastMemory, base::MemoryLimit() / 4)},
      error));
  if (columns == nullptr) {
    return base::InvalidArgument("{}: the {} file cannot be read: {}", name, parquet ? "Parquet" : "Arrow", error);
  }
  return columns;
}

}  // namespace medley::worker
