#include "common/job/distribution.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "common/text/split.h"
#include "common/text/text.h"

namespace gantry {

namespace {

constexpr std::string_view kSocketOrders[] = {"block", "cyclic", "fcyclic"};

bool is_socket_order(std::string_view word) {
  return word == "*" || std::find(std::begin(kSocketOrders), std::end(kSocketOrders), word) !=
                            std::end(kSocketOrders);
}

tl::unexpected<Error> wrong_order(std::string_view text, std::string_view why) {
  return fail(ErrorCode::invalid_argument, fmt::format("\"{}\": {}", text, why));
}

// Removes ",pack" or ",nopack" from the end of the text; the text may also be only one of these
// words.
Result<bool> take_packing(std::string_view all, std::string_view& text) {
  const std::size_t comma = text.rfind(',');
  const std::string_view word = comma == std::string_view::npos ? text : text.substr(comma + 1);
  if (word != "pack" && word != "nopack") {
    if (comma != std::string_view::npos)
      return wrong_order(all, "behind a comma there is pack or nopack");
    return false;
  }
  if (comma == 0) return wrong_order(all, "before a comma there is an order of nodes");
  text = comma == std::string_view::npos ? std::string_view("*") : text.substr(0, comma);
  return word == "pack";
}

// The request, level by level, with "*" replaced by its meaning.
std::string words_of(std::string_view all, std::vector<std::string> levels) {
  const bool packing = all.ends_with("pack");
  const std::string_view packing_word = packing ? all.substr(all.rfind(',') + 1) : "";
  if (packing && all.find(',') == std::string_view::npos) return std::string(all);
  if (levels[0] == "*") levels[0] = "block";
  levels[0].erase(std::min(levels[0].find('='), levels[0].size()));
  if (levels.size() > 1 && levels[1] == "*") levels[1] = "cyclic";
  if (levels.size() > 2 && levels[2] == "*") levels[2] = levels[1];
  std::string out = fmt::format("{}", fmt::join(levels, ":"));
  return packing ? fmt::format("{},{}", out, packing_word) : out;
}

}  // namespace

Result<std::optional<Distribution>> parse_distribution(std::string_view text) {
  const std::string_view all = text;
  Distribution out;
  ASSIGN(packed, take_packing(all, text));
  out.pack = *packed;
  std::vector<std::string> levels = split(text, ':');
  if (levels.size() > 3) return wrong_order(all, "nodes, sockets and cores are three levels");
  const std::vector<std::string> asked = levels;
  levels.resize(3, "block");
  std::string_view nodes = levels[0];
  if (nodes.starts_with("plane=")) {
    ASSIGN(size, parse_integer("the number of tasks of a plane", nodes.substr(6), 1, 65'536));
    out.plane = static_cast<std::uint32_t>(*size);
    nodes = "plane";
  } else if (nodes == "plane") {
    return wrong_order(all, "a plane has a number of tasks: plane=4");
  }
  if (nodes != "block" && nodes != "*" && nodes != "cyclic" && nodes != "plane" &&
      nodes != "arbitrary")
    return wrong_order(all, "over the nodes there are block, cyclic, plane=N and arbitrary");
  if (!is_socket_order(levels[1]))
    return wrong_order(all, "over the sockets there are block, cyclic and fcyclic");
  if (!is_socket_order(levels[2]))
    return wrong_order(all, "over the cores of a socket there are block, cyclic and fcyclic");
  for (const auto& [order, name] : enum_names(NodeOrder{}))
    if (nodes == name) out.nodes = order;
  if (levels[1] == "cyclic" || levels[1] == "*") out.cores = CoreOrder::cyclic;
  if (levels[1] == "fcyclic") out.cores = CoreOrder::fcyclic;
  std::string words = words_of(all, asked);
  if (words != distribution_words(out)) out.words = std::move(words);
  return std::optional<Distribution>{out};
}

std::string format_distribution(const Distribution& distribution) {
  std::string out(enum_name(distribution.nodes));
  if (distribution.plane > 0) out += fmt::format("={}", distribution.plane);
  if (distribution.cores != CoreOrder::block) out.append(":").append(enum_name(distribution.cores));
  return out;
}

std::string distribution_words(const Distribution& distribution) {
  if (!distribution.words.empty()) return distribution.words;
  Distribution plain = distribution;
  plain.plane = 0;
  return format_distribution(plain);
}

}  // namespace gantry
