#include "worker/exported/archive.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "common/base/hash.h"
#include "common/base/status.h"
#include "worker/exported/pickle.h"
#include "worker/exported/program_json.h"
#include "worker/exported/zip.h"

namespace medley::worker::exported {
namespace {

constexpr char kFlatProgram[] = "serialized_exported_program.json";
constexpr char kPt2Program[] = "models/model.json";  // in the archive's folder

// A file that is mapped as long as this lives.
class Mapping {
 public:
  Mapping(void* data, size_t size) : data_(data), size_(size) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { ::munmap(data_, size_); }

  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }

 private:
  void* const data_;
  const size_t size_;
};

absl::StatusOr<std::shared_ptr<const Mapping>> Map(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    return base::NotFound("reading the model {}: it cannot be opened: {}", path,
                          std::generic_category().message(errno));
  struct stat status {};
  const bool regular = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
  void* data =
      regular ? ::mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
  const int error = errno;
  ::close(file);
  if (!regular) return base::InvalidArgument("reading the model {}: it is empty or no regular file", path);
  if (data == MAP_FAILED)
    return base::Internal("reading the model {}: it cannot be mapped: {}", path,
                          std::generic_category().message(error));
  return std::make_shared<const Mapping>(data, static_cast<size_t>(status.st_size));
}

// The folder in which all entries of a PT2 archive are: "model/"; empty if they have no common one.
std::string FolderOf(const Zip& zip) {
  const std::string& first = zip.entries().begin()->first;
  const size_t slash = first.find('/');
  if (slash == std::string::npos) return "";
  const std::string folder = first.substr(0, slash + 1);
  for (const auto& [name, entry] : zip.entries()) {
    if (!name.starts_with(folder)) return "";
  }
  return folder;
}

absl::Status CheckByteOrder(const Zip& zip, const std::string& folder) {
  if (zip.Find(folder + "byteorder") == nullptr) return absl::OkStatus();
  MEDLEY_ASSIGN_OR_RETURN(const std::string order, zip.Read(folder + "byteorder", 16));
  if (order == "little") return absl::OkStatus();
  return base::Unimplemented("the archive's numbers are in the byte order '{}'", order);
}

// The number of storages so far.
int StoragesOf(const Program& program) {
  int storages = 0;
  for (const auto& [name, tensor] : program.stored) storages = std::max(storages, tensor.storage + 1);
  return storages;
}

// The tensors of a JSON config and the files beside it (the layout since PyTorch 2.9).
absl::Status ReadConfig(const Zip& zip, const std::string& folder, const std::string& config,
                        const ReadOptions& options, Program& program) {
  if (zip.Find(folder + config) == nullptr) return absl::OkStatus();
  MEDLEY_ASSIGN_OR_RETURN(const std::string text,
                          zip.Read(folder + config, static_cast<size_t>(options.most_json_bytes)));
  MEDLEY_ASSIGN_OR_RETURN(const nlohmann::json json, ParseStrict(text, config));
  const auto tensors = json.is_object() ? json.find("config") : json.end();
  if (tensors == json.end() || !tensors->is_object()) return base::InvalidArgument("{}: it has no 'config'", config);
  std::map<std::string, int> storages;  // by entry
  const int first = StoragesOf(program);
  for (const auto& [name, entry] : tensors->items()) {
    const auto path = entry.is_object() ? entry.find("path_name") : entry.end();
    const auto meta = entry.is_object() ? entry.find("tensor_meta") : entry.end();
    if (path == entry.end() || !path->is_string())
      return base::InvalidArgument("{}: '{}' has no 'path_name'", config, name);
    if (entry.value("use_pickle", false)) {
      return base::Unimplemented("the tensor '{}' of the archive is pickled in a way that is not read", name);
    }
    if (meta == entry.end() || meta->is_null()) continue;  // a custom object
    MEDLEY_ASSIGN_OR_RETURN(StoredTensor tensor, ParseStored(*meta, name));
    const std::string file = folder + config.substr(0, config.rfind('/') + 1) + path->get<std::string>();
    const Zip::Entry* stored = zip.Find(file);
    if (stored == nullptr || stored->deflated) {
      return base::InvalidArgument("the archive has no '{}', or has it compressed, for the tensor '{}'", file, name);
    }
    tensor.bytes = tensor.entry = stored->stored;
    tensor.checksum = stored->crc;
    tensor.storage = first + storages.try_emplace(file, static_cast<int>(storages.size())).first->second;
    MEDLEY_RETURN_IF_ERROR(CheckStored(tensor, name));
    program.stored[name] = std::move(tensor);
  }
  return absl::OkStatus();
}

// The tensors of an entry that torch.save wrote: a zip file of its own, with data.pkl and the storages data/KEY. It is
// not compressed, so the storages are used where they are.
absl::Status ReadPickled(const Zip& zip, const std::string& entry, const ReadOptions& options, Program& program) {
  const Zip::Entry* file = zip.Find(entry);
  if (file == nullptr || file->size == 0) return absl::OkStatus();  // older versions write an empty file for no tensors
  const auto annotate = [&](const absl::Status& status) { return base::Annotate(status, entry); };
  if (file->deflated) return base::InvalidArgument("{}: it is compressed, so its tensors cannot be used", entry);
  const absl::StatusOr<Zip> inner = Zip::Open(file->stored);
  if (!inner.ok()) return annotate(inner.status());
  if (inner->entries().empty()) return base::InvalidArgument("{}: it is empty", entry);
  const std::string folder = FolderOf(*inner);
  if (const absl::Status order = CheckByteOrder(*inner, folder); !order.ok()) return annotate(order);
  const auto pickle = inner->Read(folder + "data.pkl", static_cast<size_t>(options.most_json_bytes));
  if (!pickle.ok()) return annotate(pickle.status());
  auto tensors = ReadPickledTensors(*pickle);
  if (!tensors.ok()) return annotate(tensors.status());
  std::map<std::string, int> storages;  // by key
  const int first = StoragesOf(program);
  for (auto& [name, pickled] : *tensors) {
    const Zip::Entry* data = inner->Find(folder + "data/" + pickled.key);
    StoredTensor& tensor = pickled.tensor;
    int64_t bytes = 0;
    if (data == nullptr || data->deflated || pickled.elements < 0 ||
        __builtin_mul_overflow(pickled.elements, static_cast<int64_t>(BytesOf(tensor.type)), &bytes) ||
        static_cast<uint64_t>(bytes) > data->stored.size()) {
      return base::InvalidArgument("{}: the storage of '{}' is missing, too small or compressed", entry, name);
    }
    tensor.bytes = data->stored.first(static_cast<size_t>(bytes));
    tensor.entry = data->stored;
    tensor.checksum = data->crc;
    tensor.storage = first + storages.try_emplace(pickled.key, static_cast<int>(storages.size())).first->second;
    MEDLEY_RETURN_IF_ERROR(CheckStored(tensor, name));
    program.stored[name] = std::move(tensor);
  }
  return absl::OkStatus();
}

// Every parameter, buffer and constant of the signature has a tensor of its shape and type.
absl::Status CheckSignature(const Program& program) {
  for (const Input& input : program.inputs) {
    if (input.kind == InputKind::kUser) continue;
    const auto stored = program.stored.find(input.name);
    if (stored == program.stored.end()) return base::InvalidArgument("the archive has no tensor for '{}'", input.name);
    const TensorMeta& meta = program.tensors.at(input.value);
    bool same = meta.type == stored->second.type && meta.sizes.size() == stored->second.sizes.size();
    for (size_t i = 0; same && i < meta.sizes.size(); ++i) {
      same = meta.sizes[i].expression.empty() && meta.sizes[i].value == stored->second.sizes[i];
    }
    if (!same)
      return base::InvalidArgument("the stored tensor '{}' has another shape or type than the graph says", input.name);
  }
  return absl::OkStatus();
}

// A flat zip with pickled weights, as PyTorch 2.5 to 2.7 write it.
absl::StatusOr<Program> ReadFlat(const Zip& zip, const ReadOptions& options) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string json, zip.Read(kFlatProgram, static_cast<size_t>(options.most_json_bytes)));
  MEDLEY_ASSIGN_OR_RETURN(Program program, ParseProgram(json, options));
  MEDLEY_RETURN_IF_ERROR(ReadPickled(zip, "serialized_state_dict.pt", options, program));
  MEDLEY_RETURN_IF_ERROR(ReadPickled(zip, "serialized_constants.pt", options, program));
  return program;
}

