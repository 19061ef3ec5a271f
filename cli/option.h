// Options of commands, declared once per command as constant tables. Parsing, --help, the man
// pages, bash completion, environment variables and #SBATCH directives are all made from them.
//
// Options are spelled as Slurm spells them (getopt_long): --key=v, --key v, -kv, -k v, and joined
// letters as in `-aho FMT`. No option is accepted and ignored: an option that Slurm has and Gantry
// has not is in the table with a sentence that says why, and the refusal shows that sentence.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "common/result.h"
#include "common/text/split.h"
#include "common/text/text.h"

namespace gantry::cli {

// `optional` means that the argument is given only as --key=v.
enum class Arg : std::uint8_t { none, required, optional };

// Stores a value in the command's own struct; see put<> and call<> below.
using Setter = Result<void> (*)(void* target, std::string_view value);

struct Option {
  std::string_view name;  // long name, without "--"
  char letter = 0;        // short name; 0 = none
  Arg arg = Arg::none;
  std::string_view value = {};  // name of the argument in the help: "TIME"
  std::string_view help = {};   // one sentence without a full stop
  Setter set = nullptr;
  std::string_view env = {};  // "PARTITION": SBATCH_PARTITION and GBATCH_PARTITION set the option
  bool directive = true;      // may be in a script (gbatch)
  // Reason for refusing this option of Slurm; empty = the option works.
  std::string_view refused = {};

