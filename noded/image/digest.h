// SHA-256 of data that comes in pieces.
#pragma once

#include <sodium/crypto_hash_sha256.h>

#include <string>
#include <string_view>

namespace gantry::runtime {

class Sha256 {
 public:
  Sha256() { crypto_hash_sha256_init(&state_); }
  void add(std::string_view bytes) {
    crypto_hash_sha256_update(&state_, reinterpret_cast<const unsigned char*>(bytes.data()),
                              bytes.size());
  }
  std::string hex();  // 64 hex digits; no more may be added afterwards

 private:
  crypto_hash_sha256_state state_;
};

std::string sha256_hex(std::string_view bytes);

}  // namespace gantry::runtime
