// gctl partition create|update|delete|reset NAME [OPTION=VALUE...]

#include <fmt/core.h>

#include <map>
#include <span>

#include "cli/commands/control/gctl.h"
#include "cli/session.h"
#include "common/proto/partitions.h"

namespace gantry::cli::gctl_partition {
namespace {

using proto::PartitionAction;

struct NoOptions {};

Result<std::map<std::string, std::string>> read_values(std::span<const std::string> words) {
  std::map<std::string, std::string> values;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      return fail(ErrorCode::usage, fmt::format("\"{}\" is not OPTION=VALUE", word));
    const std::string name = word.substr(0, equals);
    if (!values.emplace(name, word.substr(equals + 1)).second)
      return fail(ErrorCode::usage, fmt::format("{} is given twice", name));
  }
  return values;
}

template <PartitionAction Action>
Result<int> run_partition(const Invocation& in) {
  constexpr bool kTakesValues =
      Action == PartitionAction::create || Action == PartitionAction::update;
  NoOptions none;
  const std::size_t least = Action == PartitionAction::update ? 2 : 1;
  OPERANDS(operands, in, &none, least, kTakesValues ? kAnyOperands : 1);
  ASSIGN(values, read_values(std::span(**operands).subspan(1)));
  proto::ChangePartition change{(*operands)->front(), Action, std::move(*values)};
  ASSIGN(ok, ask<proto::Ok>(in.program(), change));
  return 0;
}

const Command kCreate{
    {"create", "Make a partition", "NAME [OPTION=VALUE...]"},
    {.description = "Options and values are those of a partition in gantry.yaml (docs/config.md); "
                    "the items of "
                    "a list are separated by commas, and an empty value is an empty list.",
     .examples =
         {{"gctl partition create night nodes=n[01-03] max_time=8h allow_groups=physics,staff",
           "A partition that only two groups may use"}},
     .run = run_partition<PartitionAction::create>}};
const Command kUpdate{
    {"update", "Change options of a partition", "NAME OPTION=VALUE..."},
    {.description = "Jobs that wait or run in it stay as they were accepted. `none` takes a "
                    "number away, `unlimited` a length of time.",
     .examples = {{"gctl partition update night max_time=12h default=yes",
                   "A longer limit; the default now"}},
     .run = run_partition<PartitionAction::update>}};
const Command kDelete{
    {"delete", "Take a partition away in which no job waits or runs", "NAME"},
    {.examples = {{"gctl partition delete night", "Jobs cannot be submitted to it any more"}},
     .run = run_partition<PartitionAction::remove>}};
const Command kReset{
    {"reset", "Forget what commands said of a partition", "NAME"},
    {.description = "It is as in gantry.yaml again, its state too; one that is not there, and "
                    "in which no job waits or runs, is gone.",
     .examples = {{"gctl partition reset night", "What gantry.yaml says of it counts again"}},
     .run = run_partition<PartitionAction::reset>}};
constexpr const Command* kSub[] = {&kCreate, &kUpdate, &kDelete, &kReset};

}  // namespace

const Command kGctlPartition{
    {"partition", "Make, change and delete partitions (administrators)"},
    {.description =
         "A change is in force at once and lasts, over restarts of the controller too. It goes "
         "before gantry.yaml, option by option, until it is reset; what no command has set follows "
         "the file.",
     .examples = {{"gctl partition create night nodes=n[01-03] max_time=8h",
                   "A new partition, in force at once"},
                  {"gctl partition reset night", "What gantry.yaml says of it counts again"}},
     .sub = kSub}};

}  // namespace gantry::cli::gctl_partition
