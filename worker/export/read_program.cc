#include "worker/export/read_program.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "common/base/file.h"
#include "common/base/status.h"
#include "worker/exported/archive.h"
#include "worker/model/imported_graph.h"
#include "worker/torchscript/read.h"

namespace medley::worker {
namespace {

constexpr size_t kScheme = 7;  // file://, which Validate has checked

absl::StatusOr<ProgramBytes> MapFile(const std::string& path) {
  MEDLEY_ASSIGN_OR_RETURN(const int file, base::OpenRegularFile(path));
  struct stat status = {};
  const bool known = ::fstat(file, &status) == 0;
  const auto size = static_cast<size_t>(status.st_size);
  void* data = known && size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
  const int error = errno;
  ::close(file);
  if (data == MAP_FAILED) return base::ErrnoStatus(error, "mapping " + path);
  return ProgramBytes{std::shared_ptr<const void>(data, [size](void* mapped) { ::munmap(mapped, size); }),
                      {static_cast<const char*>(data), size}};
}

}  // namespace

absl::StatusOr<LoadedProgram> ReadExportedProgram(const LoadedModel& model) {
  const std::string path = (model.folder / kProgramFile).string();
  MEDLEY_ASSIGN_OR_RETURN(exported::Program program, exported::ReadArchive(path));
  model::JobSpec spec;  // of the job, as far as the graph follows from it
  spec.model.exported_uri = "file://" + path;
  spec.model.cut.depth = 0;
  spec.model.output = model.model.output;
  spec.data.schema = model.model.schema;
  spec.data.train.format = model.model.array_format;
  LoadedProgram loaded;
  auto graph = ImportedGraph(spec, std::make_shared<const exported::Program>(std::move(program)),
                             static_cast<int>(model.model.transform.label.classes.size()));
  if (!graph.ok()) return base::Annotate(graph.status(), path);
  loaded.graph = *std::move(graph);
  if (loaded.graph.Outputs() != model.model.graph.Outputs()) {
    return base::InvalidArgument("{}: the program has {} outputs a sample, {} says {}", path, loaded.graph.Outputs(),
                                 kModelFile, model.model.graph.Outputs());
  }
  const std::filesystem::path weights = model.folder / kWeightsFile;
  auto read = ReadWeights(weights, TensorsOf(loaded.graph));
  if (!read.ok()) return base::Annotate(read.status(), weights.string());
  loaded.weights = *std::move(read);
  return loaded;
}

absl::StatusOr<ProgramBytes> ReadProgramBytes(const model::JobSpec& spec, const std::string& root) {
  if (!spec.model.exported_uri.empty()) return MapFile(root + spec.model.exported_uri.substr(kScheme));
  std::vector<torchscript::SampleInput> inputs;
  for (const model::InputSpec& input : spec.data.schema.inputs) {
    inputs.push_back({input.name, input.type != "float32", input.shape});
  }
  MEDLEY_ASSIGN_OR_RETURN(const auto archive,
                          torchscript::LowerTorchScript(root + spec.model.torchscript_uri.substr(kScheme), inputs));
  return ProgramBytes{archive, *archive};
}

}  // namespace medley::worker
