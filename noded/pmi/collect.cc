// Collect's messages between servers. Each has u32 size of a, u32 size of b, u8 kind, u32 number,
// a, b; what a, b and number mean depends on the kind.
#include "noded/pmi/collect.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <mutex>

namespace gantry::pmix {

namespace {

constexpr char kPart = 1;      // a = which collective, b = this server's part
constexpr char kQuestion = 2;  // number, a = rank whose data is requested
constexpr char kAnswer = 3;    // number, a = "1" for success, b = the data
constexpr std::size_t kHead = 13;

std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string as_bytes(std::uint32_t value) {
  std::string out;
  append_number(out, value);
  return out;
}

std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> out(1);
  for (const char c : list) {
    if (c == ',')
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

}  // namespace

void Collect::send(std::uint32_t node, char kind, std::uint32_t number, std::string_view a,
                   std::string_view b) {
  std::string out;
  append_number(out, static_cast<std::uint32_t>(a.size()));
  append_number(out, static_cast<std::uint32_t>(b.size()));
  out += kind;
  append_number(out, number);
  out += a;
  out += b;
  send_(node, out);
}

void Collect::answer(std::uint32_t node, std::uint32_t question, bool good, std::string_view data) {
  send(node, kAnswer, question, good ? "1" : "0", data);
}

bool Collect::receive(std::uint32_t node, std::string_view bytes) {
  if (node >= nodes_) return false;
  std::string& in = partial_[node];
  in += bytes;
  std::size_t at = 0;
  while (in.size() - at >= kHead) {
    const std::size_t a = number_at(in, at), b = number_at(in, at + 4);
    if (a > kMaxBytes || b > kMaxBytes) return false;
    if (in.size() - at < kHead + a + b) break;
    const std::string_view body = std::string_view(in).substr(at + kHead, a + b);
    if (!take(node, in[at + 8], number_at(in, at + 9), body.substr(0, a), body.substr(a)))
      return false;
    at += kHead + a + b;
  }
  in.erase(0, at);
  return true;
}

bool Collect::take(std::uint32_t node, char kind, std::uint32_t number, std::string_view a,
                   std::string_view b) {
  if (kind == kPart) {
    const std::string id(a);
    gatherings_[id].parts[node] = b;
    look(id);
  } else if (kind == kQuestion && a.size() == sizeof number) {
    asked_(node, number, number_at(a, 0));
  } else if (kind == kAnswer) {
    const auto it = questions_.find(number);
    if (it == questions_.end()) return true;
    const Done done = std::move(it->second);
    questions_.erase(it);
    done(a == "1", std::string(b));
  } else {
    return false;
  }
  return true;
}

void Collect::gather(const std::string& who, const std::set<std::uint32_t>& among, std::string part,
                     Done done) {
  const std::string id = who + "#" + std::to_string(rounds_[who]++);
  if (among.size() == nodes_ && nodes_ > 1) {
    send(kAllOthers, kPart, 0, id, part);
  } else {
    for (const std::uint32_t node : among)
      if (node != self_) send(node, kPart, 0, id, part);
  }
  Gathering& gathering = gatherings_[id];
  gathering.parts[self_] = std::move(part);
  gathering.among = among;
  gathering.done = std::move(done);
  look(id);
}

bool Collect::awaited(const std::string& who) const {
  const auto begun = rounds_.find(who);
  const std::uint32_t next = begun == rounds_.end() ? 0 : begun->second;
  return gatherings_.count(who + "#" + std::to_string(next)) != 0;
}

std::optional<std::uint32_t> Collect::waits_for(const std::string& who,
                                                const std::set<std::uint32_t>& nodes) const {
  const auto begun = rounds_.find(who);
  if (begun == rounds_.end()) return std::nullopt;
  const auto last = gatherings_.find(who + "#" + std::to_string(begun->second - 1));
  if (last == gatherings_.end()) return std::nullopt;
  for (const std::uint32_t node : nodes)
    if (last->second.among.count(node) != 0 && last->second.parts.count(node) == 0) return node;
  return std::nullopt;
}

void Collect::look(const std::string& id) {
  const auto it = gatherings_.find(id);
  if (it->second.among.empty() || it->second.parts.size() < it->second.among.size()) return;
  Gathering whole = std::move(it->second);
  gatherings_.erase(it);
  std::string all;
  for (const auto& [node, part] : whole.parts) all += part;
  whole.done(true, all);
}

void Collect::ask(std::uint32_t node, std::uint32_t rank, Done done) {
  const std::uint32_t question = next_question_++;
  questions_[question] = std::move(done);
  send(node, kQuestion, question, as_bytes(rank), "");
}

std::uint32_t Layout::first_rank(std::uint32_t node) const {
  std::uint32_t rank = 0;
  for (std::uint32_t n = 0; n < node; ++n) rank += tasks[n];
  return rank;
}

std::uint32_t Layout::node_of(std::uint32_t rank) const {
  std::uint32_t node = 0;
  for (std::uint32_t first = 0; node + 1 < nodes.size(); ++node) {
    first += tasks[node];
    if (rank < first) break;
  }
  return node;
}

std::optional<Layout> read_layout(int argc, char** argv) {
  if (argc != 5) return std::nullopt;
  Layout layout;
  layout.name = argv[1];
  layout.self = static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10));
  layout.nodes = words_of(argv[3]);
  for (const auto& word : words_of(argv[4]))
    layout.tasks.push_back(static_cast<std::uint32_t>(std::strtoul(word.c_str(), nullptr, 10)));
  if (layout.tasks.size() != layout.nodes.size() || layout.self >= layout.nodes.size())
    return std::nullopt;
  return layout;
}

void say(Word word, std::uint32_t number, std::string_view bytes) {
  static std::mutex writing;
  std::string out;
  append(out, word, number, bytes);
  const std::lock_guard lock(writing);
  for (std::size_t at = 0; at < out.size();) {
    const ssize_t n = ::send(kSocket, out.data() + at, out.size() - at, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) ::_exit(1);
    at += static_cast<std::size_t>(n);
  }
}

void say_to_peer(std::uint32_t node, std::string_view bytes) {
  for (; !bytes.empty(); bytes.remove_prefix(std::min<std::size_t>(bytes.size(), kMaxPeerBytes)))
    say(Word::peer, node, bytes.substr(0, kMaxPeerBytes));
}

void say_abort(std::uint32_t rank, int status, const std::string& why) {
  say(Word::abort, rank, std::string(reinterpret_cast<const char*>(&status), sizeof status) + why);
}

}  // namespace gantry::pmix
