#include "common/job/task_bind.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <string>

#include "common/text/split.h"
#include "common/text/text.h"

namespace gantry {
namespace {

constexpr std::int64_t kMostPlaces = 4'096;  // CPUs or NUMA nodes of a node
constexpr std::size_t kMostBound = 65'536;   // tasks of a step on a node

tl::unexpected<Error> wrong_bind(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

Result<std::uint32_t> parse_digits(std::string_view text) {
  const auto odd =
      std::find_if(text.begin(), text.end(), [](char c) { return c < '0' || c > '9'; });
  if (odd != text.end())
    return wrong_bind(
        fmt::format("Failed to validate number: {}, the offending character is {}", text, *odd));
  ASSIGN(n, parse_integer("a number in the list", text, 0, kMostPlaces - 1));
  return static_cast<std::uint32_t>(*n);
}

Result<std::vector<std::uint16_t>> parse_cpu_mask(std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with("0x") || digits.starts_with("0X")) digits.remove_prefix(2);
  std::vector<std::uint16_t> out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const char c = digits[digits.size() - 1 - i];
    const auto at = std::string_view("0123456789abcdefABCDEF").find(c);
    if (at == std::string_view::npos)
      return wrong_bind(
          fmt::format("Failed to validate number: {}, the offending character is {}", text, c));
    const std::size_t bits = at < 16 ? at : at - 6;
    for (std::size_t bit = 0; bit < 4; ++bit)
      if ((bits >> bit & 1) != 0 && i * 4 + bit < std::size_t{kMostPlaces})
        out.push_back(static_cast<std::uint16_t>(i * 4 + bit));
  }
  if (out.empty()) return wrong_bind(fmt::format("\"{}\" is a mask without a bit", text));
  return out;
}

// "0,1*2" or "0x3,0xc": a set for each task, where *N repeats a set.
Result<std::vector<std::vector<std::uint16_t>>> parse_places(std::string_view list, bool masks) {
  std::vector<std::vector<std::uint16_t>> out;
  for (const std::string& item : split_list(list)) {
    const std::size_t star = std::min(item.find('*'), item.size());
    std::uint32_t times = 1;
    if (star < item.size()) {
      ASSIGN(n, parse_integer("the number after *", item.substr(star + 1), 1, 65'536));
      times = static_cast<std::uint32_t>(*n);
    }
    const std::string_view one = std::string_view(item).substr(0, star);
    std::vector<std::uint16_t> set;
    if (masks) {
      ASSIGN(mask, parse_cpu_mask(one));
      set = std::move(*mask);
    } else {
      ASSIGN(n, parse_digits(one));
      set.push_back(static_cast<std::uint16_t>(*n));
    }
    if (out.size() + times > kMostBound)
      return wrong_bind("the list is for more tasks than a node has");
    out.insert(out.end(), times, set);
  }
  if (out.empty()) return wrong_bind("the list is empty");
  return out;
}

struct BindWord {
  std::string_view name;
  TaskBind::Kind kind;
};

// Reads the words before the binding itself, and the binding, which a list may follow.
Result<TaskBind> parse_bind(std::string_view text, std::span<const BindWord> words,
                            std::string_view unit, std::string_view known) {
  TaskBind out;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::size_t colon = text.find(':');
    const std::string_view word = text.substr(0, std::min(comma, colon));
    const bool masks = word == fmt::format("mask_{}", unit);
    if (masks || word == fmt::format("map_{}", unit)) {
      ASSIGN(sets, parse_places(colon < text.size() ? text.substr(colon + 1) : "", masks));
      out.kind = masks ? TaskBind::Kind::mask : TaskBind::Kind::map;
      out.sets = std::move(*sets);
      return out;
    }
    const auto found =
        std::find_if(words.begin(), words.end(), [&](const BindWord& w) { return w.name == word; });
    if (word == "v" || word == "verbose")
      out.verbose = true;
    else if (word == "q" || word == "quiet")
      out.verbose = false;
    else if (unit == "mem" && (word == "p" || word == "prefer"))
      out.prefer = true;
    else if (found != words.end())
      out.kind = found->kind;
    else
      return wrong_bind(fmt::format("\"{}\" is not {}", word, known));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return out;
}

}  // namespace

Result<TaskBind> parse_cpu_bind(std::string_view text) {
  using enum TaskBind::Kind;
  constexpr BindWord kWords[] = {{"none", none},     {"no", none},       {"rank", rank},
                                 {"cores", usual},   {"threads", usual}, {"sockets", socket},
                                 {"ldoms", numa},    {"core", usual},    {"thread", usual},
                                 {"socket", socket}, {"ldom", numa}};
  return parse_bind(text, kWords, "cpu",
                    "quiet, verbose, none, rank, cores, threads, sockets, ldoms, map_cpu:LIST or "
                    "mask_cpu:LIST");
}

Result<TaskBind> parse_mem_bind(std::string_view text) {
  using enum TaskBind::Kind;
  constexpr BindWord kWords[] = {
      {"none", none}, {"no", none}, {"rank", rank}, {"local", local}, {"nosort", usual}};
  return parse_bind(
      text, kWords, "mem",
      "quiet, verbose, prefer, none, rank, local, nosort, map_mem:LIST or mask_mem:LIST");
}

Result<void> check_task_bind(const TaskBind& bind) {
  const bool listed = bind.kind == TaskBind::Kind::map || bind.kind == TaskBind::Kind::mask;
  if (listed != !bind.sets.empty() || bind.sets.size() > kMostBound)
    return wrong_bind("a binding of tasks has sets if it is a map or a mask, and only then");
  for (const auto& set : bind.sets)
    if (set.empty() || set.size() > std::size_t{kMostPlaces})
      return wrong_bind("a binding of tasks has a set that names nothing, or too much");
  return {};
}

}  // namespace gantry
