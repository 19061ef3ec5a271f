// A sealed content opens under its own name with its own key, and never otherwise.
#include <sys/stat.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "ctld/secrets/secret_box.h"
#include "tests/secrets/directory.h"

using namespace gantry;
using secrets::SecretBox;

TEST_CASE("what was sealed is opened, also by the next daemon") {
  const test::Directory dir;
  const std::string path = dir.path + "/secrets.key";
  auto first = SecretBox::load(path);
  REQUIRE(first);
  CHECK(first->is_new());
  struct stat st {};
  REQUIRE(::stat(path.c_str(), &st) == 0);
  CHECK((st.st_mode & 0777) == 0600);
  const std::string content("pass\0word\n", 10);
  const Bytes sealed = first->seal({"fraud", "hub", 1}, content);
  CHECK(sealed.find("pass") == Bytes::npos);
  CHECK(sealed != first->seal({"fraud", "hub", 1}, content));  // each has a different form
  const auto second = SecretBox::load(path);
  REQUIRE(second);
  CHECK_FALSE(second->is_new());
  const auto opened = second->open({"fraud", "hub", 1}, sealed);
  REQUIRE(opened);
  CHECK(*opened == content);
}

TEST_CASE("a sealed content cannot be moved") {
  const test::Directory dir;
  const auto box = SecretBox::load(dir.path + "/secrets.key");
  REQUIRE(box);
  const Bytes sealed = box->seal({"fraud", "hub", 1}, "password");
  for (const secrets::SecretName& name :
       {secrets::SecretName{"fraud", "hub", 2}, secrets::SecretName{"fraud", "hub1", 1},
        secrets::SecretName{"search", "hub", 1}, secrets::SecretName{"fraudh", "ub", 1}}) {
    const auto opened = box->open(name, sealed);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == ErrorCode::malformed);
  }
}

TEST_CASE("every changed byte is noticed, and a short text is no content") {
  const test::Directory dir;
  const auto box = SecretBox::load(dir.path + "/secrets.key");
  REQUIRE(box);
  const Bytes sealed = box->seal({"fraud", "hub", 1}, "password");
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    Bytes other = sealed;
    other[i] = static_cast<char>(other[i] ^ 1);
    CHECK_FALSE(box->open({"fraud", "hub", 1}, other));
    CHECK_FALSE(box->open({"fraud", "hub", 1}, sealed.substr(0, i)));
  }
}

TEST_CASE("another key says that it is another one") {
  const test::Directory dir;
  const auto one = SecretBox::load(dir.path + "/one.key");
  const auto other = SecretBox::load(dir.path + "/other.key");
  REQUIRE(one);
  REQUIRE(other);
  const auto opened = other->open({"fraud", "hub", 1}, one->seal({"fraud", "hub", 1}, "password"));
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == ErrorCode::wrong_state);
  CHECK(opened.error().message.find("other.key") != std::string::npos);
}

TEST_CASE("a key that others may read, or that is none, is refused") {
  const test::Directory dir;
  const std::string path = dir.path + "/secrets.key";
  REQUIRE(SecretBox::load(path));
  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  CHECK_FALSE(SecretBox::load(path));
  REQUIRE(::chmod(path.c_str(), 0600) == 0);
  REQUIRE(::truncate(path.c_str(), 20) == 0);
  CHECK_FALSE(SecretBox::load(path));
}
