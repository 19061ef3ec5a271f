// What commands say on standard error with -v.
#include <fmt/core.h>

#include <cstdlib>
#include <map>

#include "cli/slurm/frame.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

// Slurm shows times as it would print them, and other values as they were given.
std::string shown_value(const Given& given) {
  const Option& option = *given.option;
  if (option.arg == Arg::none || (option.arg == Arg::optional && given.value.empty())) return "set";
  if (option.name != "time" && option.name != "time-min") return given.value;
  const auto time = parse_duration(given.value);
  return time && *time ? format_duration_long(**time) : given.value;
}

}  // namespace

std::size_t verbosity_of(std::span<const Given> given) {
  std::size_t level = 0;
  for (const Given& one : given) {
    if (one.option->name != "verbose") continue;
    // A variable names a level; the option says one more each time.
    const int named = std::atoi(one.value.c_str());
    level = named > 0 ? static_cast<std::size_t>(named) : level + 1;
  }
  return level;
}

void list_options(const Invocation& call, std::span<const Given> given) {
  const std::size_t level = verbosity_of(given);
  if (level == 0) return;
  std::map<std::string_view, std::string> values;
  for (const Given& one : given) values[one.option->name] = shown_value(one);
  values["verbose"] = std::to_string(level);
  const auto say = [&](const std::string& text) {
    fmt::print(stderr, "{}: {}\n", call.program(), text);
  };
  const std::string rule = fmt::format("{0} {0}", std::string(20, '-'));
  say("defined options");
  say(rule);
  for (const auto& [name, value] : values) say(fmt::format("{:<20}: {}", name, value));
  say(rule);
  say("end of defined options");
  if (level < 2) return;
  for (const Given& one : given)
    say(fmt::format("debug:  {} comes from {}", shown_name(*one.option),
                    one.place.empty() ? "the command line" : one.place));
}

void list_values(const Invocation& call, std::span<const Given> given) {
  const std::size_t level = verbosity_of(given);
  if (level == 0) return;
  const std::string rule(29, '-');
  fmt::print(stderr, "{}\n", rule);
  for (const Option& option : call.command().options) {
    if (!option.refused.empty() || option.help.starts_with("The same")) continue;
    const Given* last = nullptr;
    for (const Given& one : given)
      if (one.option->name == option.name) last = &one;
    std::string value = option.arg != Arg::none ? "n/a" : "false";
    if (option.name == "iterate") value = "0";
    if (last != nullptr) value = option.arg == Arg::none ? "true" : last->value;
    if (option.name == "verbose") value = std::to_string(level);
    fmt::print(stderr, "{:<11} = {}\n", option.name, value);
  }
  fmt::print(stderr, "{}\n\n", rule);
}

}  // namespace gantry::cli::slurm
