// The parser: getopt_long's grammar over a table.
#include "cli/option.h"

#include <fmt/core.h>

#include <cstdlib>

#include "config/nearest.h"

namespace gantry::cli {
namespace {

tl::unexpected<Error> usage(std::string message) {
  return fail(ErrorCode::usage, std::move(message));
}

class Parser {
 public:
  Parser(std::span<const Option> options, std::span<const std::string> args, Spelling spelling)
      : options_(options), args_(args), spelling_(spelling) {}

  Result<Parsed> run(bool stop_at_operand) {
    while (at_ < args_.size()) {
      const std::string& arg = args_[at_++];
      if (arg == "--") {
        rest_are_operands();
        break;
      }
      Result<void> done;
      if (arg.starts_with("--")) {
        done = long_option(std::string_view(arg).substr(2));
      } else if (arg.size() > 1 && arg[0] == '-') {
        done = letters(std::string_view(arg).substr(1));
      } else {
        parsed_.operands.push_back(arg);
        if (stop_at_operand) rest_are_operands();
      }
      if (!done) return tl::unexpected(done.error());
    }
    return std::move(parsed_);
  }

 private:
  void rest_are_operands() {
    while (at_ < args_.size()) parsed_.operands.push_back(args_[at_++]);
  }

  void give(const Option& option, std::string_view value) {
    parsed_.given.push_back({&option, std::string(value), {}});
  }

  Result<void> long_option(std::string_view text) {
    const std::size_t equals = text.find('=');
    const std::string_view name = text.substr(0, equals);
    ASSIGN(found, find_long(name, text));
    const Option* option = *found;
    if (!option->refused.empty()) {
      give(*option, {});
      return {};  // the rest is ignored, because this option ends the command
    }
    if (equals != std::string_view::npos) {
      if (option->arg == Arg::none)
        return usage(fmt::format("option '--{}' doesn't allow an argument", option->name));
      give(*option, text.substr(equals + 1));
    } else if (option->arg == Arg::required) {
      if (at_ == args_.size())
        return usage(fmt::format("option '--{}' requires an argument", option->name));
      give(*option, args_[at_++]);
    } else {
      give(*option, {});
    }
    return {};
  }

  Result<const Option*> find_long(std::string_view name, std::string_view text) const {
    std::vector<const Option*> begin_so;
    for (const Option& candidate : options_) {
      if (candidate.name == name && !name.empty()) return &candidate;
      if (candidate.name.starts_with(name)) begin_so.push_back(&candidate);
    }
    if (spelling_ == Spelling::whole) return unknown(name);
    if (begin_so.empty()) return usage(fmt::format("unrecognized option '--{}'", text));
    if (begin_so.size() == 1) return begin_so.front();
    std::string possible;
    for (const Option* option : begin_so) possible += fmt::format(" '--{}'", option->name);
    return usage(fmt::format("option '--{}' is ambiguous; possibilities:{}", text, possible));
  }

  Result<void> letters(std::string_view text) {
    while (!text.empty()) {
      const char letter = text.front();
      text.remove_prefix(1);
      const Option* option = nullptr;
      for (const Option& candidate : options_)
        if (candidate.letter == letter) option = &candidate;
      if (option == nullptr) return usage(fmt::format("invalid option -- '{}'", letter));
      if (!option->refused.empty()) {
        give(*option, {});
        return {};
      }
      if (option->arg == Arg::none) {
        give(*option, {});
      } else if (option->arg == Arg::optional) {
        give(*option, text);
        return {};
      } else if (!text.empty()) {
        give(*option, text);
        return {};
      } else {
        if (at_ == args_.size())
          return usage(fmt::format("option requires an argument -- '{}'", letter));
        give(*option, args_[at_++]);
      }
    }
    return {};
  }

  tl::unexpected<Error> unknown(std::string_view name) const {
    std::vector<std::string_view> names;
    for (const Option& option : options_)
      if (option.refused.empty() && !option.name.empty()) names.push_back(option.name);
    const std::string_view near = nearest(name, names);
    if (near.empty()) return usage(fmt::format("unrecognized option '--{}'", name));
    return usage(fmt::format("unrecognized option '--{}'; did you mean '--{}'?", name, near));
  }

  std::span<const Option> options_;
  std::span<const std::string> args_;
  Spelling spelling_;
  std::size_t at_ = 0;
  Parsed parsed_;
};

}  // namespace

Result<Parsed> parse_options(std::span<const Option> options, std::span<const std::string> args,
                             bool stop_at_operand, Spelling spelling) {
  return Parser(options, args, spelling).run(stop_at_operand);
}

std::vector<Given> options_from_environment(std::span<const Option> options,
                                            std::span<const std::string_view> prefixes) {
  std::vector<Given> found;
  std::string name;
  for (std::string_view prefix : prefixes) {
    for (const Option& option : options) {
      if (option.env.empty()) continue;
      name.assign(prefix).append(option.env);
      const char* value = std::getenv(name.c_str());
      if (value == nullptr) continue;
      const std::string_view text = value;
      if (option.arg == Arg::none && (text == "0" || text == "no")) continue;
      found.push_back({&option, std::string(text), name});
    }
  }
  return found;
}

std::string shown_name(const Option& option) {
  return option.name.empty() ? fmt::format("-{}", option.letter) : fmt::format("--{}", option.name);
}

Result<void> apply_options(std::span<const Given> given, void* target) {
  for (const Given& g : given) {
    const std::string where = g.place.empty() ? std::string() : g.place + ": ";
    if (!g.option->refused.empty())
      return fail(ErrorCode::unsupported, fmt::format("{}{} is not supported: {}", where,
                                                      shown_name(*g.option), g.option->refused));
    if (const auto done = g.option->set(target, g.value); !done)
      return fail(done.error().code,
                  fmt::format("{}{}: {}", where, shown_name(*g.option), done.error().message));
  }
  return {};
}

}  // namespace gantry::cli
