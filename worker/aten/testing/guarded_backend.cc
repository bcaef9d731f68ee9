// LibTorch's side of the test device (worker/device/testing/guarded_memory.h): tensors of the device type PrivateUse1.
//
// Trainers use it with the classes and calls that they use for a GPU; the type of the device is the only difference. A
// kernel is the CPU's, run on the opened memory. A copy between the host and the device counts, whoever makes it. While
// the device records, each kernel is kept with its arguments and the addresses of its results. Not for the build with
// CUDA, where a GPU takes its place.

#include <deque>
#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "worker/aten/testing/tested_device.h"
#include "worker/aten/torch.h"
#include "worker/device/testing/guarded_device.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <ATen/EmptyTensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>
#pragma GCC diagnostic pop

namespace medley::worker::aten {
namespace {

using device::GuardedMemory;

constexpr c10::DispatchKey kKey = c10::DispatchKey::PrivateUse1;
const c10::Device kDevice(c10::DeviceType::PrivateUse1, 0);

GuardedMemory& Memory() { return GuardedMemory::OfProcess(); }

bool IsOurs(const at::Tensor& tensor) { return tensor.defined() && tensor.device().type() == kDevice.type(); }

void Free(void* block) {
  if (block != nullptr) Memory().Free(block);
}

class GuardedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) const override {
    if (bytes == 0) return {nullptr, nullptr, Free, kDevice};
    const absl::StatusOr<void*> block = Memory().Allocate(bytes);
    if (absl::IsResourceExhausted(block.status())) {
      TORCH_CHECK_WITH(OutOfMemoryError, false, base::Message(block.status()));
    }
    TORCH_CHECK(block.ok(), base::Message(block.status()));
    return {*block, *block, Free, kDevice};
  }
  c10::DeleterFnPtr raw_deleter() const override { return Free; }
};

GuardedAllocator* Allocator() {
  static auto* const allocator = new GuardedAllocator();
  return allocator;
}

class DeviceGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kDevice.type(); }
  c10::Device exchangeDevice(c10::Device) const override { return kDevice; }
  c10::Device getDevice() const override { return kDevice; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const noexcept override { return c10::Stream(c10::Stream::DEFAULT, kDevice); }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override { return getStream(stream.device()); }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
};

at::Tensor Over(c10::Storage storage, c10::DispatchKey key, const at::Tensor& like) {
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key), like.dtype());
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides());
  tensor.unsafeGetTensorImpl()->set_storage_offset(like.storage_offset());
  return tensor;
}

size_t BytesOf(const at::Tensor& tensor) { return tensor.storage().nbytes(); }

// The memory of one call, opened: the device's tensors as tensors of the CPU over the same memory.
class Call {
 public:
  // The same tensor for the CPU.
  at::Tensor ToCpu(const at::Tensor& tensor) {
    if (!IsOurs(tensor)) return tensor;
    for (const Alias& known : aliases_) {
      if (known.device.is_same(tensor)) return known.cpu;
    }
    const at::Tensor cpu = Over(StorageOf(tensor), c10::DispatchKey::CPU, tensor);
    aliases_.push_back({tensor, cpu});
    return cpu;
  }

  // A result of the call for the device: an argument, a view of one, or new memory.
  at::Tensor ToDevice(const at::Tensor& cpu) {
    if (!cpu.defined() || !cpu.device().is_cpu()) return cpu;
    for (const Alias& known : aliases_) {
      if (known.cpu.is_same(cpu)) return known.device;
    }
    for (const Shared& shared : storages_) {
      if (shared.cpu.unsafeGetStorageImpl() == cpu.storage().unsafeGetStorageImpl())
        return Over(shared.device, kKey, cpu);
    }
    return Over(Copied(cpu), kKey, cpu);
  }

  // For the CPU, whoever has the device's tensor: what lies in new memory of the device, else undefined.
  at::Tensor NewMemory(const at::Tensor& device) const {
    if (!IsOurs(device) || device.storage().data() == nullptr) return {};
    for (const Shared& shared : storages_) {
      if (shared.device.unsafeGetStorageImpl() == device.storage().unsafeGetStorageImpl()) return {};
    }
    return Over(Unowned(device.storage()), c10::DispatchKey::CPU, device);
  }

