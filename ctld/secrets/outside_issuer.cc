#include "ctld/secrets/outside_issuer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/core.h>

#include "common/codec/json_io.h"
#include "common/fd.h"
#include "ctld/secrets/jwt.h"

namespace gantry::secrets {
namespace {

constexpr std::size_t kMaxKeysBytes = 1 << 20;
constexpr std::size_t kMostGroups = 256;
constexpr std::size_t kMostName = 64;   // bytes of a user's or group's name
constexpr Duration kSkew = minutes(5);  // difference allowed between the issuer's clock and ours
constexpr double kLatest = INT64_MAX / 1'000'000;  // most seconds that an Instant can hold

struct Parts {
  std::string_view covered;  // header and claims, which are signed
  codec::JsonDocument header, claims;
  std::string signature;
};

tl::unexpected<Error> refused(std::string why) {
  return fail(ErrorCode::unauthenticated, std::move(why));
}

Result<codec::JsonDocument> object_in(std::string_view text, std::string_view what) {
  const auto octets = from_base64url(text);
  if (!octets) return refused(fmt::format("the token's {} is not base64url", what));
  auto document = codec::JsonDocument::parse(*octets);
  if (!document || !document->root().is_object())
    return refused(fmt::format("the token's {} is no JSON object", what));
  return document;
}

std::string_view text_at(const codec::JsonDocument& document, std::string_view name) {
  const auto node = document.root().find(name);
  return node && node->string() ? *node->string() : std::string_view();
}

Result<Parts> parts_of(std::string_view token) {
  const std::size_t first = token.find('.'), last = token.rfind('.');
  if (token.size() > kMaxOutsideTokenBytes || first == last || token.find('.', first + 1) != last)
    return refused("this is no token: it has not three parts");
  ASSIGN(header, object_in(token.substr(0, first), "header"));
  ASSIGN(claims, object_in(token.substr(first + 1, last - first - 1), "body"));
  auto signature = from_base64url(token.substr(last + 1));
  if (!signature) return refused("the token's signature is not base64url");
  return Parts{token.substr(0, last), std::move(*header), std::move(*claims),
               std::move(*signature)};
}

// A NumericDate: seconds since 1970, which may have a fraction. nullopt if it is missing or
// invalid.
std::optional<Instant> date_at(const codec::JsonDocument& claims, std::string_view name) {
  const auto node = claims.root().find(name);
  const auto value = node ? node->real() : std::nullopt;
  if (!value || !(*value >= 0 && *value < kLatest)) return std::nullopt;
  return Instant{static_cast<std::int64_t>(*value) * 1'000'000};
}

// Calls `take` with each text of a claim that is a text or a list of texts.
template <class Take>
void each_text(const codec::JsonDocument& claims, std::string_view name, Take&& take) {
  const auto node = claims.root().find(name);
  if (!node) return;
  if (const auto one = node->string()) take(*one);
  if (!node->is_array()) return;
  for (std::size_t i = 0; i < node->size(); ++i)
    if (const auto text = node->item(i).string()) take(*text);
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMostName &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  std::string_view("._-@").find(c) != std::string_view::npos;
         });
}

std::vector<std::string> groups_in(const codec::JsonDocument& claims, std::string_view name) {
  std::vector<std::string> out;
  each_text(claims, name, [&](std::string_view group) {
    if (group.starts_with('/'))
      group.remove_prefix(1);  // Keycloak writes a top-level group as /NAME
    if (is_name(group) && out.size() < kMostGroups)
      out.push_back(std::string(kOutsideGroup) + std::string(group));
  });
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec &&
         a.st_ctim.tv_sec == b.st_ctim.tv_sec && a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

}  // namespace

Result<std::unique_ptr<OutsideIssuer>> OutsideIssuer::open(OutsideRules rules) {
  std::unique_ptr<OutsideIssuer> out(new OutsideIssuer(std::move(rules)));
  TRY(out->read());
  return out;
}

