// Seals contents of secrets for the store, and opens them for a job's node (XChaCha20-Poly1305).
//
// The key is in its own file, mode 0600, which is made if there is none. In memory it is in pages
// that are locked and not part of core dumps.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/result.h"
#include "common/types.h"

namespace gantry::secrets {

struct SecretName {  // the name to which a sealed content is bound
  std::string_view tenant, name;
  std::uint32_t version = 0;
};

// Overwrites what the text held, and empties it.
void wipe(Bytes& content);

class SecretBox {
 public:
  static Result<SecretBox> load(const std::string& path);

  [[nodiscard]] Bytes seal(const SecretName& name, std::string_view content) const;
  // Errors: malformed if the content is damaged or bound to another name; wrong_state if it was
  // sealed with another key.
  [[nodiscard]] Result<Bytes> open(const SecretName& name, std::string_view sealed) const;

  // A password derived from the word with this key (BLAKE2b, keyed), as 32 hexadecimal digits.
  [[nodiscard]] std::string password(std::string_view word) const;

  [[nodiscard]] bool is_new() const { return is_new_; }  // true if load() made the file

 private:
  struct Free {
    void operator()(unsigned char* key) const;
  };
  std::unique_ptr<unsigned char, Free> key_;
  std::string path_;
  bool is_new_ = false;
};

}  // namespace gantry::secrets
