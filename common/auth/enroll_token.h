// Tokens with which a node enrolls itself once: 32 random bytes in hex. The controller has only
// their hash, so its store reveals no token.
#pragma once

#include <string>
#include <string_view>

namespace gantry::auth {

std::string make_enroll_token();
// Hex: BLAKE2b-256 of the token's text.
std::string hash_of_enroll_token(std::string_view token);

}  // namespace gantry::auth