Result<void> OutsideIssuer::read() {
  const std::string& path = rules_.keys_file;
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file || ::fstat(file.get(), &seen_) != 0)
    return fail(ErrorCode::io_error, fmt::format("{}: cannot be read (errno {})", path, errno));
  if (!S_ISREG(seen_.st_mode) || (seen_.st_mode & (S_IWGRP | S_IWOTH)) != 0 ||
      (seen_.st_uid != 0 && seen_.st_uid != ::geteuid()))
    return fail(ErrorCode::permission_denied,
                path + ": is not a file that only root or the controller's user may write");
  std::string text(kMaxKeysBytes + 1, '\0');
  std::size_t size = 0;
  for (ssize_t got = 1; got > 0 && size < text.size(); size += static_cast<std::size_t>(got)) {
    got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got < 0) return fail(ErrorCode::io_error, path + ": cannot be read");
  }
  text.resize(size);
  if (size > kMaxKeysBytes) return fail(ErrorCode::limit_exceeded, path + ": is larger than 1 MiB");
  auto keys = WebKeys::parse(text);
  if (!keys) return fail(keys.error().code, path + ": " + keys.error().message);
  keys_ = std::move(*keys);
  return {};
}

// While the file is half written or wrong, the keys stay as they were; it is read again when it
// changes.
void OutsideIssuer::read_again() {
  struct stat now {};
  if (::stat(rules_.keys_file.c_str(), &now) != 0) {
    if (seen_.st_ino != 0) fault_ = rules_.keys_file + ": is not there any more";
    seen_ = {};
    return;
  }
  if (same_file(now, seen_)) return;
  if (auto done = read(); !done) fault_ = done.error().message;
}

bool OutsideIssuer::may_have_made(std::string_view token) {
  if (token.size() > kMaxOutsideTokenBytes) return false;
  const auto header = object_in(token.substr(0, token.find('.')), "header");
  if (!header) return false;
  const std::string_view algorithm = text_at(*header, "alg");
  return algorithm == "ES256" || algorithm == "RS256";
}

Result<OutsideToken> OutsideIssuer::check(std::string_view token, Instant now) {
  ASSIGN(parts, parts_of(token));
  if (parts->header.root().find("crit"))
    return refused("the token's header has `crit`, of which nothing is known here");
  read_again();
  TRY(keys_->verify(text_at(parts->header, "alg"), text_at(parts->header, "kid"), parts->covered,
                    parts->signature));
  const codec::JsonDocument& claims = parts->claims;
  if (text_at(claims, "iss") != rules_.issuer)
    return refused(fmt::format("the token is of issuer \"{:.128}\", and {} is the one that counts",
                               text_at(claims, "iss"), rules_.issuer));
  bool for_us = false;
  each_text(claims, "aud",
            [&](std::string_view audience) { for_us = for_us || audience == rules_.audience; });
  if (!for_us) return refused(fmt::format("the token is not for audience {}", rules_.audience));
  const auto issued = date_at(claims, "iat"), ends = date_at(claims, "exp");
  if (!issued || !ends || *ends < *issued) return refused("the token lacks one of iat and exp");
  const auto from = claims.root().find("nbf") ? date_at(claims, "nbf") : issued;
  if (!from || *issued > now + kSkew || *from > now + kSkew)
    return refused("the token is from the future: check the clocks");
  OutsideToken out;
  out.expires = std::min(*ends, *issued + rules_.longest);
  if (out.expires <= now) return refused("the token is no longer valid");
  out.user = text_at(claims, rules_.user_claim);
  if (!is_name(out.user))
    return refused(fmt::format("the token's claim {} is no login name", rules_.user_claim));
  if (!rules_.groups_claim.empty()) out.groups = groups_in(claims, rules_.groups_claim);
  return out;
}

std::string OutsideIssuer::claimed(std::string_view token) const {
  const auto parts = parts_of(token);
  return parts ? std::string(text_at(parts->claims, rules_.user_claim)) : std::string();
}

}  // namespace gantry::secrets
