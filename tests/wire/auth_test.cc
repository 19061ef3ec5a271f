// Identity: munge with a daemon that the test starts, registered keys, signatures, tokens, and user
// lookup.
#include <doctest/doctest.h>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "common/auth/munge.h"
#include "common/auth/registered_key.h"
#include "common/auth/signature.h"
#include "common/auth/token.h"
#include "common/auth/users.h"
#include "tests/skip.h"

namespace gantry::auth {
namespace {

struct TempDir {
  std::string path;
  TempDir() {
    char name[] = "/tmp/gantry-auth-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path = name;
    chmod(path.c_str(), 0755);
  }
  ~TempDir() { std::filesystem::remove_all(path); }
};

// A munged with its own key and socket. It ends with the test.
class Munged {
 public:
  explicit Munged(const TempDir& dir, const std::string& name) : socket_(dir.path + "/" + name) {
    const std::string key = socket_ + ".key";
    std::ofstream(key) << std::string(1024, static_cast<char>('k' + name.size()));
    chmod(key.c_str(), 0600);
    pid_ = fork();
    if (pid_ == 0) {
      const int null = open("/dev/null", O_RDWR);
      dup2(null, 1);
      dup2(null, 2);
      const std::string log = "--log-file=" + socket_ + ".log";
      const std::string pid = "--pid-file=" + socket_ + ".pid";
      const std::string seed = "--seed-file=" + socket_ + ".seed";
      const std::string key_file = "--key-file=" + key;
      const std::string path = "--socket=" + socket_;
      execlp("munged", "munged", "--foreground", "--force", "--num-threads=1", log.c_str(),
             pid.c_str(), seed.c_str(), key_file.c_str(), path.c_str(), nullptr);
      _exit(127);
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!usable() && std::chrono::steady_clock::now() < end)
      // tidy-allow(sleep): munged does not report when it is ready
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ~Munged() {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] MungeOptions options() const { return {.socket = socket_, .lifetime_seconds = 60}; }
  [[nodiscard]] bool usable() const {
    return munge_encode(net::generate_key_pair().public_key, options()).has_value();
  }

 private:
  std::string socket_;
  pid_t pid_ = -1;
};

bool have_munged() {
  return access("/usr/sbin/munged", X_OK) == 0;
}

TEST_CASE("a munge credential holds for one user, once, for one session, in one realm") {
  if (!have_munged()) SKIP_CASE("munged is not installed");
  const TempDir dir;
  const Munged here(dir, "here");
  const Munged elsewhere(dir, "elsewhere");
  REQUIRE(here.usable());
  const net::PublicKey session = net::generate_key_pair().public_key;

  const auto credential = munge_encode(session, here.options());
  REQUIRE_MESSAGE(credential, credential.error().message);
  const auto who = munge_decode(*credential, session, here.options());
  REQUIRE_MESSAGE(who, who.error().message);
  CHECK(who->uid == Uid(getuid()));
  CHECK(who->gid == Gid(getgid()));

  const auto refused = [&](std::string_view c, const net::PublicKey& for_session,
                           const Munged& daemon) {
    const auto got = munge_decode(c, for_session, daemon.options());
    REQUIRE_FALSE(got);
    CHECK(got.error().code == ErrorCode::unauthenticated);
    return got.error().message;
  };
  CHECK(refused(*credential, session, here).find("eplayed") != std::string::npos);
  const Bytes second = *munge_encode(session, here.options());
  CHECK(refused(second, session, elsewhere).find("refused") != std::string::npos);
  CHECK(refused(second, net::generate_key_pair().public_key, here).find("another connection") !=
        std::string::npos);
  CHECK(refused("MUNGE:nonsense:", session, here).find("refused") != std::string::npos);
  CHECK(refused("", session, here).find("refused") != std::string::npos);
  CHECK(refused(std::string_view("MUNGE:\0:", 8), session, here).find("zero byte") !=
        std::string::npos);

  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 50; ++i)
    CHECK(munge_decode(*munge_encode(session, here.options()), session, here.options()));
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  MESSAGE(fmt::format("munge encode and decode: {:.0f} us", took.count() / 50));
}

TEST_CASE("a missing munge daemon is no verdict on the client") {
  const MungeOptions nowhere{.socket = "/tmp/gantry-no-munged.socket"};
  const net::PublicKey session{};
  CHECK(munge_encode(session, nowhere).error().code == ErrorCode::unavailable);
}

TEST_CASE("a key credential holds for one session, around one time, and for its holder only") {
  const SigningKey key = generate_signing_key();
  const net::PublicKey session = net::generate_key_pair().public_key;
  const Instant now{1'700'000'000'000'000};
  const Bytes credential = make_key_credential(key, session, now);
  CHECK(*check_key_credential(credential, session, now) == key.verify_key);
  CHECK(check_key_credential(credential, session, now + kCredentialSkew));
  CHECK(check_key_credential(credential, session, now - kCredentialSkew));

  const auto refused = [&](std::string_view c, const net::PublicKey& s, Instant t) {
    const auto got = check_key_credential(c, s, t);
    REQUIRE_FALSE(got);
    CHECK(got.error().code == ErrorCode::unauthenticated);
  };
  refused(credential, session, now + kCredentialSkew + Duration{1});
  refused(credential, session, now - kCredentialSkew - Duration{1});
  refused(credential, net::generate_key_pair().public_key, now);
  refused("", session, now);
  refused("\x80", session, now);
  // A change of any byte makes the credential invalid.
  for (std::size_t i = 0; i < credential.size(); ++i) {
    Bytes damaged = credential;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    const auto got = check_key_credential(damaged, session, now);
    CHECK_UNARY(!got);
  }
}

TEST_CASE("a signature is bound to the key, the context and every bit of the text") {
  const SigningKey key = generate_signing_key();
  const Bytes signature = sign(key, "step", "permission");
  CHECK(signature.size() == kSignatureBytes);
  CHECK(verify(key.verify_key, "step", "permission", signature));
  CHECK_FALSE(verify(key.verify_key, "steppe", "rmission", signature));
  CHECK_FALSE(verify(key.verify_key, "", "permission", signature));
  CHECK_FALSE(verify(key.verify_key, "step", "permissioN", signature));
  CHECK_FALSE(verify(generate_signing_key().verify_key, "step", "permission", signature));
  CHECK_FALSE(verify(key.verify_key, "step", "permission", signature.substr(1)));
  CHECK_FALSE(verify(key.verify_key, "step", "permission", ""));
  CHECK(signing_key_from_seed(key.seed).verify_key == key.verify_key);
}

TEST_CASE("signing keys are saved privately, never overwritten, and read back") {
  const TempDir dir;
  const std::string path = dir.path + "/sign.key";
  const SigningKey key = generate_signing_key();
  REQUIRE(save_signing_key(path, key));
  CHECK(load_signing_key(path)->seed == key.seed);
  CHECK(save_signing_key(path, key).error().code == ErrorCode::already_exists);
  CHECK(*parse_verify_key(net::to_hex(key.verify_key.view())) == key.verify_key);
  CHECK(parse_verify_key("abc").error().code == ErrorCode::invalid_argument);
  chmod(path.c_str(), 0644);
  CHECK(load_signing_key(path).error().code == ErrorCode::permission_denied);
  chmod(path.c_str(), 0600);
  std::ofstream(path) << "verify " << net::to_hex(generate_signing_key().verify_key.view())
                      << "\nseed " << net::to_hex(key.seed.view()) << "\n";
  CHECK(load_signing_key(path).error().code == ErrorCode::malformed);
}

TEST_CASE("a token follows RFC 7519, and holds until its end for its own key only") {
  const SigningSeed key = generate_signing_key().seed;
  const Instant now{1'800'000'000'000'000};
  const Token made{"alice \"x\"", now, now + minutes(30)};
  const std::string text = make_token(key, made);
  const auto read = check_token(key, text, now + minutes(29));
  REQUIRE(read);
  CHECK(read->user == made.user);
  CHECK(read->issued == made.issued);
  CHECK(read->expires == made.expires);
  const auto why = [&](const std::string& token, Instant at) {
    const auto checked = check_token(key, token, at);
    return checked ? std::string("fine") : checked.error().message;
  };
  CHECK(why(text, now + minutes(30)) == "the token is no longer valid");
  CHECK(why(text, now - minutes(6)) == "the token is from the future: check the clocks");
  CHECK(why("", now) == "this is no token: it has not three parts");
  CHECK(why("a.b", now) == "this is no token: it has not three parts");
  CHECK(why("!.b.c", now) == "the token's header is not base64");
  CHECK(why("YQ.b.c", now).starts_with("the token's header is none: "));
  CHECK(why(std::string(5000, '.'), now) == "this is no token: it has not three parts");
  CHECK(check_token(generate_signing_key().seed, text, now).error().message ==
        "the token is not signed by this controller");
  const std::size_t first = text.find('.');
  const std::size_t last = text.rfind('.');
  // A token with another body is refused, and so is one with another method of signing.
  CHECK(why(text.substr(0, first) + ".e30" + text.substr(last), now) ==
        "the token is not signed by this controller");
  CHECK(why("eyJhbGciOiJub25lIn0" + text.substr(first), now) ==  // this header is {"alg":"none"}
        "the token is not signed by HS256");
  for (std::size_t i = last + 1; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    CHECK_FALSE(check_token(key, changed, now));
  }
  CHECK(text.substr(0, first) == "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9");
}

TEST_CASE("users are found by number and by name, and unknown users are reported") {
  const auto root = find_user(Uid(0));
  REQUIRE(root);
  CHECK(root->user == "root");
  CHECK(root->home == "/root");
  CHECK_FALSE(root->shell.empty());
  CHECK(*find_user(std::string("root")) == *root);
  CHECK(find_user(Uid(4'123'456'789)).error().code == ErrorCode::not_found);
  CHECK(find_user(std::string("no-such-user")).error().code == ErrorCode::not_found);
  CHECK(find_user(std::string("no-such-user")).error().message ==
        "there is no user \"no-such-user\" on this machine");

  UserCache cache;
  CHECK(cache.find(Uid(0), Instant{0})->user == "root");
  CHECK(cache.find(Uid(0), Instant{1})->user == "root");
  CHECK(cache.find(Uid(4'123'456'789), Instant{1}).error().code == ErrorCode::not_found);
}

}  // namespace
}  // namespace gantry::auth
