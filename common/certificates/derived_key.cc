#include "common/certificates/derived_key.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/param_build.h>
#include <openssl/sha.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/certificates/free_with.h"

namespace medley::certificates {
namespace {

constexpr size_t kShortestSeed = 32;  // bytes
// 320 bits, 64 more than the order of the curve has: the remainder is then uniform but for 2^-64 (FIPS 186-5, A.2.1).
constexpr size_t kKeyBytes = 40;

using BigNumber = std::unique_ptr<BIGNUM, FreeWith<BN_clear_free>>;
using Group = std::unique_ptr<EC_GROUP, FreeWith<EC_GROUP_free>>;
using Point = std::unique_ptr<EC_POINT, FreeWith<EC_POINT_free>>;
using Work = std::unique_ptr<BN_CTX, FreeWith<BN_CTX_free>>;
using Builder = std::unique_ptr<OSSL_PARAM_BLD, FreeWith<OSSL_PARAM_BLD_free>>;
using Parameters = std::unique_ptr<OSSL_PARAM, FreeWith<OSSL_PARAM_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, FreeWith<EVP_PKEY_CTX_free>>;

absl::Status NotDerived() {
  ERR_clear_error();
  return base::Internal("deriving a key of P-256 failed in OpenSSL");
}

// A number from 1 to the order of the group minus 1.
BigNumber ScalarOf(const unsigned char* bytes, const EC_GROUP& group, BN_CTX& work) {
  const BigNumber number(BN_bin2bn(bytes, kKeyBytes, nullptr));
  const BigNumber most(BN_dup(EC_GROUP_get0_order(&group)));
  BigNumber scalar(BN_secure_new());
  if (number == nullptr || most == nullptr || scalar == nullptr || BN_sub_word(most.get(), 1) != 1 ||
      BN_mod(scalar.get(), number.get(), most.get(), &work) != 1 || BN_add_word(scalar.get(), 1) != 1) {
    return nullptr;
  }
  return scalar;
}

// The point of the public key, uncompressed; empty: OpenSSL failed.
std::vector<unsigned char> PublicKeyOf(const BIGNUM& scalar, const EC_GROUP& group, BN_CTX& work) {
  const Point point(EC_POINT_new(&group));
  if (point == nullptr || EC_POINT_mul(&group, point.get(), &scalar, nullptr, nullptr, &work) != 1) return {};
  std::vector<unsigned char> bytes(
      EC_POINT_point2oct(&group, point.get(), POINT_CONVERSION_UNCOMPRESSED, nullptr, 0, &work));
  const size_t written =
      EC_POINT_point2oct(&group, point.get(), POINT_CONVERSION_UNCOMPRESSED, bytes.data(), bytes.size(), &work);
  return written == bytes.size() ? bytes : std::vector<unsigned char>();
}

}  // namespace

absl::StatusOr<DerivedKey> DeriveKey(std::string_view seed) {
  if (seed.size() < kShortestSeed) {
    return base::InvalidArgument("a seed of {} bytes: a key needs at least {}", seed.size(), kShortestSeed);
  }
  constexpr std::string_view kPurpose = "medley.dev/p-256";
  DerivedKey derived;
  unsigned char bytes[SHA512_DIGEST_LENGTH];
  unsigned int size = 0;
  if (HMAC(EVP_sha512(), seed.data(), static_cast<int>(seed.size()),
           reinterpret_cast<const unsigned char*>(kPurpose.data()), kPurpose.size(), bytes, &size) == nullptr) {
    return NotDerived();
  }
  static_assert(kKeyBytes + sizeof(derived.more) == SHA512_DIGEST_LENGTH);
  std::copy(bytes + kKeyBytes, bytes + SHA512_DIGEST_LENGTH, derived.more.begin());
  const Group group(EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1));
  const Work work(BN_CTX_secure_new());
  if (group == nullptr || work == nullptr) return NotDerived();
  const BigNumber scalar = ScalarOf(bytes, *group, *work);
  OPENSSL_cleanse(bytes, sizeof(bytes));
  if (scalar == nullptr) return NotDerived();
  const std::vector<unsigned char> point = PublicKeyOf(*scalar, *group, *work);
  const Builder builder(OSSL_PARAM_BLD_new());
  const KeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr));
  if (point.empty() || builder == nullptr || context == nullptr ||
      OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) != 1 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_PRIV_KEY, scalar.get()) != 1 ||
      OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size()) != 1) {
    return NotDerived();
  }
  const Parameters parameters(OSSL_PARAM_BLD_to_param(builder.get()));
  EVP_PKEY* key = nullptr;
  if (parameters == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_KEYPAIR, parameters.get()) != 1) {
    return NotDerived();
  }
  derived.key.reset(key);
  return derived;
}

}  // namespace medley::certificates
