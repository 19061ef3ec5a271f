// The public keys of identity tokens, from a JSON Web Key Set to PEM, as HAProxy reads them; pure.
#pragma once

#include <map>
#include <string>

#include "common/result.h"

namespace gantry::gate {

// By key id. Keys of other kinds than EC P-256 are left out; malformed: it is no key set.
Result<std::map<std::string, std::string>> pem_of_keys(const std::string& jwks);

}  // namespace gantry::gate
