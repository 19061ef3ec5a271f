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
  const std::string_view nodes = levels[0], sockets = levels[1], cores = levels[2];
  if (nodes != "block" && nodes != "*" && nodes != "cyclic")
    return wrong("over the nodes there are block and cyclic");
  if (sockets != "block" && sockets != "*" && sockets != "cyclic" && sockets != "fcyclic")
    return wrong("over the sockets there are block, cyclic and fcyclic");
  if (cores != "block" && cores != "*")
    return wrong("within a socket tasks are laid out block by block");
  Distribution out;
  if (nodes == "cyclic") out.nodes = NodeOrder::cyclic;
  if (sockets == "cyclic") out.cores = CoreOrder::cyclic;
  if (sockets == "fcyclic") out.cores = CoreOrder::fcyclic;
  if (nodes == "*" && out.cores == CoreOrder::block) return std::optional<Distribution>{};
  return std::optional<Distribution>{out};
}

std::string format_distribution(const Distribution& distribution) {
  std::string out(enum_name(distribution.nodes));
  if (distribution.cores != CoreOrder::block) out.append(":").append(enum_name(distribution.cores));
  return out;
}

}  // namespace gantry
