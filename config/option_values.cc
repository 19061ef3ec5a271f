// Converts the values of options from text to members and back. An error is one sentence about what
// is wrong with the text and what is allowed; load.cc puts the place before it.
#include <fmt/core.h>

#include <array>
#include <charconv>

#include "common/proto/job_text.h"
#include "common/text/hostlist.h"
#include "common/text/network_range.h"
#include "common/text/text.h"
#include "config/options.h"
#include "config/values.h"

namespace gantry::config {

// ---- lengths of time: "30s", "1m30s", "2h", "7d", or D-HH:MM:SS and HH:MM:SS

namespace {
struct Unit {
  std::string_view suffix;
  std::int64_t us;
};
constexpr std::array<Unit, 5> kUnits{{{"d", 86'400'000'000},
                                      {"h", 3'600'000'000},
                                      {"m", 60'000'000},
                                      {"s", 1'000'000},
                                      {"ms", 1'000}}};
}  // namespace

Result<Duration> parse_length(std::string_view text) {
  const auto bad = [&] {
    return fail(ErrorCode::invalid_argument,
                fmt::format("\"{}\" is not a length of time; use a number with ms, s, m, h or d, "
                            "or HH:MM:SS or D-HH:MM:SS",
                            text));
  };
  if (text == "0") return Duration{};
  if (text.find_first_of(":-") != std::string_view::npos) {
    const auto parsed = parse_duration(text);
    if (!parsed || !*parsed) return bad();
    return **parsed;
  }
  std::string_view rest = text;
  Duration total;
  if (rest.empty()) return bad();
  while (!rest.empty()) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc{} || number < 0) return bad();
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    const std::size_t length = std::min(rest.find_first_of("0123456789"), rest.size());
    const std::string_view suffix = rest.substr(0, length);
    const auto unit = std::find_if(kUnits.begin(), kUnits.end(),
                                   [&](const Unit& u) { return u.suffix == suffix; });
    if (unit == kUnits.end()) return bad();
    std::int64_t us = 0;
    if (__builtin_mul_overflow(number, unit->us, &us) ||
        __builtin_add_overflow(total.us, us, &total.us))
      return bad();
    rest.remove_prefix(length);
  }
  return total;
}

std::string show_length(Duration d) {
  if (d.us == 0) return "0s";
  std::string text;
  std::int64_t rest = d.us;
  for (const Unit& unit : kUnits) {
    if (rest >= unit.us) text += fmt::format("{}{}", rest / unit.us, unit.suffix);
    rest %= unit.us;
  }
  return text;
}

bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= 64 && text.front() != '-' && text.front() != '.' &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
         });
}

Result<bool> parse_bool(std::string_view text) {
  for (std::string_view yes : {"true", "yes", "on"})
    if (text == yes) return true;
  for (std::string_view no : {"false", "no", "off"})
    if (text == no) return false;
  return fail(ErrorCode::invalid_argument, fmt::format("\"{}\" is not true or false", text));
}

namespace {

Result<void> wrong(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

Result<void> check_range(const Option& option, std::int64_t value,
                         std::string (*show)(std::int64_t)) {
  const Rule& rule = option.rule;
  if (rule.low == rule.high || (value >= rule.low && value <= rule.high)) return {};
  return wrong(
      fmt::format("{} is outside of {} to {}", show(value), show(rule.low), show(rule.high)));
}

std::string show_number(std::int64_t n) {
  return std::to_string(n);
}
std::string show_microseconds(std::int64_t us) {
  return show_length({us});
}

Result<std::int64_t> parse_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty())
    return fail(ErrorCode::invalid_argument, fmt::format("\"{}\" is not a whole number", text));
  return value;
}

Result<std::int64_t> parse_bytes(std::string_view text) {
  if (text == "0") return 0;
  const bool has_unit = !text.empty() && (text.back() < '0' || text.back() > '9');
  const auto parsed = parse_memory(text);
  if (!has_unit || !parsed)
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("\"{}\" is not an amount of memory; use a number with K, M, G or T", text));
  return *parsed;
}

