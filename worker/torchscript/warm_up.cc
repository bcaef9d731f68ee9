#include "worker/torchscript/warm_up.h"

#include "worker/torchscript/torch.h"

namespace medley::worker::torchscript {

void WarmUp() {
  at::set_num_threads(1);
  const at::NoGradGuard guard;
  at::conv2d(at::randn({1, 1, 4, 4}), at::randn({1, 1, 3, 3})).add_(at::mm(at::randn({2, 2}), at::randn({2, 2})).sum());
}

}  // namespace medley::worker::torchscript
