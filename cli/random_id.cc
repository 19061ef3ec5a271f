#include "cli/random_id.h"

#include <sys/random.h>

#include "common/assert.h"
#include "common/net/keys.h"

namespace gantry::cli {

std::string random_id() {
  std::string bytes(16, '\0');
  const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
  GANTRY_ASSERT(got == 16, "the kernel gives 16 random bytes at once");
  return net::to_hex(bytes);
}

}  // namespace gantry::cli