  void Record(std::function<absl::Status()> again) { opened_.Record(std::move(again)); }

  // What a kernel computed in memory of the CPU, because an argument had too little, and its place on the device.
  struct Grown {
    at::Tensor from, to;
  };

  // A kernel may have given the memory of an argument another size.
  std::vector<Grown> Finish() {
    std::vector<Grown> all;
    for (const Alias& known : aliases_) {
      c10::TensorImpl* const to = known.device.unsafeGetTensorImpl();
      for (Shared& shared : storages_) {
        if (shared.device.unsafeGetStorageImpl() != known.device.storage().unsafeGetStorageImpl()) continue;
        if (shared.cpu.data() == shared.device.data() && shared.cpu.nbytes() == shared.device.nbytes()) continue;
        const c10::Storage grown = Copied(known.cpu);
        all.push_back({known.cpu, Over(Unowned(grown), c10::DispatchKey::CPU, known.cpu)});
        shared.device.set_nbytes(grown.nbytes());
        shared.device.set_data_ptr(std::move(grown.unsafeGetStorageImpl()->data_ptr()));
      }
      if (known.cpu.sizes() != known.device.sizes() || known.cpu.strides() != known.device.strides()) {
        to->set_sizes_and_strides(known.cpu.sizes(), known.cpu.strides());
        to->set_storage_offset(known.cpu.storage_offset());
      }
    }
    return all;
  }

 private:
  struct Alias {
    at::Tensor device, cpu;
  };
  struct Shared {
    c10::Storage device, cpu;
  };

  c10::Storage StorageOf(const at::Tensor& tensor) {
    for (const Shared& shared : storages_) {
      if (shared.device.unsafeGetStorageImpl() == tensor.storage().unsafeGetStorageImpl()) return shared.cpu;
    }
    void* const data = tensor.storage().data();
    if (data != nullptr) TORCH_CHECK(opened_.Open(data), "a tensor of the test device lies elsewhere");
    const c10::Storage cpu = Unowned(tensor.storage());
    storages_.push_back({tensor.storage(), cpu});
    return cpu;
  }

  // The same memory, which it does not free.
  static c10::Storage Unowned(const c10::Storage& storage) {
    return c10::Storage(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), storage.nbytes(),
                                                              c10::DataPtr(storage.data(), c10::Device(at::kCPU)),
                                                              c10::GetAllocator(at::kCPU), /*resizable=*/true));
  }

  c10::Storage Copied(const at::Tensor& cpu) {
    const size_t bytes = BytesOf(cpu);
    c10::Storage to(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                          Allocator()->allocate(bytes), Allocator(), true));
    if (bytes > 0) {
      opened_.Open(to.data());
      std::memcpy(to.data(), cpu.storage().data(), bytes);
    }
    return to;
  }

  GuardedMemory::Opened opened_{Memory()};
  std::vector<Alias> aliases_;
  std::vector<Shared> storages_;
};

void CheckDevice() {
  const absl::Status status = Memory().Check();
  TORCH_CHECK(status.ok(), base::Message(status));
}

template <typename Convert>
c10::IValue Converted(const c10::IValue& value, const Convert& convert) {
  if (value.isTensor()) return convert(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& each : value.toTensorVector()) list.push_back(convert(each));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<c10::optional<at::Tensor>> list;
    for (const c10::optional<at::Tensor>& each : value.toOptionalTensorVector()) {
      list.push_back(each.has_value() ? c10::optional<at::Tensor>(convert(*each)) : each);
    }
    return list;
  }
  if (value.isDevice() && value.toDevice().type() == kDevice.type()) return c10::Device(at::kCPU);
  return value;
}

using Stack = torch::jit::Stack;

std::vector<at::Tensor> TensorsOf(const c10::IValue& value) {
  return value.isTensor() ? std::vector{value.toTensor()} : value.toTensorVector();
}

