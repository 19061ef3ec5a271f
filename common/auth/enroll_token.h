// Tokens by which a node enrolls itself once: 32 random bytes in hex. The controller has their hash
// alone, so that its store gives nobody a token.
#pragma once

#include <string>
#include <string_view>

namespace gantry::auth {

std::string make_enroll_token();
// Hex: BLAKE2b-256 of the token's text.
std::string hash_of_enroll_token(std::string_view token);

}  // namespace gantry::auth