  constexpr Option from_env(std::string_view variable) const {
    Option out = *this;
    out.env = variable;
    return out;
  }
  constexpr Option not_in_scripts() const {
    Option out = *this;
    out.directive = false;
    return out;
  }
};

// Rows of tables of options: an option without an argument, one with an argument, one with an
// optional argument (--key=v), and a Slurm option that is refused with a reason.
constexpr Option flag(std::string_view name, char letter, std::string_view help, Setter set) {
  return {.name = name, .letter = letter, .help = help, .set = set};
}
constexpr Option flag(std::string_view name, std::string_view help, Setter set) {
  return flag(name, 0, help, set);
}
constexpr Option takes(std::string_view name, char letter, std::string_view value,
                       std::string_view help, Setter set) {
  return {name, letter, Arg::required, value, help, set};
}
constexpr Option takes(std::string_view name, std::string_view value, std::string_view help,
                       Setter set) {
  return takes(name, 0, value, help, set);
}
constexpr Option may_take(std::string_view name, char letter, std::string_view value,
                          std::string_view help, Setter set) {
  return {name, letter, Arg::optional, value, help, set};
}
constexpr Option may_take(std::string_view name, std::string_view value, std::string_view help,
                          Setter set) {
  return may_take(name, 0, value, help, set);
}
constexpr Option refuses(std::string_view name, char letter, std::string_view reason) {
  return {.name = name, .letter = letter, .refused = reason};
}
constexpr Option refuses(std::string_view name, std::string_view reason) {
  return refuses(name, 0, reason);
}

// An option as the user gave it, and where: "" is the command line, otherwise it is a place like
// "job.sh:3" or the name of a variable.
struct Given {
  const Option* option = nullptr;
  std::string value;
  std::string place;
};

struct Parsed {
  std::vector<Given> given;
  std::vector<std::string> operands;
};

// How an option may be written. whole: only the full name. getopt: as Slurm's commands allow it,
// where the beginning of a name is enough if no other option begins with it; no similar name is
// suggested for an unknown option.
enum class Spelling : std::uint8_t { whole, getopt };

// Parses options, which may stand anywhere among the operands. With stop_at_operand the first
// operand ends the options. Errors have the code usage and getopt's texts.
Result<Parsed> parse_options(std::span<const Option> options, std::span<const std::string> args,
                             bool stop_at_operand, Spelling spelling = Spelling::whole);

// Reads options from the environment. The variable of an option is PREFIX + env; if several
// prefixes have one, the later prefix wins. A flag is on when its variable exists and is not "0" or
// "no".
std::vector<Given> options_from_environment(std::span<const Option> options,
                                            std::span<const std::string_view> prefixes);

// Calls the setters in order. An error names the option and the place where it was given.
Result<void> apply_options(std::span<const Given> given, void* target);

// The option's name for messages: "--time" or "-t".
std::string shown_name(const Option& option);

// Joins tables into one, in a constant expression. A table is a C array or a std::array.
template <class Table>
inline constexpr std::size_t kRows = std::extent_v<Table>;
template <std::size_t N>
inline constexpr std::size_t kRows<std::array<Option, N>> = N;

template <class... Tables>
constexpr auto join(const Tables&... tables) {
  std::array<Option, (kRows<Tables> + ...)> all{};
  std::size_t at = 0;
  ((std::copy(std::begin(tables), std::end(tables), all.begin() + at), at += kRows<Tables>), ...);
  return all;
}

// ---- setters

template <class C, class M>
C class_of(M C::*);
template <class L, class C, class R>
C class_of(R (L::*)(C&) const);
template <class Where>
consteval auto target_of(Where where) {
  if constexpr (std::is_member_pointer_v<Where>)
    return std::type_identity<decltype(class_of(where))>{};
  else
    return std::type_identity<decltype(class_of(&Where::operator()))>{};
}

// AT(Struct, member.of.member): a place for the setters below, which also take &Struct::member.
#define AT(Struct, path)     \
  [](Struct & of) -> auto& { \
    return of.path;          \
  }

// Target is a template parameter, and not only deduced inside, to distinguish the functions of two
// commands that each have a struct of the same name in an unnamed namespace: with a member pointer
// alone, g++ 12 makes one symbol of both.
template <auto Where>
using TargetOf = typename decltype(target_of(Where))::type;
template <auto Where, class Target = TargetOf<Where>>
constexpr auto& place_in(void* target) {
  return std::invoke(Where, *static_cast<Target*>(target));
}

// Sets a place according to its type: a bool becomes true, texts and optional texts are assigned,
// and a list gets the items that commas separate (a repeated option adds to it).
template <auto Where, class Target = TargetOf<Where>>
Result<void> put(void* target, std::string_view value) {
  auto& member = place_in<Where, Target>(target);
  using Type = std::remove_reference_t<decltype(member)>;
  if constexpr (std::is_same_v<Type, bool>) {
    member = true;
  } else if constexpr (std::is_same_v<Type, std::vector<std::string>>) {
    for (std::string& item : split_list(value)) member.push_back(std::move(item));
  } else {
    member = std::string(value);
  }
  return {};
}

// Sets a place (of any type) to a constant.
template <auto Where, auto Value, class Target = TargetOf<Where>>
Result<void> put_value(void* target, std::string_view) {
  place_in<Where, Target>(target) = Value;
  return {};
}

// Sets a place to what Parse makes of the value.
template <auto Parse, auto Where, class Target = TargetOf<Where>>
Result<void> parsed(void* target, std::string_view value) {
  auto made = Parse(value);
  if constexpr (requires { made.error(); }) {
    if (!made) return tl::unexpected(std::move(made).error());
    place_in<Where, Target>(target) = std::move(*made);
  } else {
    place_in<Where, Target>(target) = std::move(made);
  }
  return {};
}

// Sets a place to a number. An error names it: "the number of nodes".
template <std::size_t N>
struct NumberName {
  char text[N];
  consteval NumberName(const char (&name)[N]) { std::copy_n(name, N, text); }
};
template <NumberName Name, std::int64_t Least, std::int64_t Most, auto Where,
          class Target = TargetOf<Where>>
Result<void> number(void* target, std::string_view value) {
  ASSIGN(n, parse_integer(Name.text, value, Least, Most));
  auto& member = place_in<Where, Target>(target);
  if constexpr (requires { member.reset(); })
    member = static_cast<typename std::remove_reference_t<decltype(member)>::value_type>(*n);
  else
    member = static_cast<std::remove_reference_t<decltype(member)>>(*n);
  return {};
}

// Sets a place to a time; the target has the present time as `now`.
template <auto Where, TimeSense Sense = TimeSense::coming, class Target = TargetOf<Where>>
Result<void> put_time(void* target, std::string_view value) {
  ASSIGN(time, parse_time(value, static_cast<Target*>(target)->now, Sense));
  place_in<Where, Target>(target) = *time;
  return {};
}

// Calls a function of the target alone, for options without an argument.
template <auto Function, class Target = TargetOf<Function>>
Result<void> does(void* target, std::string_view) {
  Function(*static_cast<Target*>(target));
  return {};
}

template <class T>
T first_argument(Result<void> (*)(T&, std::string_view));

// Calls Function(target, value).
template <auto Function>
Result<void> call(void* target, std::string_view value) {
  return Function(*static_cast<decltype(first_argument(Function))*>(target), value);
}

}  // namespace gantry::cli
