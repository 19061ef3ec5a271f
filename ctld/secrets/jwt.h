// The claims of an identity token as JSON, and its parts as base64url (RFC 7515, 7519).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/time/time.h"

namespace gantry::secrets {

// The claims about a job in a token: who pays for it, whose it is, and which attempt on which node.
struct Claims {
  std::string_view issuer, audience;
  std::string_view tenant, project, user, node;
  std::uint64_t job = 0;
  std::uint32_t attempt = 0;
  Instant from{}, until{};
  std::string_view id;  // id of the token, which no other token has
};

std::string base64url(std::string_view octets);
std::optional<std::string> from_base64url(
    std::string_view text);                    // without it the token is not for a job
std::string json_text(std::string_view text);  // text as a JSON string, in quotes

// "tenant:fraud:project:models:user:ann". A part keeps letters, digits and "._@+-"; every other
// byte is written %XX, so that no part can be mistaken for another.
std::string subject_of(const Claims& claims);
std::string claims_json(const Claims& claims);
// HEADER.CLAIMS, the part that is signed.
std::string unsigned_token(const Claims& claims, std::string_view key_id);

}  // namespace gantry::secrets