// Does `kernel` on tensors of the CPU over the opened memory, and returns its results for the device. `writes`: it
// changes arguments. While the device records it keeps the kernel; what it did before is then undone.
Stack Do(Call& opened, const std::function<Stack()>& kernel, bool writes) {
  Stack results = kernel();
  const std::vector<Call::Grown> grown = opened.Finish();
  std::vector<at::Tensor> made;  // by tensor of the results: where the device has it, undefined where an argument is
  bool new_memory = false;
  for (c10::IValue& result : results) {
    if (!result.isTensor() && !result.isTensorList()) {  // a number, for the host
      TORCH_CHECK(Memory().NotRecorded("a kernel whose result is a number of the host").ok(), "it cannot be recorded");
      Memory().CountOut(sizeof(double));
      continue;
    }
    result = Converted(result, [&](const at::Tensor& tensor) { return opened.ToDevice(tensor); });
    for (const at::Tensor& tensor : TensorsOf(result)) {
      made.push_back(opened.NewMemory(tensor));
      new_memory = new_memory || made.back().defined();
    }
  }
  if (!writes && !new_memory) return results;  // a view
  if (!Memory().recording()) {
    Memory().CountLaunch();
    return results;
  }
  opened.Record([kernel, made, grown]() -> absl::Status {
    try {
      const at::AutoDispatchBelowADInplaceOrView below;
      const at::AutoGradMode none(false);
      size_t next = 0;
      for (const c10::IValue& again : kernel()) {
        for (const at::Tensor& tensor : TensorsOf(again)) {
          at::Tensor to = made.at(next++);
          if (!to.defined()) continue;
          TORCH_CHECK(to.sizes() == tensor.sizes(), "a recorded kernel has a result of another size than before");
          to.copy_(tensor);
        }
      }
      for (const Call::Grown& each : grown) at::Tensor(each.to).copy_(each.from);
      return absl::OkStatus();
    } catch (const std::exception& error) {
      return base::Internal("a recorded kernel failed: {}", error.what());
    }
  });
  return results;
}

// Every operator without a kernel of its own.
void RunOnCpu(const c10::OperatorHandle& call, torch::jit::Stack* stack) {
  CheckDevice();
  const at::AutoDispatchBelowADInplaceOrView below;
  Call opened;
  const size_t arguments = call.schema().arguments().size();
  for (size_t i = stack->size() - arguments; i < stack->size(); ++i) {
    // A GPU takes indices from the host too, by a copy that waits.
    const bool indices = (*stack)[i].isOptionalTensorList() && !Memory().recording();
    (*stack)[i] = Converted((*stack)[i], [&](const at::Tensor& tensor) {
      TORCH_CHECK(indices || !tensor.defined() || IsOurs(tensor) || tensor.dim() == 0, "a kernel of the test device, ",
                  call.schema().name(), ", was given a tensor in the host's memory");
      return opened.ToCpu(tensor);
    });
  }
  const Stack given(stack->end() - static_cast<std::ptrdiff_t>(arguments), stack->end());
  torch::jit::drop(*stack, arguments);
  const auto kernel = [call, given] {
    Stack values = given;
    call.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &values);
    return values;
  };
  for (c10::IValue& result : Do(opened, kernel, call.schema().is_mutable())) stack->push_back(std::move(result));
}

at::Tensor Empty(at::IntArrayRef sizes, c10::optional<at::ScalarType> type, c10::optional<at::Layout>,
                 c10::optional<at::Device>, c10::optional<bool>, c10::optional<at::MemoryFormat> format) {
  CheckDevice();
  return at::detail::empty_generic(sizes, Allocator(), c10::DispatchKeySet(kKey), c10::dtype_or_default(type), format);
}

at::Tensor EmptyStrided(at::IntArrayRef sizes, at::IntArrayRef strides, c10::optional<at::ScalarType> type,
                        c10::optional<at::Layout>, c10::optional<at::Device>, c10::optional<bool>) {
  CheckDevice();
  return at::detail::empty_strided_generic(sizes, strides, Allocator(), c10::DispatchKeySet(kKey),
                                           c10::dtype_or_default(type));
}

