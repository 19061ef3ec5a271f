// Signatures of tokens by the examples of RFC 7515 (appendices A.2 and A.3), and which keys of a
// set count. tests/attack/issuer_test.py tests the claims of another issuer's tokens, with keys of
// openssl.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>

#include "ctld/secrets/jwt.h"
#include "ctld/secrets/outside_issuer.h"
#include "tests/secrets/directory.h"

using namespace gantry;
using secrets::WebKeys;

namespace {

const std::string kEcKey =
    R"({"kty":"EC","crv":"P-256","kid":"e","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",)"
    R"("y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"})";
const std::string kRsaKey =
    R"({"kty":"RSA","kid":"r","e":"AQAB","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W2)"
    "6mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47s"
    "oMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQ"
    R"(Y4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW)"
    R"(9gb54h4FRWyuXpoQ"})";
const std::string kBody =
    ".eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cn"
    "VlfQ";
const std::string kEcText = "eyJhbGciOiJFUzI1NiJ9" + kBody;
const std::string kRsaText = "eyJhbGciOiJSUzI1NiJ9" + kBody;
const std::string kEcSignature =
    "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
const std::string kRsaSignature =
    "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5"
    "jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb"
    "1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QO"
    "YEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";

std::string set_of(const std::string& keys) {
  return "{\"keys\":[" + keys + "]}";
}

std::string why(const WebKeys& keys, std::string_view algorithm, std::string_view id,
                const std::string& text, const std::string& signature) {
  const auto sound = keys.verify(algorithm, id, text, *secrets::from_base64url(signature));
  return sound ? std::string("fine") : sound.error().message;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace

TEST_CASE("the signatures of RFC 7515 count, for their own keys and texts only") {
  const auto keys = WebKeys::parse(set_of(kEcKey + "," + kRsaKey));
  REQUIRE(keys);
  CHECK(keys->size() == 2);
  for (const std::string id : {"e", ""})
    CHECK(why(*keys, "ES256", id, kEcText, kEcSignature) == "fine");
  for (const std::string id : {"r", ""})
    CHECK(why(*keys, "RS256", id, kRsaText, kRsaSignature) == "fine");
  CHECK(why(*keys, "ES256", "r", kEcText, kEcSignature) ==
        "the token's issuer has no key \"r\" for ES256");
  CHECK(why(*keys, "RS256", "e", kRsaText, kRsaSignature) ==
        "the token's issuer has no key \"e\" for RS256");
  CHECK(why(*keys, "HS256", "", kEcText, kEcSignature) ==
        "the token is signed by neither ES256 nor RS256");
  const std::string wrong = "the token's signature is wrong";
  CHECK(why(*keys, "ES256", "", kRsaText, kEcSignature) == wrong);
  CHECK(why(*keys, "RS256", "", kEcText, kRsaSignature) == wrong);
  CHECK(why(*keys, "ES256", "", kEcText, "") == wrong);
  for (std::size_t i = 0; i + 1 < kEcSignature.size(); ++i) {
    std::string changed = kEcSignature;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    CHECK(why(*keys, "ES256", "", kEcText, changed) == wrong);
  }
}

TEST_CASE("keys that do not sign are left out, and a set with a damaged one is refused") {
  const auto fault = [](const std::string& text) {
    const auto keys = WebKeys::parse(text);
    return keys ? std::string("fine") : keys.error().message;
  };
  const std::string none = "it has no key that signs with ES256 or RS256";
  CHECK(fault(set_of("")) == none);
  CHECK(fault(set_of(replaced(kEcKey, "\"kty\"", "\"use\":\"enc\",\"kty\""))) == none);
  CHECK(fault(set_of(replaced(kRsaKey, "\"kty\"", "\"alg\":\"RSA-OAEP\",\"kty\""))) == none);
  CHECK(fault(set_of(replaced(kEcKey, "P-256", "P-384"))) == none);
  CHECK(fault(set_of(R"({"kty":"oct","k":"c2VjcmV0"})")) == none);
  // 1024 bits.
  CHECK(fault(set_of("{\"kty\":\"RSA\",\"e\":\"AQAB\",\"n\":\"" + std::string(170, 'z') +
                     "w\"}")) == none);
  CHECK(fault(set_of(replaced(kEcKey, "f83O", "f83P"))) ==
        "key 1 (\"e\") is no key");  // not on the curve
  CHECK(fault("[]") == "it is no set of keys: it has no list `keys`");
  CHECK(fault("{") != "fine");
}

TEST_CASE("the file of an issuer's keys is believed if only its owner may write it") {
  const test::Directory dir;
  const std::string path = dir.path + "/keys.json";
  const auto open = [&] {
    const auto issuer =
        secrets::OutsideIssuer::open({"joe", "us", path, "sub", "groups", hours(1)});
    return issuer ? std::string("fine") : issuer.error().message;
  };
  CHECK(open().starts_with(path + ": cannot be read"));
  std::ofstream(path) << set_of(kEcKey);
  chmod(path.c_str(), 0644);
  CHECK(open() == "fine");
  chmod(path.c_str(), 0664);
  CHECK(open() == path + ": is not a file that only root or the controller's user may write");
  chmod(path.c_str(), 0600);
  std::ofstream(path) << "{}";
  CHECK(open() == path + ": it is no set of keys: it has no list `keys`");
  CHECK(secrets::OutsideIssuer::may_have_made(kEcText + ".x"));
  CHECK_FALSE(secrets::OutsideIssuer::may_have_made("eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.e30.x"));
  CHECK_FALSE(secrets::OutsideIssuer::may_have_made("no token"));
}