// A PT2 archive, whose weights are pickled (2.8) or raw, with a config (since 2.9).
absl::StatusOr<Program> ReadPt2(const Zip& zip, const std::string& folder, const ReadOptions& options) {
  MEDLEY_RETURN_IF_ERROR(CheckByteOrder(zip, folder));
  MEDLEY_ASSIGN_OR_RETURN(const std::string json,
                          zip.Read(folder + kPt2Program, static_cast<size_t>(options.most_json_bytes)));
  MEDLEY_ASSIGN_OR_RETURN(Program program, ParseProgram(json, options));
  for (const char* part : {"data/weights/model", "data/constants/model"}) {
    const std::string kind = std::string(part).find("weights") != std::string::npos ? "weights" : "constants";
    MEDLEY_RETURN_IF_ERROR(ReadConfig(zip, folder, fmt::format("{}_{}_config.json", part, kind), options, program));
    MEDLEY_RETURN_IF_ERROR(ReadPickled(zip, fmt::format("{}{}.pt", folder, part), options, program));
  }
  return program;
}

absl::StatusOr<Program> Read(const Zip& zip, const ReadOptions& options) {
  if (zip.entries().empty()) return base::InvalidArgument("the archive is empty");
  const std::string folder = FolderOf(zip);
  const bool flat = zip.Find(kFlatProgram) != nullptr;
  if (!flat && zip.Find(folder + kPt2Program) == nullptr) {
    return base::InvalidArgument("it is no archive of torch.export.save: it has neither {} nor {}", kPt2Program,
                                 kFlatProgram);
  }
  MEDLEY_ASSIGN_OR_RETURN(Program program, flat ? ReadFlat(zip, options) : ReadPt2(zip, folder, options));
  MEDLEY_RETURN_IF_ERROR(CheckSignature(program));
  return program;
}

