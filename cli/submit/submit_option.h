// An option of submit, defined once for both families of commands: ours (gbatch, grun, galloc) and
// those under Slurm's names (sbatch, srun, salloc). A row of a table is the option as our commands
// have it, with the differences under Slurm's names. Each family lists the names of its options in
// the order of its help.
#pragma once

#include "cli/option.h"

namespace gantry::cli {

enum class Family : std::uint8_t { gantry, slurm };
enum class Families : std::uint8_t { both, gantry, slurm };

// The fields in which the commands under Slurm's names differ. An empty field means no difference.
struct UnderSlurm {
  std::string_view value = {}, help = {}, env = {}, refused = {};
  Setter set = nullptr;
};

struct SubmitOption {
  Option option;
  UnderSlurm slurm = {};
  Families families = Families::both;
};

constexpr bool is_in(const SubmitOption& row, Family family) {
  return row.families == Families::both ||
         (row.families == Families::gantry) == (family == Family::gantry);
}

constexpr Option option_in(const SubmitOption& row, Family family) {
  Option out = row.option;
  if (family == Family::gantry) return out;
  if (!row.slurm.value.empty()) out.value = row.slurm.value;
  if (!row.slurm.help.empty()) out.help = row.slurm.help;
  if (!row.slurm.env.empty()) out.env = row.slurm.env;
  if (!row.slurm.refused.empty()) out.refused = row.slurm.refused;
  if (row.slurm.set != nullptr) out.set = row.slurm.set;
  return out;
}

// The options with these names as a family has them, in this order. They are taken from the tables
// and from `own`, which only this family has. A name that is in none of them, or in two, does not
// compile.
template <std::size_t N, std::size_t... M>
consteval std::array<Option, N> in_order(Family family, const std::string_view (&names)[N],
                                         std::span<const Option> own,
                                         const SubmitOption (&... tables)[M]) {
  std::array<Option, N> out{};
  for (std::size_t i = 0; i < N; ++i) {
    std::size_t found = 0;
    const auto take = [&](const Option& option) {
      if (option.name != names[i]) return;
      out[i] = option;
      ++found;
    };
    const auto take_from = [&](std::span<const SubmitOption> table) {
      for (const SubmitOption& row : table)
        if (is_in(row, family)) take(option_in(row, family));
    };
    (take_from(tables), ...);
    for (const Option& option : own) take(option);
    if (found != 1) throw "the tables have no option of this name, or two";
  }
  return out;
}

// All rows of a table that a family has, in the order of the table.
template <Family F, const auto& Table>
consteval auto all_in() {
  constexpr std::size_t kCount = static_cast<std::size_t>(std::count_if(
      std::begin(Table), std::end(Table), [](const SubmitOption& row) { return is_in(row, F); }));
  std::array<Option, kCount> out{};
  std::size_t at = 0;
  for (const SubmitOption& row : Table)
    if (is_in(row, F)) out[at++] = option_in(row, F);
  return out;
}

}  // namespace gantry::cli
