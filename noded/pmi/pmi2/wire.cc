#include "noded/pmi/pmi2/wire.h"

#include <algorithm>
#include <charconv>

namespace gantry::pmi2 {
namespace {

constexpr std::size_t kLengthSize = 6;
constexpr std::size_t kMaxShown = 60;
constexpr std::string_view kSpawn = "mcmd=spawn\n";
constexpr std::string_view kSpawnEnd = "endcmd\n";

bool add_word(std::string_view word, Command& out) {
  const std::size_t equals = word.find('=');
  if (equals == 0) return false;
  if (equals == std::string_view::npos) {
    // The reason of an abort may have several words, as its sender writes them.
    if (out.name != "abort" || out.values.empty()) return false;
    (out.values.back().second += ' ') += word;
    return true;
  }
  const std::string_view key = word.substr(0, equals), value = word.substr(equals + 1);
  if (!out.name.empty())
    out.values.emplace_back(key, value);
  else if (key == "cmd" && !value.empty())
    out.name = value;
  return !out.name.empty();
}

bool read_line(std::string_view line, Command& out) {
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    if (end > 0 && !add_word(line.substr(0, end), out)) return false;
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return !out.name.empty();
}

// Reads only as much of a spawn as is needed, because it is refused.
Taken take_spawn(std::string_view in, std::size_t& at, Command& out) {
  const std::size_t end = in.find("\nendcmd\n");
  if (end == std::string_view::npos)
    return in.size() > kMaxCommand ? Taken::malformed : Taken::more;
  at += end + 1 + kSpawnEnd.size();
  out.name = "spawn";
  const std::string_view body = in.substr(0, end + 1);
  for (const std::string_view key : {"totspawns", "spawnssofar"}) {
    const std::string wanted = "\n" + std::string(key) + "=";
    const std::size_t found = body.find(wanted);
    if (found == std::string_view::npos) continue;
    const std::size_t value = found + wanted.size();
    out.values.emplace_back(key, body.substr(value, body.find('\n', value) - value));
  }
  return Taken::command;
}

Taken take_line(std::string_view all, std::size_t& at, Command& out) {
  const std::string_view in = all.substr(at);
  if (in.starts_with(kSpawn)) return take_spawn(in, at, out);
  const std::size_t end = in.find('\n');
  if (std::min(end, in.size()) > kMaxCommand) return Taken::malformed;
  if (end == std::string_view::npos) return Taken::more;
  at += end + 1;
  return read_line(in.substr(0, end), out) ? Taken::command : Taken::malformed;
}

// Reads a value up to the semicolon that ends it. Returns false if there is no such semicolon.
bool read_value(std::string_view& body, std::string& out) {
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (body[i] == ';') {
      const bool twice = i + 1 < body.size() && body[i + 1] == ';';
      if (!twice) {
        body.remove_prefix(i + 1);
        return true;
      }
      ++i;
    }
    out += body[i];
  }
  return false;
}

bool read_body(std::string_view body, Command& out) {
  while (!body.empty()) {
    const std::size_t equals = body.find('=');
    if (equals == std::string_view::npos || equals == 0) return false;
    std::string key(body.substr(0, equals)), value;
    body.remove_prefix(equals + 1);
    if (!read_value(body, value)) return false;
    if (!out.name.empty())
      out.values.emplace_back(std::move(key), std::move(value));
    else if (key == "cmd" && !value.empty())
      out.name = std::move(value);
    else
      return false;
  }
  return !out.name.empty();
}

// Reads digits, which may have spaces on either side.
std::optional<std::size_t> read_length(std::string_view text) {
  const std::size_t first = std::min(text.find_first_not_of(' '), text.size());
  text.remove_prefix(first);
  text = text.substr(0, std::min(text.find(' '), text.size()));
  std::size_t length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return length;
}

Taken take_body(std::string_view in, std::size_t& at, Command& out) {
  if (in.size() - at < kLengthSize) return Taken::more;
  const auto length = read_length(in.substr(at, kLengthSize));
  if (!length || *length > kMaxCommand) return Taken::malformed;
  if (in.size() - at - kLengthSize < *length) return Taken::more;
  const std::string_view body = in.substr(at + kLengthSize, *length);
  at += kLengthSize + *length;
  return read_body(body, out) ? Taken::command : Taken::malformed;
}

}  // namespace

std::optional<std::string_view> Command::find(std::string_view key) const {
  for (const auto& [name, value] : values)
    if (name == key) return value;
  return std::nullopt;
}

Taken take(Version version, std::string_view in, std::size_t& at, Command& out) {
  out = {};
  return version == Version::v2 ? take_body(in, at, out) : take_line(in, at, out);
}

Reply::Reply(Version version, std::string_view name) : version_(version), text_("cmd=") {
  text_ += name;
  if (version_ == Version::v2) text_ += ';';
}

Reply& Reply::add(std::string_view key, std::string_view value) {
  if (version_ != Version::v2) text_ += ' ';
  (text_ += key) += '=';
  for (const char c : value) {
    text_ += c;
    if (version_ == Version::v2 && c == ';') text_ += c;
  }
  if (version_ == Version::v2) text_ += ';';
  return *this;
}

Reply& Reply::result(int rc, std::string_view why) {
  add("rc", rc);
  if (why.empty()) return *this;
  if (version_ == Version::v2) return add("errmsg", why);
  std::string word(why);
  std::replace(word.begin(), word.end(), ' ', '_');
  return add("msg", word);
}

std::string Reply::bytes() const {
  if (version_ != Version::v2) return text_ + '\n';
  std::string out = std::to_string(text_.size());
  out.resize(kLengthSize, ' ');
  return out + text_;
}

std::string process_mapping(const std::vector<std::uint32_t>& tasks) {
  std::string out = "(vector";
  for (std::size_t first = 0, end = 0; first < tasks.size(); first = end) {
    while (end < tasks.size() && tasks[end] == tasks[first]) ++end;
    out += ",(" + std::to_string(first) + "," + std::to_string(end - first) + "," +
           std::to_string(tasks[first]) + ")";
  }
  return out + ")";
}

std::string shown(std::string_view bytes) {
  std::string out(bytes.substr(0, kMaxShown));
  for (char& c : out)
    if (c < ' ' || c > '~') c = '?';
  return bytes.size() > kMaxShown ? out + "..." : out;
}

}  // namespace gantry::pmi2