// ---- texts

Result<void> check_text(Form form, std::string_view text) {
  switch (form) {
    case Form::word:
      if (!is_word(text))
        return wrong(
            fmt::format("\"{}\" is not a name; use up to 64 letters, digits, '-', '_' and '.', not "
                        "beginning with '-' or '.'",
                        text));
      return {};
    case Form::account:
      if (const std::size_t slash = text.find('/');
          !is_word(text.substr(0, slash)) ||
          (slash != std::string_view::npos && !is_word(text.substr(slash + 1))))
        return wrong(fmt::format("\"{}\" is not a tenant, a project or TENANT/PROJECT", text));
      return {};
    case Form::path_or_none:
      if (text.empty()) return {};
      [[fallthrough]];
    case Form::path:
      if (text.empty() || text.front() != '/')
        return wrong(fmt::format("\"{}\" is not an absolute path", text));
      return {};
    case Form::address: {
      const std::size_t colon = text.rfind(':');
      if (colon == std::string_view::npos || colon == 0 ||
          !parse_integer("port", text.substr(colon + 1), 1, 65535))
        return wrong(fmt::format("\"{}\" is not HOST:PORT", text));
      return {};
    }
    case Form::ip_address:
      if (const auto range = parse_network_range(text);
          !range || text.find_first_of("/ ") != std::string_view::npos)
        return wrong(fmt::format("\"{}\" is not an address of IPv4 or IPv6", text));
      return {};
    case Form::runtime:
      if (text != "crun" && text != "runc" && text != "process" && text != "none" &&
          (text.empty() || text.front() != '/'))
        return wrong(fmt::format(
            "\"{}\" is not a runtime; use crun, runc, process, none or an absolute path", text));
      return {};
    default:
      if (text.empty()) return wrong("it must not be empty");
      return {};
  }
}

// ---- one setter per member type

constexpr std::array<std::pair<NodeTransport, std::string_view>, 3> kTransportNames{
    {{NodeTransport::vxlan, "vxlan"},
     {NodeTransport::wireguard, "wireguard"},
     {NodeTransport::routed, "routed"}}};
constexpr std::array<std::pair<GpuSharing, std::string_view>, 3> kSharingNames{
    {{GpuSharing::none, "none"},
     {GpuSharing::mps, "mps"},
     {GpuSharing::time_slicing, "time-slicing"}}};
constexpr std::array<std::pair<GpuScrubbing, std::string_view>, 3> kScrubbingNames{
    {{GpuScrubbing::when_possible, "when-possible"},
     {GpuScrubbing::required, "required"},
     {GpuScrubbing::off, "off"}}};

struct SetText {
  const Option& option;
  std::string_view text;

