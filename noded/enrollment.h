// The first start of a node: it makes its key, and shows the controller the token that an
// administrator made for it (gctl enroll --token).
#pragma once

#include <string>

#include "common/net/keys.h"
#include "common/result.h"

namespace gantry::node {

// Makes the key pair in `key_file` unless it is there, has the controller take it for the node's,
// and removes the token's file. Nothing happens if there is no such file, because the token was
// used at an earlier start. The error unavailable means that the controller was not reached: the
// token still counts, and who starts the daemon tries again.
Result<void> enroll_once(const std::string& token_file, const std::string& key_file,
                         const std::string& node, const std::string& endpoint,
                         const net::PublicKey& server);

}  // namespace gantry::node
