// Owners of OpenSSL's objects.
#pragma once

namespace medley::certificates {

// A deleter of std::unique_ptr that calls `Function`: std::unique_ptr<BIO, FreeWith<BIO_free>>.
template <auto Function>
struct FreeWith {
  template <typename T>
  void operator()(T* pointer) const {
    Function(pointer);
  }
};

}  // namespace medley::certificates
