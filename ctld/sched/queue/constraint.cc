#include "ctld/sched/queue/constraint.h"

#include <algorithm>

#include <fmt/core.h>

namespace gantry::sched {
namespace {

bool is_feature_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-.:=/").find(c) != std::string_view::npos;
}

tl::unexpected<Error> refuse(std::string_view text, std::string_view why) {
  return fail(ErrorCode::invalid_argument,
              fmt::format("constraint \"{}\": {}", text.substr(0, 200), why));
}

}  // namespace

Result<Constraint> parse_constraint(std::string_view text) {
  Constraint result;
  if (text.empty()) return result;
  std::string word;
  std::vector<std::string> all;
  std::size_t count = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c =
        i < text.size() ? text[i] : '|';  // the end of the text ends the last alternative
    if (is_feature_char(c)) {
      word += c;
      continue;
    }
    if (c != '&' && c != '|')
      return refuse(text, fmt::format("'{}' is not supported; use feature names joined by & (all) "
                                      "and | (any)",
                                      c));
    if (word.empty()) return refuse(text, "a feature name is missing beside & or |");
    if (++count > kMaxConstraintFeatures)
      return refuse(text, fmt::format("more than {} features", kMaxConstraintFeatures));
    all.push_back(std::exchange(word, {}));
    if (c == '|') result.any_of_all.push_back(std::exchange(all, {}));
  }
  return result;
}

bool matches(const Constraint& constraint, std::span<const std::string> features) {
  if (constraint.any_of_all.empty()) return true;
  const auto has = [&](const std::string& f) {
    return std::binary_search(features.begin(), features.end(), f);
  };
  return std::any_of(constraint.any_of_all.begin(), constraint.any_of_all.end(),
                     [&](const auto& all) { return std::all_of(all.begin(), all.end(), has); });
}

std::string sandbox_feature(Sandbox level) {
  return fmt::format("sandbox {}", enum_name(level));
}

bool has_sandbox(const std::optional<Sandbox>& level, std::span<const std::string> features) {
  return !level || std::binary_search(features.begin(), features.end(), sandbox_feature(*level));
}

std::string ability_feature(NodeAbility ability) {
  return fmt::format("ability {}", enum_name(ability));
}

bool has_abilities(std::uint32_t abilities, std::span<const std::string> features) {
  if (abilities == 0) return true;
  for (const auto& [ability, name] : enum_names(NodeAbility{}))
    if ((abilities & bit_of(ability)) != 0 &&
        !std::binary_search(features.begin(), features.end(), ability_feature(ability)))
      return false;
  return true;
}

std::string wanted_of_nodes(const JobShape& shape) {
  std::string out = shape.constraint;
  const auto add = [&](const std::string& what) { out += (out.empty() ? "" : " and ") + what; };
  if (shape.sandbox) add(fmt::format("the sandbox {}", enum_name(*shape.sandbox)));
  for (const auto& [ability, name] : enum_names(NodeAbility{}))
    if ((shape.abilities & bit_of(ability)) != 0)
      add(fmt::format("a node daemon that knows of {}", name));
  return out;
}

}  // namespace gantry::sched
