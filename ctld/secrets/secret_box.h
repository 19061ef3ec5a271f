// Seals contents of secrets for the store, and opens them for a job's node (XChaCha20-Poly1305).
//
// The key is in a file of its own, mode 0600, made when there is none. In memory it lies in pages
// that are locked and in no core dump.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/result.h"
#include "common/types.h"

namespace gantry::secrets {

struct SecretName {  // to which a sealed content is bound
  std::string_view tenant, name;
  std::uint32_t version = 0;
};

// Overwrites what the text held, and empties it.
void wipe(Bytes& content);

class SecretBox {
 public:
  static Result<SecretBox> load(const std::string& path);

  [[nodiscard]] Bytes seal(const SecretName& name, std::string_view content) const;
  // malformed: it is damaged, or bound to another name; wrong_state: sealed with another key.
  [[nodiscard]] Result<Bytes> open(const SecretName& name, std::string_view sealed) const;

  // A password that only this key gives for the word (BLAKE2b, keyed), as 32 hexadecimal digits.
  [[nodiscard]] std::string password(std::string_view word) const;

  [[nodiscard]] bool is_new() const { return is_new_; }  // load() has made the file

 private:
  struct Free {
    void operator()(unsigned char* key) const;
  };
  std::unique_ptr<unsigned char, Free> key_;
  std::string path_;
  bool is_new_ = false;
};

}  // namespace gantry::secrets
