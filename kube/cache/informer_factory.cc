#include "kube/cache/informer_factory.h"

#include <algorithm>

#include "common/base/status.h"

namespace medley::kube {

InformerFactory::InformerFactory(Client& client, base::Clock& clock, uint64_t seed, base::nanoseconds resync,
                                 Transform transform, std::set<Resource> packed)
    : client_(client),
      clock_(clock),
      seed_(seed),
      resync_(resync),
      transform_(std::move(transform)),
      packed_(std::move(packed)) {}

InformerFactory::~InformerFactory() { Stop(); }

Informer& InformerFactory::For(const Resource& resource, const std::string& ns, const std::string& label_selector,
                               const std::string& field_selector) {
  base::MutexLock lock(mutex_);
  std::unique_ptr<Informer>& informer = informers_[{resource, ns, label_selector, field_selector}];
  if (informer == nullptr) {
    Informer::Options options;
    options.reflector.resource = resource;
    options.reflector.ns = ns;
    options.reflector.label_selector = label_selector;
    options.reflector.field_selector = field_selector;
    options.reflector.seed = base::Mix64(seed_ + informers_.size());
    options.resync = resync_;
    options.packed = packed_.contains(resource);
    if (transform_) {
      options.reflector.transform = [this, resource](Object& object) { transform_(resource, object); };
    }
    informer = std::make_unique<Informer>(client_, clock_, std::move(options));
    if (started_ && !stopped_) informer->Start();
    if (stopped_) informer->Stop();
  }
  return *informer;
}

std::vector<Informer*> InformerFactory::All() const {
  std::vector<Informer*> all;
  base::MutexLock lock(mutex_);
  for (const auto& [id, informer] : informers_) all.push_back(informer.get());
  return all;
}

void InformerFactory::Start() {
  {
    base::MutexLock lock(mutex_);
    if (stopped_) return;
    started_ = true;
  }
  for (Informer* informer : All()) informer->Start();
}

void InformerFactory::Stop() {
  {
    base::MutexLock lock(mutex_);
    stopped_ = true;
  }
  for (Informer* informer : All()) informer->Stop();
}

absl::Status InformerFactory::WaitForSync(base::nanoseconds timeout, std::stop_token stop) const {
  base::SystemClock clock;
  const base::SteadyTime deadline = clock.Steady() + timeout;
  for (const Informer* informer : All()) {
    const base::nanoseconds left = std::max<base::nanoseconds>(deadline - clock.Steady(), base::nanoseconds(0));
    MEDLEY_RETURN_IF_ERROR(informer->WaitForSync(left, stop));
  }
  return absl::OkStatus();
}

bool InformerFactory::HasSynced() const {
  const std::vector<Informer*> all = All();
  return std::all_of(all.begin(), all.end(), [](const Informer* i) { return i->HasSynced(); });
}

}  // namespace medley::kube
