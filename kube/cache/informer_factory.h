// Owns informers and shares each among all callers that ask for the same resource, namespace and selectors.
// Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "kube/cache/informer.h"

namespace medley::kube {

class InformerFactory {
 public:
  // Changes each object before it is stored (see Reflector::Options). Called by several threads.
  using Transform = std::function<void(const Resource& resource, Object& object)>;

  // Use a different `seed` in each process, so that the processes do not list at the same moments.
  // `packed`: resources with many objects (see Store's constructor).
  InformerFactory(Client& client, base::Clock& clock, uint64_t seed, base::nanoseconds resync = base::nanoseconds(0),
                  Transform transform = nullptr, std::set<Resource> packed = {});
  ~InformerFactory();

  // The informer lives as long as the factory. It starts with Start, or at once if Start has been called.
  Informer& For(const Resource& resource, const std::string& ns = "", const std::string& label_selector = "",
                const std::string& field_selector = "");
  void Start();
  void Stop();  // idempotent; the factory cannot be restarted
  // Errors: DeadlineExceeded (names the resource), Cancelled.
  absl::Status WaitForSync(base::nanoseconds timeout, std::stop_token stop) const;
  bool HasSynced() const;

 private:
  using Id = std::tuple<Resource, std::string, std::string, std::string>;
  std::vector<Informer*> All() const;

  Client& client_;
  base::Clock& clock_;
  const uint64_t seed_;
  const base::nanoseconds resync_;
  const Transform transform_;
  const std::set<Resource> packed_;
  mutable base::Mutex mutex_;
  std::map<Id, std::unique_ptr<Informer>> informers_ ABSL_GUARDED_BY(mutex_);
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace medley::kube
