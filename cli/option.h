// Options of commands, declared once per command as constant tables. Parsing, --help, the man
// pages, bash completion, environment variables and #SBATCH directives all come from them.
//
// Spellings are Slurm's (getopt_long): --key=v, --key v, -kv, -k v, and joined letters as in
// `-aho FMT`. An option is never accepted and ignored: one that Slurm has and Gantry has not stands
// in the table with a sentence why, and is refused with it.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "common/result.h"
#include "common/text/split.h"

namespace gantry::cli {

enum class Arg : std::uint8_t { none, required, optional };  // optional: only as --key=v

// Puts a value into the command's own struct; see put<> and call<> below.
using Setter = Result<void> (*)(void* target, std::string_view value);

struct Option {
  std::string_view name;  // long, without "--"
  char letter = 0;        // short; 0 = none
  Arg arg = Arg::none;
  std::string_view value = {};  // name of the argument in the help: "TIME"
  std::string_view help = {};   // one sentence without a full stop
  Setter set = nullptr;
  std::string_view env = {};      // PARTITION: read from SBATCH_PARTITION and GBATCH_PARTITION
  bool directive = true;          // may stand in a script (gbatch)
  std::string_view refused = {};  // not empty: known from Slurm; this is why it is refused
};

// An option as it was given, and where: "" = the command line, else "job.sh:3" or a variable.
struct Given {
  const Option* option = nullptr;
  std::string value;
  std::string place;
};

struct Parsed {
  std::vector<Given> given;
  std::vector<std::string> operands;
};

// How long options may be spelled. getopt: as Slurm's commands take them, where the beginning of a
// name is enough if no other option begins so, and nothing is suggested for one that is unknown.
enum class Spelling : std::uint8_t { whole, getopt };

// Options may stand anywhere, unless stop_at_operand: then the first operand ends them.
// Errors have the code usage and getopt's words.
Result<Parsed> parse_options(std::span<const Option> options, std::span<const std::string> args,
                             bool stop_at_operand, Spelling spelling = Spelling::whole);

// Options from the environment: PREFIX + env for each prefix, the later prefix wins. A flag is on
// when its variable exists and is not "0" or "no".
std::vector<Given> options_from_environment(std::span<const Option> options,
                                            std::span<const std::string_view> prefixes);

// Calls the setters in order. The error names the option and where it stood.
Result<void> apply_options(std::span<const Given> given, void* target);

// "--time" or "-t" for messages.
std::string shown_name(const Option& option);

// Tables joined into one, in constant expressions; a table is an array of either kind.
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
template <class C, class M>
M member_of(M C::*);

// Sets a member by its type: bool = true, text, optional text, list (commas part items, repeated
// options add to it).
//
// Target is a parameter, and not only worked out inside, so that the functions of two commands with
// a struct of the same name in their unnamed namespaces stay apart: from a member pointer alone,
// g++ 12 makes one symbol of them.
template <auto Member, class Target = decltype(class_of(Member))>
Result<void> put(void* target, std::string_view value) {
  using Type = decltype(member_of(Member));
  Type& member = static_cast<Target*>(target)->*Member;
  if constexpr (std::is_same_v<Type, bool>) {
    member = true;
  } else if constexpr (std::is_same_v<Type, std::vector<std::string>>) {
    for (std::string& item : split_list(value)) member.push_back(std::move(item));
  } else {
    member = std::string(value);
  }
  return {};
}

// Sets a member (of any type) to a constant.
template <auto Member, auto Value, class Target = decltype(class_of(Member))>
Result<void> put_value(void* target, std::string_view) {
  static_cast<Target*>(target)->*Member = Value;
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