at::Tensor& Copy(at::Tensor& to, const at::Tensor& from, bool) {
  CheckDevice();
  const at::AutoDispatchBelowADInplaceOrView below;
  Call opened;
  if (IsOurs(to) && !IsOurs(from)) Memory().CountIn(from.nbytes());
  if (!IsOurs(to) && IsOurs(from)) Memory().CountOut(from.nbytes());
  const bool recorded = (IsOurs(to) && IsOurs(from)) || Memory().NotRecorded("a copy to or from the host").ok();
  TORCH_CHECK(recorded, "a copy to or from the host cannot be recorded");
  const auto copy = [into = opened.ToCpu(to), cpu = opened.ToCpu(from)] {
    at::Tensor same = into;
    return Stack{same.copy_(cpu)};
  };
  Do(opened, copy, /*writes=*/true);
  return to;
}

at::Scalar Item(const at::Tensor& tensor) {
  CheckDevice();
  const at::AutoDispatchBelowADInplaceOrView below;
  Call opened;
  TORCH_CHECK(Memory().NotRecorded("a number for the host").ok(), "a number for the host cannot be recorded");
  Memory().CountOut(tensor.element_size());
  return opened.ToCpu(tensor).item();
}

using Three = std::array<bool, 3>;
c10::optional<at::Tensor> ToCpu(Call& call, const c10::optional<at::Tensor>& tensor) {
  return tensor.has_value() ? c10::optional<at::Tensor>(call.ToCpu(*tensor)) : tensor;
}

at::Tensor Convolution(const at::Tensor& input, const at::Tensor& weight, const c10::optional<at::Tensor>& bias,
                       at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                       at::IntArrayRef output_padding, int64_t groups) {
  CheckDevice();
  const at::AutoDispatchBelowADInplaceOrView below;
  Call opened;
  const auto kernel = [input = opened.ToCpu(input), weight = opened.ToCpu(weight), bias = ToCpu(opened, bias),
                       stride = stride.vec(), padding = padding.vec(), dilation = dilation.vec(), transposed,
                       output_padding = output_padding.vec(), groups] {
    return Stack{at::convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)};
  };
  return Do(opened, kernel, /*writes=*/false).front().toTensor();
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> ConvolutionBackward(const at::Tensor& gradient, const at::Tensor& input,
                                                                   const at::Tensor& weight, at::IntArrayRef stride,
                                                                   at::IntArrayRef padding, at::IntArrayRef dilation,
                                                                   bool transposed, at::IntArrayRef output_padding,
                                                                   int64_t groups, Three mask) {
  CheckDevice();
  const at::AutoDispatchBelowADInplaceOrView below;
  Call opened;
  const auto kernel = [gradient = opened.ToCpu(gradient), input = opened.ToCpu(input), weight = opened.ToCpu(weight),
                       bias = std::vector<int64_t>{weight.size(transposed ? 1 : 0) * (transposed ? groups : 1)},
                       stride = stride.vec(), padding = padding.vec(), dilation = dilation.vec(), transposed,
                       output_padding = output_padding.vec(), groups, mask] {
    auto [of_input, of_weight, of_bias] = at::convolution_backward(gradient, input, weight, bias, stride, padding,
                                                                   dilation, transposed, output_padding, groups, mask);
    return Stack{std::move(of_input), std::move(of_weight), std::move(of_bias)};
  };
  const Stack found = Do(opened, kernel, /*writes=*/false);
  return {found[0].toTensor(), found[1].toTensor(), found[2].toTensor()};
}

}  // namespace

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&RunOnCpu>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &Empty);
  library.impl("empty_strided", &EmptyStrided);
  library.impl("copy_", &Copy);
  library.impl("_local_scalar_dense", &Item);
  library.impl("convolution_overrideable", &Convolution);
  library.impl("convolution_backward_overrideable", &ConvolutionBackward);
}

absl::StatusOr<std::shared_ptr<device::CountingDevice>> OpenTestedDevice() {
  static const c10::impl::DeviceGuardImplRegistrar kGuard(kDevice.type(), new DeviceGuard());
  static const bool kAllocates = [] {
    c10::SetAllocator(kDevice.type(), Allocator());
    return true;
  }();
  static_cast<void>(kAllocates);
  return std::make_shared<device::CountingDevice>(std::make_shared<device::GuardedDevice>());
}

}  // namespace medley::worker::aten
