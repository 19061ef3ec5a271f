// Every option of gantry.yaml, declared once. Reading, checking, describe() and the reference page
// docs/config.md all use these tables; a new option is one line in options.cc.
//
// A row points at its member. The member's type defines which texts are allowed, the rule narrows
// them, and the default is the struct's initial value.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/result.h"
#include "config/config.h"

namespace gantry::config {

// The meaning of a text or a list, if the type alone does not say it.
enum class Form : std::uint8_t {
  plain,
  bytes,  // for integers: an amount of memory with a unit
  path,   // absolute
  path_or_none,
  word,        // letters, digits, '-', '_', '.': for names of clusters, partitions, features
  account,     // a word, or TENANT/PROJECT
  node_names,  // host list, expanded
  cpu_list,    // "0-3,8"
  address,     // HOST:PORT
  ip_address,  // IPv4 or IPv6, without a port
  runtime,     // crun, runc, process, none or an absolute path
};

struct Rule {
  Form form = Form::plain;
  std::int64_t low = 0;   // for integers and bytes; microseconds for durations
  std::int64_t high = 0;  // low == high: only the type limits the value
};

using Member = std::variant<std::string*, bool*, std::uint16_t*, std::uint32_t*, std::int64_t*,
                            Duration*, std::optional<Duration>*, std::optional<std::uint32_t>*,
                            std::optional<std::int64_t>*, std::vector<std::string>*,
                            std::optional<std::vector<std::uint16_t>>*, LostNodePolicy*,
                            HookFailure*, NodeTransport*, GpuSharing*, GpuScrubbing*>;

struct Option {
  std::string_view name;
  Member member;
  Rule rule;
  std::string_view doc;  // one sentence or two
  bool required = false;
};

std::vector<Option> options_of(Config& config);  // top level: cluster
std::vector<Option> options_of(ControllerConfig& config);
std::vector<Option> options_of(NodedConfig& config);
std::vector<Option> options_of(GateConfig& config);
std::vector<Option> options_of(NodeConfig& config);
std::vector<Option> options_of(PartitionConfig& config);

// Reads one value. The error has no place; it only tells what is wrong with the text and what is
// allowed.
Result<void> set_option(const Option& option, std::string_view text);
Result<void> set_option(const Option& option, std::span<const std::string> items);
bool takes_list(const Option& option);

// True if everybody may know the option's value. Not public are the administrators' names, the
// paths of the daemons' files, and the addresses they talk to. Directories that jobs may use are
// public.
bool for_users(const Option& option);
// The values in force that everybody may know, by name. Nodes and partitions have listings of their
// own.
std::map<std::string, std::string> describe_for_users(const Config& config);

std::string show_option(const Option& option);  // in a form that set_option can read
std::string type_of(const Option& option);      // "duration", "integer 1 to 65535", ...

}  // namespace gantry::config
