// In the place of gantry-pmi2, as a user can make of it: says that it serves, and then what is no
// frame, as fast as it is read.
#include <unistd.h>

#include <array>
#include <cstring>

#include "noded/pmi/wire.h"

int main() {
  using namespace gantry::pmix;
  std::string out;
  append(out, Word::ready, 0, "");
  append_number(out, kMaxBytes + 1);
  (void)!::write(kSocket, out.data(), out.size());
  static const std::array<char, 65536> zeros{};
  while (::write(kSocket, zeros.data(), zeros.size()) > 0) {
  }
  return 0;
}
