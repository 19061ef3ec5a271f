// Parses formats of tables: squeue's and sinfo's %-fields, and sacct's field lists.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "cli/table.h"
#include "config/nearest.h"

namespace gantry::cli {
namespace {

constexpr int kMaxWidth = 10'000;  // most characters of one cell

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

Result<int> parse_width(std::string_view digits, std::string_view whole) {
  int width = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), width);
  if (error != std::errc{} || end != digits.data() + digits.size() || width > kMaxWidth)
    return fail(ErrorCode::usage, fmt::format("\"{}\" has a width above {}", whole, kMaxWidth));
  return width;
}

}  // namespace

Result<Layout> parse_format(std::string_view format, std::span<const ColumnInfo> columns,
                            bool grows) {
  Layout layout;
  std::string before;
  std::size_t at = 0;
  while (at < format.size()) {
    if (format[at] != '%') {
      before += format[at++];
      continue;
    }
    while (at < format.size() && format[at] == '%') ++at;
    const bool right = at < format.size() && format[at] == '.';
    if (right) ++at;
    const std::size_t digits = at;
    while (at < format.size() && is_digit(format[at])) ++at;
    int width = 0;
    if (at > digits) {
      ASSIGN(parsed, parse_width(format.substr(digits, at - digits), format));
      width = *parsed;
    }
    if (at == format.size())
      return fail(ErrorCode::usage,
                  fmt::format("the format \"{}\" ends in a % without a field", format));
    const char letter = format[at++];
    const auto found = std::find_if(columns.begin(), columns.end(),
                                    [&](const ColumnInfo& c) { return c.letter == letter; });
    if (found == columns.end()) {
      std::string known;
      for (const ColumnInfo& c : columns)
        if (c.letter != 0) known += fmt::format(" %{}", c.letter);
      return fail(ErrorCode::usage,
                  fmt::format("Invalid job format specification: {}; there are{}", letter, known));
    }
    Cell& cell = layout.cells.emplace_back();
    cell.column = static_cast<std::size_t>(found - columns.begin());
    cell.before = std::move(before);
    cell.header = found->header;
    cell.coloured = found->coloured;
    cell.width = width;
    cell.right = right;
    cell.cut = !grows;
    cell.grows = grows;
    before.clear();
  }
  layout.after = std::move(before);
  return layout;
}

Result<Layout> parse_field_list(std::string_view fields, std::span<const ColumnInfo> columns) {
  Layout layout;
  while (!fields.empty()) {
    const std::size_t end = std::min(fields.find(','), fields.size());
    const std::string_view field = fields.substr(0, end);
    fields.remove_prefix(std::min(end + 1, fields.size()));
    if (field.empty()) continue;
    const std::size_t percent = field.find('%');
    const std::string name = lower(field.substr(0, percent));
    const auto found = std::find_if(columns.begin(), columns.end(), [&](const ColumnInfo& c) {
      return !c.name.empty() && lower(c.name) == name;
    });
    if (found == columns.end()) {
      std::vector<std::string_view> names;
      for (const ColumnInfo& c : columns)
        if (!c.name.empty()) names.push_back(c.name);
      return fail(ErrorCode::usage,
                  fmt::format("Invalid field requested: \"{}\"{}", field.substr(0, percent),
                              did_you_mean(field.substr(0, percent), names)));
    }
    Cell& cell = layout.cells.emplace_back();
    cell.column = static_cast<std::size_t>(found - columns.begin());
    cell.before = layout.cells.size() > 1 ? " " : "";
    cell.header = found->header;
    cell.coloured = found->coloured;
    cell.width = std::abs(found->width);
    cell.right = found->width > 0;
    cell.cut = true;
    if (percent == std::string_view::npos) continue;
    std::string_view digits = field.substr(percent + 1);
    cell.right = !digits.starts_with('-');
    if (!cell.right) digits.remove_prefix(1);
    ASSIGN(width, parse_width(digits, field));
    cell.width = *width;
  }
  if (layout.cells.empty()) return fail(ErrorCode::usage, "the list of fields is empty");
  return layout;
}

}  // namespace gantry::cli
