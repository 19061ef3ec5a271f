#include "cli/slurm/format.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

constexpr std::size_t kMaxColumns = 10'000;  // most characters of one cell
constexpr std::string_view kDigits = "0123456789";

std::size_t take_number(std::string_view& text) {
  std::size_t n = 0;
  while (!text.empty() && kDigits.find(text.front()) != std::string_view::npos) {
    n = std::min(n * 10 + static_cast<std::size_t>(text.front() - '0'), kMaxColumns);
    text.remove_prefix(1);
  }
  return n;
}

Cell& add_cell(Layout& layout, std::span<const ColumnInfo> fields, std::size_t field) {
  Cell& cell = layout.cells.emplace_back();
  cell.column = field;
  cell.header = fields[field].header;
  cell.cut = true;
  return cell;
}

std::optional<std::size_t> field_named(std::span<const ColumnInfo> fields, std::string_view name) {
  const std::string wanted = lower_case(name);
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (lower_case(fields[i].name) == wanted) return i;
  return std::nullopt;
}

// The first field whose name has this prefix.
std::optional<std::size_t> field_beginning(std::span<const ColumnInfo> fields,
                                           std::string_view name) {
  const std::string wanted = lower_case(name);
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (lower_case(fields[i].name).starts_with(wanted)) return i;
  return std::nullopt;
}

// Calls each(item) for every text between commas, even if it is empty.
template <class Each>
void for_items(std::string_view list, Each each) {
  while (true) {
    const std::size_t end = std::min(list.find(','), list.size());
    each(list.substr(0, end));
    if (end == list.size()) return;
    list.remove_prefix(end + 1);
  }
}

// Adds the fields of %all: every letter, separated by |.
void add_all(Layout& layout, std::span<const ColumnInfo> fields, std::string& before) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].letter == 0) continue;
    add_cell(layout, fields, i).before = std::exchange(before, "|");
  }
  before.clear();
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

std::string upper_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

Layout letters_layout(std::string_view format, std::span<const ColumnInfo> fields,
                      std::vector<std::string>& unknown) {
  Layout layout;
  std::string before;
  while (!format.empty()) {
    if (format.front() != '%') {
      before += format.front();
      format.remove_prefix(1);
      continue;
    }
    while (format.starts_with('%')) format.remove_prefix(1);  // %%i means %i, as in Slurm
    if (format.starts_with("all")) {
      format.remove_prefix(3);
      add_all(layout, fields, before);
      continue;
    }
    const std::string_view spec = format;
    const bool right = format.starts_with('.');
    if (right) format.remove_prefix(1);
    const std::size_t width = take_number(format);
    if (format.empty()) break;
    const char letter = format.front();
    format.remove_prefix(1);
    const auto found = std::find_if(fields.begin(), fields.end(),
                                    [&](const ColumnInfo& f) { return f.letter == letter; });
    if (found == fields.end()) {
      unknown.emplace_back(1, letter);
      before += '%';  // an unknown field stays as text
      before += spec.substr(0, spec.size() - format.size());
      continue;
    }
    Cell& cell = add_cell(layout, fields, static_cast<std::size_t>(found - fields.begin()));
    cell.before = std::exchange(before, "");
    cell.width = static_cast<int>(width);
    cell.right = right;
  }
  layout.after = std::move(before);
  return layout;
}

Layout names_layout(std::string_view format, std::span<const ColumnInfo> fields,
                    std::vector<std::string>& unknown) {
  Layout layout;
  std::string before;
  for_items(format, [&](std::string_view item) {
    const std::size_t colon = item.find(':');
    const std::string_view name = item.substr(0, colon);
    if (name.empty()) return;
    const auto field = field_named(fields, name);
    if (!field) {
      unknown.emplace_back(name);
      return;
    }
    Cell& cell = add_cell(layout, fields, *field);
    cell.before = std::exchange(before, "");
    cell.width = 20;
    if (colon == std::string_view::npos) return;
    std::string_view rest = item.substr(colon + 1);
    cell.right = rest.starts_with('.');
    if (cell.right) rest.remove_prefix(1);
    cell.width = static_cast<int>(take_number(rest));
    before = rest;
  });
  layout.after = std::move(before);
  return layout;
}

Layout list_layout(std::string_view list, std::span<const ColumnInfo> fields,
                   std::vector<std::string>& unknown) {
  Layout layout;
  for_items(list, [&](std::string_view item) {
    const std::size_t percent = item.find('%');
    const std::string_view name = item.substr(0, percent);
    if (name.empty()) return;
    auto field = field_named(fields, name);
    if (!field) field = field_beginning(fields, name);
    if (!field) {
      unknown.emplace_back(name);
      return;
    }
    Cell& cell = add_cell(layout, fields, *field);
    cell.before = layout.cells.size() > 1 ? " " : "";
    cell.width = std::abs(fields[*field].width);
    cell.right = fields[*field].width >= 0;
    if (percent == std::string_view::npos) return;
    std::string_view rest = item.substr(percent + 1);
    cell.right = !rest.starts_with('-');
    if (!cell.right) rest.remove_prefix(1);
    if (const std::size_t width = take_number(rest); width > 0)
      cell.width = static_cast<int>(width);
  });
  return layout;
}

std::string shown_time(Instant t) {
  const char* form = std::getenv("SLURM_TIME_FORMAT");
  const std::string_view text = form == nullptr ? "" : form;
  if (text.empty() || text == "standard" || text == "relative") return format_time(t);
  const std::time_t seconds = static_cast<std::time_t>(t.us / 1'000'000);
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  std::array<char, 256> out{};
  return std::string(out.data(), std::strftime(out.data(), out.size(), form, &parts));
}

std::string shown_time(const std::optional<Instant>& t, std::string_view none) {
  return t ? shown_time(*t) : std::string(none);
}

}  // namespace gantry::cli::slurm