std::string DigestOf(const Zip& zip) {
  std::string directory;
  for (const auto& [name, entry] : zip.entries()) directory += fmt::format("{}/{}/{};", name, entry.size, entry.crc);
  return base::HashHex(directory);
}

// `keeper` keeps the bytes.
absl::StatusOr<Program> ReadNamed(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper,
                                  const std::string& name, const ReadOptions& options) {
  const auto annotate = [&](const absl::Status& status) { return base::Annotate(status, "reading the model " + name); };
  const absl::StatusOr<Zip> zip = Zip::Open(bytes);
  if (!zip.ok()) return annotate(zip.status());
  absl::StatusOr<Program> program = Read(*zip, options);
  if (!program.ok()) return annotate(program.status());
  program->digest = DigestOf(*zip);
  program->mapping = std::move(keeper);
  return program;
}

}  // namespace

absl::StatusOr<Program> ReadArchive(const std::string& path, const ReadOptions& options) {
  MEDLEY_ASSIGN_OR_RETURN(const std::shared_ptr<const Mapping> mapping, Map(path));
  absl::StatusOr<Program> program = ReadNamed(mapping->bytes(), mapping, path, options);
  if (program.ok()) program->in_file = true;
  return program;
}

absl::StatusOr<Program> ReadArchiveBytes(std::shared_ptr<const std::string> archive, const std::string& name,
                                         const ReadOptions& options) {
  return ReadNamed(std::as_bytes(std::span(*archive)), archive, name, options);
}

void LetGo(const Program& program, const StoredTensor& tensor) {
  if (!program.in_file || tensor.entry.empty()) return;
  // Whole pages: others may hold a neighbour, which is read again too.
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(tensor.entry.data()) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(tensor.entry.data() + tensor.entry.size());
  ::madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

absl::Status CheckContents(const StoredTensor& tensor, const std::string& name) {
  const auto found = crc32_z(0, reinterpret_cast<const Bytef*>(tensor.entry.data()), tensor.entry.size());
  if (found == tensor.checksum) return absl::OkStatus();
  return base::InvalidArgument("the tensor '{}' of the model's archive is damaged: its checksum is wrong", name);
}

}  // namespace medley::worker::exported
