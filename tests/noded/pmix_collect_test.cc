// Tests collective operations of PMIx servers that are joined by queues.
#include "noded/pmi/collect.h"

#include <doctest/doctest.h>

#include <deque>

#include "noded/pmi/wire.h"

namespace gantry::pmix {
namespace {

struct Letter {
  std::uint32_t from, to;
  std::string bytes;
};

// Servers whose messages wait until deliver(). Messages between two servers keep their order and
// are cut into small pieces.
class Servers {
 public:
  explicit Servers(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i)
      all_.push_back(std::make_unique<Collect>(
          i, count,
          [this, i, count](std::uint32_t to, std::string_view bytes) {
            for (std::uint32_t n = 0; n < count; ++n)
              if (n == to || (to == kAllOthers && n != i)) post(i, n, bytes);
          },
          [this, i](std::uint32_t from, std::uint32_t question, std::uint32_t rank) {
            all_[i]->answer(from, question, rank != 9, "data of " + std::to_string(rank));
          }));
  }
  Collect& operator[](std::uint32_t i) { return *all_[i]; }
  bool deliver() {
    bool good = true;
    while (!letters_.empty()) {
      const Letter letter = std::move(letters_.front());
      letters_.pop_front();
      good = all_[letter.to]->receive(letter.from, letter.bytes) && good;
    }
    return good;
  }

 private:
  void post(std::uint32_t from, std::uint32_t to, std::string_view bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += 5)
      letters_.push_back({from, to, std::string(bytes.substr(at, 5))});
  }
  std::vector<std::unique_ptr<Collect>> all_;
  std::deque<Letter> letters_;
};

Collect::Done into(std::string& text) {
  return [&text](bool good, const std::string& data) { text = (good ? "+" : "-") + data; };
}

TEST_CASE("in each round the parts of all nodes come back in the order of nodes") {
  Servers servers(3);
  std::string got[3], again[3];
  const std::set<std::uint32_t> all{0, 1, 2};
  servers[2].gather("*,", all, "c", into(got[2]));
  servers[0].gather("*,", all, "a", into(got[0]));
  // this server is one round ahead of the others
  servers[0].gather("*,", all, "A", into(again[0]));
  CHECK(servers.deliver());
  CHECK(got[2].empty());
  servers[1].gather("*,", all, "b", into(got[1]));
  CHECK(servers.deliver());
  for (const auto& text : got) CHECK(text == "+abc");
  servers[1].gather("*,", all, "B", into(again[1]));
  servers[2].gather("*,", all, "", into(again[2]));
  CHECK(servers.deliver());
  for (const auto& text : again) CHECK(text == "+AB");
}

TEST_CASE("a collective operation of some nodes does not need the others") {
  Servers servers(3);
  std::string one, got[2];
  servers[1].gather("1,", {1}, "alone", into(one));
  CHECK(one == "+alone");
  servers[0].gather("0,2,", {0, 2}, "x", into(got[0]));
  servers[2].gather("0,2,", {0, 2}, "z", into(got[1]));
  CHECK(servers.deliver());
  CHECK(got[0] == "+xz");
  CHECK(got[1] == "+xz");
}

TEST_CASE("a question about a rank is answered by the rank's node") {
  Servers servers(2);
  std::string first, second;
  servers[0].ask(1, 7, into(first));
  servers[0].ask(1, 9, into(second));
  CHECK(servers.deliver());
  CHECK(first == "+data of 7");
  CHECK(second == "-data of 9");
}

TEST_CASE("bytes that are no message are refused") {
  Servers servers(2);
  CHECK_FALSE(servers[0].receive(5, "abc"));
  CHECK_FALSE(servers[0].receive(1, std::string(13, '\xff')));
  std::string unknown;
  append_number(unknown, 0);
  append_number(unknown, 0);
  unknown += '\7';
  append_number(unknown, 0);
  CHECK_FALSE(servers[1].receive(0, unknown));
}

TEST_CASE("frames between shim and server are read back, and malformed ones are refused") {
  std::string bytes;
  append(bytes, Word::peer, 3, "hello");
  append(bytes, Word::ready, 0, "");
  std::size_t at = 0;
  Frame frame;
  CHECK(take(std::string_view(bytes).substr(0, 8), at, frame) == Taken::more);
  CHECK(take(bytes, at, frame) == Taken::frame);
  CHECK(frame.word == Word::peer);
  CHECK(frame.number == 3);
  CHECK(frame.bytes == "hello");
  CHECK(take(bytes, at, frame) == Taken::frame);
  CHECK(frame.word == Word::ready);
  CHECK(take(bytes, at, frame) == Taken::more);
  CHECK(at == bytes.size());
  at = 0;
  CHECK(take(std::string(9, '\xff'), at, frame) == Taken::malformed);
}

}  // namespace
}  // namespace gantry::pmix
