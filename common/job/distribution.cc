#include "common/job/distribution.h"

#include <fmt/core.h>

#include <vector>

#include "common/text/split.h"
#include "common/text/text.h"

namespace gantry {

Result<std::optional<Distribution>> parse_distribution(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return fail(ErrorCode::invalid_argument, fmt::format("\"{}\": {}", text, why));
  };
  std::vector<std::string> levels = split(text, ':');
  if (levels.size() > 3) return wrong("nodes, sockets and cores are three levels");
  levels.resize(3, "*");
  std::string_view nodes = levels[0];
  Distribution out;
  if (nodes.starts_with("plane=")) {
    const auto size = parse_integer("the number of tasks of a plane", nodes.substr(6), 1, 65'536);
    if (!size) return tl::unexpected(size.error());
    out.plane = static_cast<std::uint32_t>(*size);
    nodes = "plane";
  } else if (nodes == "plane") {
    return wrong("a plane has a number of tasks: plane=4");
  }
  const std::string_view sockets = levels[1], cores = levels[2];
  if (nodes != "block" && nodes != "*" && nodes != "cyclic" && nodes != "plane" &&
      nodes != "arbitrary")
    return wrong("over the nodes there are block, cyclic, plane=N and arbitrary");
  if (sockets != "block" && sockets != "*" && sockets != "cyclic" && sockets != "fcyclic")
    return wrong("over the sockets there are block, cyclic and fcyclic");
  if (cores != "block" && cores != "*")
    return wrong("within a socket tasks are laid out block by block");
  for (const auto& [order, name] : enum_names(NodeOrder{}))
    if (nodes == name) out.nodes = order;
  if (sockets == "cyclic") out.cores = CoreOrder::cyclic;
  if (sockets == "fcyclic") out.cores = CoreOrder::fcyclic;
  if (nodes == "*" && out.cores == CoreOrder::block) return std::optional<Distribution>{};
  return std::optional<Distribution>{out};
}

std::string format_distribution(const Distribution& distribution) {
  std::string out(enum_name(distribution.nodes));
  if (distribution.plane > 0) out += fmt::format("={}", distribution.plane);
  if (distribution.cores != CoreOrder::block) out.append(":").append(enum_name(distribution.cores));
  return out;
}

}  // namespace gantry
