#include "worker/object_files/open_volume.h"

#include <memory>
#include <utility>

#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/object_store/object_store.h"
#include "worker/object_files/object_files.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;
using object_store::IsRemote;
using object_store::ObjectStore;

// Others wait for these requests: the coordinator answers nobody while it writes a record of the journal on which
// something depends. It tries again by itself.
constexpr object_store::Limits kQuick{.attempts = 8,
                                      .total = base::seconds(12),
                                      .silence = base::seconds(6),
                                      .first_wait = base::milliseconds(100),
                                      .most_wait = base::milliseconds(3000)};
// A part of 8 MiB takes some time on a slow connection; a checkpoint is given up after five minutes in any case.
constexpr object_store::Limits kBulk{.attempts = 8, .total = base::seconds(240), .silence = base::seconds(20)};

// Owned together, because a thread that a store holds up may outlive all else that uses them.
struct OwnedStores {
  explicit OwnedStores(const object_store::Settings& settings)
      : quick(settings, clock, base::SystemSeed(), kQuick), bulk(settings, clock, base::SystemSeed(), kBulk) {}
  base::SystemClock clock;
  ObjectStore quick;
  ObjectStore bulk;
};

absl::Status CheckAddress(const std::string& address) {
  if (!IsRemote(address)) return absl::OkStatus();
  MEDLEY_ASSIGN_OR_RETURN(const object_store::Location at, object_store::ParseLocation(address));
  if (at.scheme != object_store::Scheme::kHttps) return absl::OkStatus();
  return base::Unimplemented("{}: checkpoints are not kept on a web server: use s3:// or gs://", NameOf(at));
}

// Copies a folder, with the folders below. Files of the system have none of these names.
absl::Status FetchBelow(Files& files, const fs::path& folder, const fs::path& to, int depth) {
  if (depth > 16) return base::InvalidArgument("{}: its folders are too deep", folder.string());
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(folder));
  MEDLEY_RETURN_IF_ERROR(files.CreateFolder(to));
  for (const std::string& name : names) {
    if (name == "." || name == ".." || name.find('/') != std::string::npos) {
      return base::InvalidArgument("{}: '{}' cannot be the name of a file", folder.string(), name);
    }
    const absl::Status copied = CopyFile(files, folder / name, to / name);
    if (absl::IsNotFound(copied)) {  // no object: a folder
      MEDLEY_RETURN_IF_ERROR(FetchBelow(files, folder / name, to / name, depth + 1));
      continue;
    }
    MEDLEY_RETURN_IF_ERROR(copied);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Volume> OpenVolume(const fs::path& root, const object_store::GetVariable& get, const std::string& also) {
  if (!IsRemote(root.string()) && !IsRemote(also)) return Volume(root);
  MEDLEY_RETURN_IF_ERROR(CheckAddress(root.string()));
  MEDLEY_RETURN_IF_ERROR(CheckAddress(also));
  MEDLEY_ASSIGN_OR_RETURN(const object_store::Settings settings,
                          object_store::ReadSettings(object_store::WithKeyFiles(get)));
  const auto stores = std::make_shared<OwnedStores>(settings);
  return Volume(root, std::make_shared<ObjectFiles>(std::shared_ptr<ObjectStore>(stores, &stores->quick),
                                                    std::shared_ptr<ObjectStore>(stores, &stores->bulk)));
}

absl::Status CheckRights(const Volume& volume) {
  if (!volume.of_objects()) return absl::OkStatus();
  constexpr std::string_view kContent = "Medley may write here.\n";
  Files& files = volume.files();
  const fs::path probe = volume / "probe";
  MEDLEY_RETURN_IF_ERROR(files.WriteAtomic(probe, kContent));
  const absl::Status read = files.ReadWhole(probe, kContent.size()).status();
  if (!absl::IsNotFound(read)) MEDLEY_RETURN_IF_ERROR(read);  // another coordinator has removed it
  const absl::Status listed = files.List(volume.root()).status();
  if (!absl::IsNotFound(listed)) MEDLEY_RETURN_IF_ERROR(listed);
  return files.Remove(probe);
}

absl::Status FetchFolder(const Volume& from, const fs::path& folder, const fs::path& to) {
  return FetchBelow(from.files(), folder, to, 0);
}

}  // namespace medley::worker
