// Scripts and environments are stored once by content hash (BLAKE2b, 32 octets), however many jobs
// use them. The core has only the hashes; the shell (or the simulator) fills in the contents when a
// message leaves.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "common/fields.h"
#include "ctld/core/core.h"
#include "ctld/core/request.h"
#include "ctld/core/turn_out.h"
#include "ctld/store/store.h"

namespace gantry::core {

store::Digest digest_of(std::string_view contents);

struct EnvironmentBlob {
  std::map<std::string, std::string> variables;
  GANTRY_FIELDS(FIELD(1, variables))
};

// Call fill() for every order and reply of a committed turn. An error means that the store has lost
// a blob.
Result<void> fill(Order& order, const store::Store& store);
Result<void> fill(Reply& reply, const store::Store& store);

}  // namespace gantry::core
