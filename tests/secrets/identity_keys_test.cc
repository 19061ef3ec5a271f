// Which key signs, which keys are published, and the content of a token.
// tests/attack/secrets_test.py tests with python3-jwt that others accept the tokens.
#include <doctest/doctest.h>

#include "ctld/secrets/identity_keys.h"
#include "tests/secrets/directory.h"

using namespace gantry;
using secrets::IdentityKeys;

namespace {

const IdentityKeys::Rules kRules{"https://gantry.example", hours(1), hours(24 * 30)};
constexpr Instant kStart{1'800'000'000'000'000};

std::size_t count(const std::string& text, std::string_view word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

secrets::Claims claims() {
  secrets::Claims c;
  c.audience = "vault";
  c.tenant = "fraud";
  c.project = "models";
  c.user = "ann";
  c.node = "n1";
  c.job = 12;
  c.attempt = 2;
  return c;
}

std::string head_of(const IdentityKeys& keys, Instant now) {
  const auto token = keys.token(claims(), now, keys.lifetime());
  REQUIRE(token);
  CHECK(count(*token, ".") == 2);
  return token->substr(0, token->find('.'));
}

}  // namespace

TEST_CASE("the first key signs at once, and is the same after a restart") {
  const test::Directory dir;
  const auto keys = IdentityKeys::load(dir.path + "/identity.keys", kRules, kStart);
  REQUIRE(keys);
  CHECK(count((*keys)->published(), "\"kid\"") == 1);
  const std::string head = head_of(**keys, kStart);
  const auto again = IdentityKeys::load(dir.path + "/identity.keys", kRules, kStart + hours(1));
  REQUIRE(again);
  CHECK(head_of(**again, kStart + hours(1)) == head);
  CHECK((*again)->published() == (*keys)->published());
}

TEST_CASE("the next key is published before it signs, and the old one as long as its tokens live") {
  const test::Directory dir;
  const auto loaded = IdentityKeys::load(dir.path + "/identity.keys", kRules, kStart);
  REQUIRE(loaded);
  IdentityKeys& keys = **loaded;
  const std::string old = head_of(keys, kStart);
  const Instant next = kStart + kRules.period;
  REQUIRE(keys.look(next - seconds(1)));
  CHECK(count(keys.published(), "\"kid\"") == 1);
  REQUIRE(keys.look(next));
  CHECK(count(keys.published(), "\"kid\"") == 2);
  CHECK(head_of(keys, next) == old);
  const Instant signs = next + secrets::kKeyNotice;
  CHECK(head_of(keys, signs - seconds(1)) == old);
  CHECK(head_of(keys, signs) != old);
  REQUIRE(keys.look(signs + kRules.lifetime));
  CHECK(count(keys.published(), "\"kid\"") == 2);
  REQUIRE(keys.look(signs + kRules.lifetime + seconds(1)));
  CHECK(count(keys.published(), "\"kid\"") == 1);
  CHECK(head_of(keys, signs + kRules.lifetime) != old);
}

TEST_CASE("names cannot pass for other parts of the subject") {
  secrets::Claims c = claims();
  CHECK(secrets::subject_of(c) == "tenant:fraud:project:models:user:ann");
  c.project = "x:user:root";
  CHECK(secrets::subject_of(c) == "tenant:fraud:project:x%3Auser%3Aroot:user:ann");
  c.project = "100%";
  c.tenant = "";
  CHECK(secrets::subject_of(c) == "tenant::project:100%25:user:ann");
}

TEST_CASE("the claims are JSON, whatever the names") {
  secrets::Claims c = claims();
  c.issuer = "https://gantry.example";
  c.project = "a\"b\\c";
  c.from = kStart;
  c.until = kStart + hours(1);
  c.id = "x";
  CHECK(
      secrets::claims_json(c) ==
      R"({"iss":"https://gantry.example","sub":"tenant:fraud:project:a%22b%5Cc:user:ann",)"
      R"("aud":"vault","iat":1800000000,"nbf":1800000000,"exp":1800003600,"jti":"x",)"
      R"("tenant":"fraud","project":"a\"b\\c","user":"ann","job":"12","attempt":"2","node":"n1"})");
}
