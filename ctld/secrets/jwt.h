// The claims of an identity token as JSON, and its parts as base64url (RFC 7515, 7519).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/time/time.h"

namespace gantry::secrets {

// What a token says of a job: who pays for it, whose it is, and which attempt where.
struct Claims {
  std::string_view issuer, audience;
  std::string_view tenant, project, user, node;
  std::uint64_t job = 0;
  std::uint32_t attempt = 0;
  Instant from{}, until{};
  std::string_view id;  // of the token: no two have the same
};

std::string base64url(std::string_view octets);
std::optional<std::string> from_base64url(std::string_view text);  // nothing: it is none
std::string json_text(std::string_view text);                      // in quotes

// "tenant:fraud:project:models:user:ann". A part keeps letters, digits and "._@+-"; every other
// byte is written %XX, so that no part can pass for another one.
std::string subject_of(const Claims& claims);
std::string claims_json(const Claims& claims);
// HEADER.CLAIMS, which is what is signed.
std::string unsigned_token(const Claims& claims, std::string_view key_id);

}  // namespace gantry::secrets
