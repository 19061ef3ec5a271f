#include "common/auth/enroll_token.h"

#include <sodium.h>

#include <array>

#include "common/assert.h"
#include "common/net/keys.h"

namespace gantry::auth {
namespace {

std::string_view text_of(const std::array<unsigned char, 32>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string make_enroll_token() {
  GANTRY_ASSERT(::sodium_init() >= 0, "the random numbers of libsodium are there");
  std::array<unsigned char, 32> bytes{};
  ::randombytes_buf(bytes.data(), bytes.size());
  return net::to_hex(text_of(bytes));
}

std::string hash_of_enroll_token(std::string_view token) {
  std::array<unsigned char, 32> hash{};
  ::crypto_generichash(hash.data(), hash.size(),
                       reinterpret_cast<const unsigned char*>(token.data()), token.size(), nullptr,
                       0);
  return net::to_hex(text_of(hash));
}

}  // namespace gantry::auth
