#include "gate/plan/observed.h"

#include <charconv>
#include <vector>

namespace gantry::gate {
namespace {

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> out;
  for (;;) {
    const std::size_t end = text.find(at);
    out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

template <class Each>
void each_line(std::string_view text, const Each& each) {
  for (const std::string_view line : split(text, '\n'))
    if (!line.empty()) each(line);
}

std::uint32_t number(std::string_view text) {
  std::uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Columns of the CSV that are looked at, by name: their places differ between releases.
struct Columns {
  std::size_t backend = 0, server = 0, waiting = 0, running = 0, most = 0, status = 0, weight = 0,
              address = 0;
  explicit Columns(const std::vector<std::string_view>& names) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == "qcur") waiting = i;
      if (names[i] == "svname") server = i;
      if (names[i] == "scur") running = i;
      if (names[i] == "slim") most = i;
      if (names[i] == "status") status = i;
      if (names[i] == "uweight") weight = i;
      if (names[i] == "addr") address = i;
    }
  }
};

ServerState state_of(std::string_view status) {
  if (status.starts_with("MAINT")) return ServerState::maint;
  if (status.starts_with("DRAIN")) return ServerState::drain;
  return ServerState::ready;
}

}  // namespace

Seen read_stat(std::string_view csv) {
  Seen out;
  std::optional<Columns> columns;
  each_line(csv, [&](std::string_view line) {
    if (line.starts_with("# ")) columns.emplace(split(line.substr(2), ','));
    if (line.starts_with('#') || !columns) return;
    const auto words = split(line, ',');
    const auto word = [&](std::size_t at) {
      return at < words.size() ? words[at] : std::string_view();
    };
    SeenBackend& backend = out[std::string(word(columns->backend))];
    const std::string_view name = word(columns->server);
    if (name == "BACKEND") {
      backend.waiting = number(word(columns->waiting));
      return;
    }
    SeenServer& server = backend.servers[std::string(name)];
    server.address = word(columns->address);
    server.weight = number(word(columns->weight));
    server.most = number(word(columns->most));
    server.state = state_of(word(columns->status));
    // Those that wait for this very server are told apart from those that are in it.
    server.running = number(word(columns->running));
  });
  return out;
}

std::map<std::string, std::uint32_t> read_held(std::string_view text) {
  std::map<std::string, std::uint32_t> out;
  each_line(text, [&](std::string_view line) {
    const std::size_t blank = line.find(' ');
    if (blank != std::string_view::npos)
      out[std::string(line.substr(0, blank))] = number(line.substr(blank + 1));
  });
  return out;
}

std::map<std::string, std::string> read_table(std::string_view text) {
  std::map<std::string, std::string> out;
  each_line(text, [&](std::string_view line) {
    const auto words = split(line, ' ');
    if (words.size() == 3) out[std::string(words[1])] = words[2];
  });
  return out;
}

}  // namespace gantry::gate
