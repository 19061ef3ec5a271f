// The parts of a connection apart from the traffic itself: the header of a message, keys as text,
// and key files.
#include <doctest/doctest.h>

#include <sys/stat.h>
#include <zmq.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/net/header.h"
#include "common/net/keys.h"

namespace gantry::net {
namespace {

struct KeyDir {
  std::string path;
  KeyDir() {
    char name[] = "/tmp/gantry-net-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path = name;
  }
  ~KeyDir() { std::filesystem::remove_all(path); }
};

TEST_CASE("a message header has twelve bytes, little endian") {
  const MessageHeader header{.protocol = 0x0102, .type = 0x0304, .request = 0x05060708090a0b0c};
  const HeaderBytes bytes(header);
  CHECK(bytes.view() == "\x02\x01\x04\x03\x0c\x0b\x0a\x09\x08\x07\x06\x05");
  CHECK(*decode_header(bytes.view()) == header);
  CHECK(decode_header("short").error().code == ErrorCode::malformed);
  CHECK(decode_header("thirteen bytes").error().code == ErrorCode::malformed);
}

TEST_CASE("keys are written in Z85 as ZeroMQ does, or in hex, and are read back") {
  for (int i = 0; i < 50; ++i) {
    const KeyPair pair = generate_key_pair();
    char reference[41];
    zmq_z85_encode(reference, pair.public_key.bytes.data(), kKeyBytes);
    CHECK(to_z85(pair.public_key) == reference);
    CHECK(*parse_public_key(to_z85(pair.public_key)) == pair.public_key);
    CHECK(*parse_public_key("  " + to_hex(pair.public_key.view()) + "\n") == pair.public_key);
  }
  for (const char* bad : {"", "short", "#####################################é##",
                          // Five of these characters stand for a number beyond 32 bits.
                          "########################################",
                          "zz23456789012345678901234567890123456789012345678901234567890123"})
    CHECK(parse_public_key(bad).error().code == ErrorCode::invalid_argument);
}

TEST_CASE("key files are private, complete, and never overwritten") {
  const KeyDir dir;
  const std::string path = dir.path + "/ctld.key";
  const KeyPair pair = generate_key_pair();
  REQUIRE(save_key_pair(path, pair));
  struct stat st = {};
  REQUIRE(stat(path.c_str(), &st) == 0);
  CHECK((st.st_mode & 0777) == 0600);
  CHECK(load_key_pair(path)->secret_key == pair.secret_key);
  CHECK(save_key_pair(path, pair).error().code == ErrorCode::already_exists);
  CHECK(load_key_pair(dir.path + "/none").error().code == ErrorCode::not_found);
  chmod(path.c_str(), 0640);
  CHECK(load_key_pair(path).error().code == ErrorCode::permission_denied);
  chmod(path.c_str(), 0600);
  std::ofstream(path) << "public " << to_z85(generate_key_pair().public_key) << "\nsecret "
                      << to_z85(pair.secret_key) << "\n";
  CHECK(load_key_pair(path).error().code == ErrorCode::malformed);
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path), {}) ==
        1);  // No temporary file is left over.
}

}  // namespace
}  // namespace gantry::net