  template <class T>
  Result<void> number(T& out) const {
    const bool is_bytes = option.rule.form == Form::bytes;
    ASSIGN(value, is_bytes ? parse_bytes(text) : parse_number(text));
    if (auto ok = check_range(option, *value, is_bytes ? format_memory : show_number); !ok)
      return ok;
    out = static_cast<T>(*value);
    return {};
  }
  Result<void> operator()(std::string* out) const {
    if (auto ok = check_text(option.rule.form, text); !ok) return ok;
    *out = text;
    return {};
  }
  Result<void> operator()(bool* out) const {
    ASSIGN(value, parse_bool(text));
    *out = *value;
    return {};
  }
  Result<void> operator()(std::uint16_t* out) const { return number(*out); }
  Result<void> operator()(std::uint32_t* out) const { return number(*out); }
  Result<void> operator()(std::int64_t* out) const { return number(*out); }
  template <class T>
  Result<void> number_or_none(std::optional<T>& out) const {
    if (text != "none") return number(out.emplace());
    out.reset();
    return {};
  }
  Result<void> operator()(std::optional<std::uint32_t>* out) const { return number_or_none(*out); }
  Result<void> operator()(std::optional<std::int64_t>* out) const { return number_or_none(*out); }
  Result<void> operator()(Duration* out) const {
    ASSIGN(value, parse_length(text));
    if (auto ok = check_range(option, value->us, show_microseconds); !ok) return ok;
    *out = *value;
    return {};
  }
  Result<void> operator()(std::optional<Duration>* out) const {
    if (text == "unlimited") {
      out->reset();
      return {};
    }
    return (*this)(&out->emplace());
  }
  Result<void> operator()(std::vector<std::string>* /*out*/) const {
    const std::string one(text);
    return set_option(option, std::span(&one, 1));
  }
  Result<void> operator()(std::optional<std::vector<std::uint16_t>>* out) const {
    const auto array = parse_index_ranges(text);
    if (!array || array->max_running)
      return wrong(
          fmt::format("\"{}\" is not a list of CPUs; use numbers and ranges as 0-3,8", text));
    auto& cpus = out->emplace();
    for (const IndexRange& range : array->ranges) {
      for (std::uint64_t cpu = range.first; cpu <= range.last; cpu += range.step) {
        if (cpu > 4095) return wrong(fmt::format("CPU {} is outside of 0 to 4095", cpu));
        cpus.push_back(static_cast<std::uint16_t>(cpu));
      }
    }
    return {};
  }
  Result<void> operator()(LostNodePolicy* out) const {
    if (text == "wait")
      *out = LostNodePolicy::wait;
    else if (text == "fence")
      *out = LostNodePolicy::fence;
    else
      return wrong(fmt::format("\"{}\" is not wait or fence", text));
    return {};
  }
  Result<void> operator()(HookFailure* out) const {
    if (text == "refuse")
      *out = HookFailure::refuse;
    else if (text == "accept")
      *out = HookFailure::accept;
    else
      return wrong(fmt::format("\"{}\" is not refuse or accept", text));
    return {};
  }
  Result<void> operator()(NodeTransport* out) const {
    for (const auto& [value, name] : kTransportNames)
      if (text == name) {
        *out = value;
        return {};
      }
    return wrong(fmt::format("\"{}\" is not vxlan, wireguard or routed", text));
  }
  Result<void> operator()(GpuSharing* out) const {
    for (const auto& [value, name] : kSharingNames)
      if (text == name) {
        *out = value;
        return {};
      }
    return wrong(fmt::format("\"{}\" is not none, mps or time-slicing", text));
  }
  Result<void> operator()(GpuScrubbing* out) const {
    for (const auto& [value, name] : kScrubbingNames)
      if (text == name) {
        *out = value;
        return {};
      }
    return wrong(fmt::format("\"{}\" is not when-possible, required or off", text));
  }
};

struct Show {
  const Option& option;

  std::string number(std::int64_t n) const {
    return option.rule.form == Form::bytes && n != 0 ? format_memory(n) : std::to_string(n);
  }
  std::string operator()(const std::string* v) const { return *v; }
  std::string operator()(const bool* v) const { return *v ? "true" : "false"; }
  std::string operator()(const std::uint16_t* v) const { return number(*v); }
  std::string operator()(const std::uint32_t* v) const { return number(*v); }
  std::string operator()(const std::int64_t* v) const { return number(*v); }
  std::string operator()(const std::optional<std::uint32_t>* v) const {
    return *v ? number(**v) : "";
  }
  std::string operator()(const std::optional<std::int64_t>* v) const {
    return *v ? number(**v) : "";
  }
  std::string operator()(const Duration* v) const { return show_length(*v); }
  std::string operator()(const std::optional<Duration>* v) const {
    return *v ? show_length(**v) : "unlimited";
  }
  std::string operator()(const std::vector<std::string>* v) const {
    if (option.rule.form == Form::node_names) return compress_hostlist(*v);
    std::string text;
    for (const std::string& item : *v) text += (text.empty() ? "" : ", ") + item;
    return "[" + text + "]";
  }
  std::string operator()(const std::optional<std::vector<std::uint16_t>>* v) const {
    if (!*v) return "";
    const std::vector<std::uint32_t> wide((*v)->begin(), (*v)->end());
    return format_index_ranges(compress_indexes(wide));
  }
  std::string operator()(const LostNodePolicy* v) const {
    return *v == LostNodePolicy::wait ? "wait" : "fence";
  }
  std::string operator()(const HookFailure* v) const {
    return *v == HookFailure::refuse ? "refuse" : "accept";
  }
  std::string operator()(const NodeTransport* v) const {
    for (const auto& [value, name] : kTransportNames)
      if (*v == value) return std::string(name);
    return {};
  }
  std::string operator()(const GpuSharing* v) const {
    for (const auto& [value, name] : kSharingNames)
      if (*v == value) return std::string(name);
    return {};
  }
  std::string operator()(const GpuScrubbing* v) const {
    for (const auto& [value, name] : kScrubbingNames)
      if (*v == value) return std::string(name);
    return {};
  }
};

