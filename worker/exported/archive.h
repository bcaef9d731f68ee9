// Reads what torch.export.save writes: `model.pt2`.
//
// Three layouts are read: a flat zip with pickled weights (PyTorch 2.5 to 2.7), the PT2 archive with pickled weights
// (2.8), and the PT2 archive with raw weights and a JSON config (since 2.9). The file may come from anybody: the reader
// is strict, executes nothing, and maps the file instead of copying it. Pickles may hold tensors, parameters and
// dictionaries, by a fixed list of opcodes and names. Sample inputs and custom objects are never opened.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "worker/exported/program.h"

namespace medley::worker::exported {

struct ReadOptions {
  int64_t most_json_bytes = 64 << 20;
  int64_t most_nodes = 200'000;
};

// Errors: NotFound; InvalidArgument that says what is wrong and where in the file (cut off, a wrong checksum, two
// entries of one name, an entry outside of the archive's folder, a compressed entry that grows too much, sizes beyond
// a storage, a value that is used before it is defined, control flow, a pickle that wants to call a function);
// Unimplemented for a schema that is newer than this reader, with the version of PyTorch that wrote it.
absl::StatusOr<Program> ReadArchive(const std::string& path, const ReadOptions& options = {});

// The same of an archive in memory, which the program keeps. `name`: of the model, for messages.
absl::StatusOr<Program> ReadArchiveBytes(std::shared_ptr<const std::string> archive, const std::string& name,
                                         const ReadOptions& options = {});

// Frees the memory of a tensor's storage, which a later use reads from the file again. Nothing where it is not in a
// file.
void LetGo(const Program& program, const StoredTensor& tensor);

// Whether a tensor's storage is as it was written. Reads all of it, which ReadArchive does not: whoever uses the tensor
// calls this. Errors: InvalidArgument for a wrong checksum.
absl::Status CheckContents(const StoredTensor& tensor, const std::string& name);

}  // namespace medley::worker::exported
