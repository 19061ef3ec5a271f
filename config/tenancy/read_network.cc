#include "config/tenancy/read_network.h"

#include <fmt/core.h>

#include "common/text/network_range.h"
#include "config/tenancy/read_parts.h"
#include "config/values.h"

namespace gantry::tenancy {

Result<Peer> parse_peer(std::string_view text) {
  const auto space = text.find(' ');
  Peer out{std::string(text.substr(0, space)), {}};
  if (!config::is_word(out.tenant))
    return fail(ErrorCode::invalid_argument, not_a_name(out.tenant));
  if (space == std::string_view::npos) return out;
  ASSIGN(ports, parse_ports(text.substr(space + 1)));
  out.ports = to_string(*ports);
  return out;
}

std::string not_a_range(std::string_view text) {
  const auto range = parse_network_range(text);
  if (!range) return range.error().message;
  for (const std::string_view never : kNeverReached)
    if (parse_network_range(never)->holds(*range))
      return fmt::format("{} is within {}, which no job reaches", address_text(*range), never);
  return {};
}

Result<void> read_network_words(const Value& value, Form form, std::vector<std::string>& out) {
  ASSIGN(items, value.items());
  for (const Value& item : *items) {
    ASSIGN(text, item.text());
    std::string kept;
    if (form == Form::ranges) {
      if (const std::string wrong = not_a_range(*text); !wrong.empty()) return item.wrong(wrong);
      kept = to_string(*parse_network_range(*text));
    } else {
      const auto peer = parse_peer(*text);
      if (!peer) return item.wrong(peer.error().message);
      kept = peer->ports.empty() ? peer->tenant : peer->tenant + " " + peer->ports;
    }
    if (std::find(out.begin(), out.end(), kept) != out.end())
      return item.wrong(fmt::format("`{}` is there twice", kept));
    out.push_back(std::move(kept));
  }
  return {};
}

}  // namespace gantry::tenancy