struct TypeName {
  const Option& option;

  std::string ranged(std::string type, std::string (*show)(std::int64_t)) const {
    const Rule& rule = option.rule;
    if (rule.low == rule.high) return type;
    return fmt::format("{}, {} to {}", type, show(rule.low), show(rule.high));
  }
  std::string number() const {
    return option.rule.form == Form::bytes ? ranged("memory", format_memory)
                                           : ranged("integer", show_number);
  }
  std::string operator()(const std::string*) const {
    switch (option.rule.form) {
      case Form::path:
      case Form::path_or_none: return "absolute path";
      case Form::address: return "HOST:PORT";
      case Form::ip_address: return "address";
      case Form::node_names: return "node name or range";
      case Form::word:
      case Form::account: return "name";
      default: return "text";
    }
  }
  std::string operator()(const bool*) const { return "true or false"; }
  std::string operator()(const std::uint16_t*) const { return number(); }
  std::string operator()(const std::uint32_t*) const { return number(); }
  std::string operator()(const std::int64_t*) const { return number(); }
  std::string operator()(const std::optional<std::uint32_t>*) const {
    return number() + ", or none";
  }
  std::string operator()(const std::optional<std::int64_t>*) const {
    return number() + ", or none";
  }
  std::string operator()(const Duration*) const { return ranged("duration", show_microseconds); }
  std::string operator()(const std::optional<Duration>*) const {
    return ranged("duration", show_microseconds) + ", or unlimited";
  }
  std::string operator()(const std::vector<std::string>*) const {
    switch (option.rule.form) {
      case Form::ip_address: return "list of addresses";
      case Form::path: return "list of absolute paths";
      case Form::node_names: return "host list";
      case Form::runtime: return "list of runtimes";
      default: return "list of names";
    }
  }
  std::string operator()(const std::optional<std::vector<std::uint16_t>>*) const {
    return "list of CPUs";
  }
  std::string operator()(const LostNodePolicy*) const { return "wait or fence"; }
  std::string operator()(const HookFailure*) const { return "refuse or accept"; }
  std::string operator()(const NodeTransport*) const { return "vxlan, wireguard or routed"; }
  std::string operator()(const GpuSharing*) const { return "none, mps or time-slicing"; }
  std::string operator()(const GpuScrubbing*) const { return "when-possible, required or off"; }
};

}  // namespace

Result<void> set_option(const Option& option, std::string_view text) {
  return std::visit(SetText{option, text}, option.member);
}

Result<void> set_option(const Option& option, std::span<const std::string> items) {
  auto& out = *std::get<std::vector<std::string>*>(option.member);
  std::vector<std::string> values;
  for (const std::string& item : items) {
    if (option.rule.form == Form::node_names) {
      ASSIGN(names, expand_hostlist(item));
      values.insert(values.end(), names->begin(), names->end());
    } else {
      if (auto ok = check_text(option.rule.form, item); !ok) return ok;
      values.push_back(item);
    }
  }
  out = std::move(values);
  return {};
}

bool takes_list(const Option& option) {
  return std::holds_alternative<std::vector<std::string>*>(option.member);
}

std::string show_option(const Option& option) {
  return std::visit(Show{option}, option.member);
}
std::string type_of(const Option& option) {
  return std::visit(TypeName{option}, option.member);
}

}  // namespace gantry::config
