// Replaces gantry-pmi2, as a user may replace it by another program. It reports that it is ready,
// and then sends bytes that are no frame, as fast as they are read.
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
